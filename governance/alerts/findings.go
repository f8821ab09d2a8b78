package alerts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/clusterstate"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failurePeriod is the time in which failed tasks count.
const failurePeriod = time.Hour

// Input is the state of the cluster at one moment.
type Input struct {
	Now         time.Time
	Tasks       []*tasks.Task
	Teams       clusterstate.Teams
	Heads       []Head // first waiting tasks that may fit
	Capacity    *capacity.Snapshot
	Allocations []v1alpha1.ComputeAllocation
	Loops       []Loop
	Idle        []Idle
	Policy      *v1alpha1.ClusterPolicy // nil for none
	Refused     int                     // records that history refused within refusedPeriod
	LastRefused *history.SetAside       // nil for none
}

// refusedPeriod is the time in which refused records count.
const refusedPeriod = 24 * time.Hour

// Head is a task that is first in its LocalQueue, and why it waits; nil if that is not
// computed yet.
type Head struct {
	*tasks.Task
	Verdict *explain.Verdict
}

// Loop is a preemption loop with the task that is preempted; nil if it is deleted.
type Loop struct {
	loopguard.Loop
	Task *tasks.Task
}

// Idle is a task whose accelerators are idle.
type Idle struct {
	Task         tasks.Address
	Team         string // empty for none
	Accelerators int64
	Since        time.Time
}

// finders are what evaluates rules.
var finders = []struct {
	rules []Rule
	find  func(*Input, Thresholds) []Finding
}{
	{[]Rule{TaskWaits, TaskPreempted, TasksFail}, (*Input).ofTasks},
	{[]Rule{NotAdmitted, OwnQuotaWaits}, func(in *Input, _ Thresholds) []Finding { return in.ofHeads() }},
	{[]Rule{PreemptionLoop}, func(in *Input, _ Thresholds) []Finding { return in.ofLoops() }},
	{[]Rule{TaskIdle}, func(in *Input, _ Thresholds) []Finding { return in.ofIdle() }},
	{[]Rule{QuotaIdle}, func(in *Input, _ Thresholds) []Finding { return in.ofQuota() }},
	{[]Rule{NodesLost}, func(in *Input, _ Thresholds) []Finding { return in.ofNodes() }},
	{[]Rule{Budget}, func(in *Input, _ Thresholds) []Finding { return in.ofBudgets() }},
	{[]Rule{PolicyDiffers}, func(in *Input, _ Thresholds) []Finding { return in.ofPolicy() }},
	{[]Rule{HistoryRefused}, func(in *Input, _ Thresholds) []Finding { return in.ofHistory() }},
}

// findings returns what all rules find. Its cost is linear in the number of tasks. Rules
// that panic are not complete, and the error has their cause.
func (in *Input) findings(t Thresholds, complete map[Rule]bool) (found []Finding, err error) {
	for _, f := range finders {
		if failed := governance.Recovered(func() error {
			found = append(found, f.find(in, t)...)
			return nil
		}); failed != nil {
			err = errors.Join(err, fmt.Errorf("evaluate %v: %w", f.rules, failed))
			for _, rule := range f.rules {
				complete[rule] = false
			}
		}
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return t.IsOff(f.Rule) }), err
}

// group is the tasks of a team in a namespace; of no team, those without one.
type group struct{ namespace, team string }

// groupOf returns the group of the tasks of a place.
func (in *Input) groupOf(p tasks.Place) group { return group{p.Namespace, in.Teams.Of(p)} }

// subject returns what the group is called as the subject of findings.
func (in *Input) subject(g group) string {
	if teams := in.Teams.In(g.namespace); len(teams) == 0 || len(teams) == 1 && teams[0] == g.team {
		return g.namespace
	}
	return g.namespace + "/" + g.team
}

// about returns a finding about a group, and how to name its tasks.
func (in *Input) about(rule Rule, g group, subject string) (f Finding, of string) {
	f = Finding{Rule: rule, Subject: subject, Team: g.team, Namespace: g.namespace}
	if f.Team == "" {
		return f, "in namespace " + g.namespace
	}
	return f, "of team " + f.Team
}

// waits are the tasks of a priority class in a group that wait for too long.
type waits struct {
	n       int
	longest *tasks.Task
	over    time.Time // when the first one exceeded the limit
}

// preempts and ends are what happened to the tasks of a group.
type preempts struct {
	n    int
	most *tasks.Task
}

type ends struct {
	failed, all int
	last        *tasks.Task // that failed
}

func (in *Input) ofTasks(t Thresholds) (found []Finding) {
	type line struct {
		group
		class string
	}
	waiting, preempted, ended := map[line]*waits{}, map[group]*preempts{}, map[group]*ends{}
	for _, task := range in.Tasks {
		if task.State.Waiting() && !task.WaitingSince.IsZero() {
			limit, ok := t.wait(task.PriorityClass)
			over := task.WaitingSince.Add(limit)
			if ok && !in.Now.Before(over) {
				l := line{in.groupOf(task.Place()), task.PriorityClass}
				w := waiting[l]
				if w == nil {
					w = &waits{longest: task, over: over}
					waiting[l] = w
				}
				if w.n++; task.WaitingSince.Before(w.longest.WaitingSince) {
					w.longest, w.over = task, over
				}
			}
		}
		if task.Preemptions >= t.Preemptions && !task.State.Finished() {
			g := in.groupOf(task.Place())
			p := preempted[g]
			if p == nil {
				p = &preempts{}
				preempted[g] = p
			}
			if p.n++; p.most == nil || task.Preemptions > p.most.Preemptions {
				p.most = task
			}
		}
		if task.State.Finished() && in.Now.Sub(task.FinishedAt) < failurePeriod {
			g := in.groupOf(task.Place())
			e := ended[g]
			if e == nil {
				e = &ends{}
				ended[g] = e
			}
			if e.all++; task.State == tasks.Failed {
				if e.failed++; e.last == nil || task.FinishedAt.After(e.last.FinishedAt) {
					e.last = task
				}
			}
		}
	}
	for l, w := range waiting {
		f, of := in.about(TaskWaits, l.group, in.subject(l.group)+"/"+l.class)
		f.Since = w.over
		class := ""
		if l.class != "" {
			class = " in priority class " + className(l.class)
		}
		limit, _ := t.wait(l.class)
		f.Summary = fmt.Sprintf("%s %s%s %s for longer than %s. %s has waited longest, since %s.", count(w.n, "task"), of, class, verb(w.n, "waits", "wait"), duration(limit), nameOf(w.longest), moment(w.longest.WaitingSince))
		found = append(found, f)
	}
	for g, p := range preempted {
		f, of := in.about(TaskPreempted, g, in.subject(g))
		f.Summary = fmt.Sprintf("%s %s %s preempted %s or more, most often %s.", count(p.n, "task"), of, verb(p.n, "was", "were"), count(int(t.Preemptions), "time"), nameOf(p.most))
		found = append(found, f)
	}
	for g, e := range ended {
		if e.failed < t.Failures || e.failed*100 < t.FailureRate*e.all {
			continue
		}
		f, of := in.about(TasksFail, g, in.subject(g))
		f.Summary = fmt.Sprintf("%d of %s %s that ended in the last hour failed, last %s.", e.failed, count(e.all, "task"), of, nameOf(e.last))
		found = append(found, f)
	}
	return found
}

// ofHeads finds tasks that fit and are not admitted.
func (in *Input) ofHeads() (found []Finding) {
	for _, h := range in.Heads {
		if h.Verdict == nil {
			continue
		}
		g, subject := in.groupOf(h.Place()), h.Namespace+"/"+h.Queue
		switch v := h.Verdict; {
		case v.Constraint == explain.PendingEvaluation:
			f, of := in.about(NotAdmitted, g, subject)
			f.Summary = fmt.Sprintf("%s %s fits the quota, and Kueue does not admit it. Check that Kueue runs.", nameOf(h.Task), of)
			found = append(found, f)
		case v.Constraint == explain.QueueInactive || v.Constraint == explain.NoClusterQueue || v.Constraint == explain.WrongNamespace:
			f, of := in.about(NotAdmitted, g, subject)
			f.Summary = fmt.Sprintf("Kueue admits no task %s: the queue of %s does not work.", of, nameOf(h.Task))
			found = append(found, f)
		case (v.Constraint == explain.Quota || v.Constraint == explain.Preempting) && v.Shortage != nil && v.Shortage.Needed > v.Shortage.Available && v.Shortage.Used.Plus(v.Shortage.Needed) <= v.Shortage.Nominal:
			f, of := in.about(OwnQuotaWaits, g, subject)
			f.Summary = fmt.Sprintf("%s %s waits, although it fits the team's own quota in %s: others use that quota and have not returned it.", nameOf(h.Task), of, v.Shortage.Flavor)
			found = append(found, f)
		}
	}
	return found
}

func (in *Input) ofLoops() (found []Finding) {
	for _, l := range in.Loops {
		if !l.Active() {
			continue
		}
		name, place := l.Victim.Name, tasks.Place{Namespace: l.Victim.Namespace}
		if l.Task != nil {
			name, place = nameOf(l.Task), l.Task.Place()
		}
		f, of := in.about(PreemptionLoop, in.groupOf(place), string(l.Victim.UID))
		f.Since = l.Since
		f.Summary = fmt.Sprintf("Kueue preempts %s %s again and again for a task that it does not admit.", name, of)
		if l.State == loopguard.Held {
			f.Summary += " Kuota holds it until that task is admitted."
		}
		found = append(found, f)
	}
	return found
}

func (in *Input) ofIdle() (found []Finding) {
	groups := map[group][]Idle{}
	for _, idle := range in.Idle {
		g := group{idle.Task.Namespace, idle.Team}
		groups[g] = append(groups[g], idle)
	}
	for g, list := range groups {
		first := slices.MinFunc(list, func(a, b Idle) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Task.UID, b.Task.UID)) })
		var accelerators int64
		for _, idle := range list {
			accelerators += idle.Accelerators
		}
		f, of := in.about(TaskIdle, g, in.subject(g))
		f.Since = first.Since
		f.Summary = fmt.Sprintf("%s %s %s not use %s %s, longest %s %s, since %s.", count(len(list), "running task"), of, verb(len(list), "does", "do"), verb(len(list), "its", "their"), count(int(accelerators), "accelerator"), first.Task.Kind, first.Task.Name, moment(first.Since))
		found = append(found, f)
	}
	return found
}

func (in *Input) ofQuota() (found []Finding) {
	if in.Capacity == nil {
		return nil
	}
	for _, team := range in.Capacity.Teams {
		for _, r := range team.Resources {
			if !catalog.IsAccelerator(r.Resource) || r.Nominal == 0 || r.Usage > 0 || r.LentToCohort > 0 {
				continue
			}
			found = append(found, Finding{
				Rule: QuotaIdle, Subject: team.Name + "/" + r.Flavor + "/" + r.Resource, Team: team.Name, Namespace: team.Namespace,
				Summary: fmt.Sprintf("Team %s uses none of its quota of %s in %s, and nobody borrows it.", team.Name, count(int(r.Nominal), "accelerator"), r.Flavor),
			})
		}
	}
	return found
}

// ofBudgets finds each step that a budget has reached. A status of the period before is
// none.
func (in *Input) ofBudgets() (found []Finding) {
	for i := range in.Allocations {
		a := &in.Allocations[i]
		b, s := a.Spec.Budget, a.Status.Budget
		if b == nil || s == nil || !in.Now.Before(s.To.Time) {
			continue
		}
		for _, step := range b.Steps {
			if s.Percent >= int64(step.Percent) {
				found = append(found, Finding{
					Rule: Budget, Subject: a.Name + "/" + string(step.Action) + "/" + s.From.UTC().Format(time.DateOnly), Team: a.Name, Namespace: a.Status.Namespace,
					Summary: fmt.Sprintf("Team %s has used %d %% of its budget of %s. %s", a.Name, step.Percent, describe.BudgetAmount(b), budgetEffects[step.Action]),
				})
			}
		}
	}
	return found
}

var budgetEffects = map[v1alpha1.BudgetAction]string{
	v1alpha1.BudgetNotify:        "Nothing else happens.",
	v1alpha1.BudgetBorrowNothing: "It borrows nothing more until the period ends.",
	v1alpha1.BudgetHold:          "None of its tasks is admitted until the period ends.",
	v1alpha1.BudgetDrain:         "Its tasks are requeued, and none is admitted until the period ends.",
}

// maxNames bounds the names of nodes in a summary.
const maxNames = 3

func (in *Input) ofNodes() (found []Finding) {
	if in.Capacity == nil {
		return nil
	}
	lost := map[string][]capacity.NodeSnapshot{}
	for _, n := range in.Capacity.Nodes {
		if n.State == capacity.Recovering {
			lost[n.Pool] = append(lost[n.Pool], n)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(lost)) {
		list := lost[pool]
		f := Finding{Rule: NodesLost, Subject: pool}
		names := make([]string, 0, maxNames)
		for _, n := range list {
			if !n.Since.IsZero() && (f.Since.IsZero() || n.Since.Before(f.Since)) {
				f.Since = n.Since
			}
			if len(names) < maxNames {
				names = append(names, n.Name)
			}
		}
		where := "without a pool"
		if pool != "" {
			where = "of pool " + pool
		}
		f.Summary = fmt.Sprintf("%s %s %s not ready: %s", count(len(list), "node"), where, verb(len(list), "is", "are"), strings.Join(names, ", "))
		if more := len(list) - len(names); more > 0 {
			f.Summary += fmt.Sprintf(" and %d more", more)
		}
		f.Summary += "."
		found = append(found, f)
	}
	return found
}

func (in *Input) ofPolicy() (found []Finding) {
	if in.Policy != nil {
		ready := meta.FindStatusCondition(in.Policy.Status.Conditions, "Ready")
		if ready != nil && ready.Status == metav1.ConditionFalse {
			found = append(found, Finding{Rule: PolicyDiffers, Subject: in.Policy.Name, Since: ready.LastTransitionTime.Time, Summary: "The cluster does not match the cluster policy. " + sentence(ready.Message)})
		}
	}
	return found
}

func (in *Input) ofHistory() (found []Finding) {
	if in.Refused == 0 || in.LastRefused == nil {
		return nil
	}
	return []Finding{{Rule: HistoryRefused, Subject: "history", Summary: fmt.Sprintf("The history database refused %s in the last day, and pages lack what was refused. The last one, of %s: %s", count(in.Refused, "record"), in.LastRefused.Writer, sentence(in.LastRefused.Reason))}}
}
