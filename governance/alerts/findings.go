package alerts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/spec/describe"
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
	Departments []v1alpha1.Department
	Loops       []Loop
	Idle        []Idle
	Trainings   []Training
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
	Simulated    bool // not measured
}

// Training is a task that reports its progress to Prometheus.
type Training struct {
	Task       tasks.Address
	Team       string    // empty for none
	Started    time.Time // of its workers
	Checkpoint time.Time // the last one; zero for none
	Rate       float64   // samples a second; NaN if unknown, as Usual
	Usual      float64   // its usual rate with as many workers
}

// findings returns what all rules find. Its cost is linear in the number of tasks. Rules
// that panic are not complete, and the error has their cause.
func (in *Input) findings(t Thresholds, complete map[Rule]bool) (found []Finding, err error) {
	for _, d := range Rules {
		if d.find == nil || t.IsOff(d.Rule) {
			continue
		}
		if failed := governance.Recovered(func() error {
			found = append(found, d.find(in, t)...)
			return nil
		}); failed != nil {
			err = errors.Join(err, fmt.Errorf("evaluate %s: %w", d.Rule, failed))
			complete[d.Rule] = false
		}
	}
	return found, err
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

// groups returns the tasks that a rule is about, by their group.
func (in *Input) groups(about func(*tasks.Task) bool) map[group][]*tasks.Task {
	groups := map[group][]*tasks.Task{}
	for _, task := range in.Tasks {
		if about(task) {
			g := in.groupOf(task.Place())
			groups[g] = append(groups[g], task)
		}
	}
	return groups
}

// waiting finds the tasks of a priority class in a group that wait for too long.
func (in *Input) waiting(t Thresholds) (found []Finding) {
	for g, list := range in.groups(func(task *tasks.Task) bool {
		if !task.State.Waiting() || task.WaitingSince.IsZero() {
			return false
		}
		limit, ok := t.wait(task.PriorityClass)
		return ok && !in.Now.Before(task.WaitingSince.Add(limit))
	}) {
		classes := map[string][]*tasks.Task{}
		for _, task := range list {
			class := task.PriorityClass
			if desired.IsNumber(class) { // they have one limit
				class = desired.NumberPrefix
			}
			classes[class] = append(classes[class], task)
		}
		for name, list := range classes {
			longest := slices.MinFunc(list, func(a, b *tasks.Task) int {
				return cmp.Or(a.WaitingSince.Compare(b.WaitingSince), strings.Compare(a.UID, b.UID))
			})
			limit, _ := t.wait(name)
			f, of := in.about(TaskWaits, g, in.subject(g)+"/"+name)
			f.Since = longest.WaitingSince.Add(limit)
			class := ""
			switch name {
			case "":
			case desired.NumberPrefix:
				class = " with a priority by number"
			default:
				class = " in priority class " + className(name)
			}
			f.Summary = fmt.Sprintf("%s %s%s %s for longer than %s. %s has waited longest, since %s.", count(len(list), "task"), of, class, verb(len(list), "waits", "wait"), duration(limit), nameOf(longest), moment(longest.WaitingSince))
			found = append(found, f)
		}
	}
	return found
}

// preempted finds the groups with tasks that were preempted often.
func (in *Input) preempted(t Thresholds) (found []Finding) {
	for g, list := range in.groups(func(task *tasks.Task) bool { return task.Preemptions >= t.Preemptions && !task.State.Finished() }) {
		most := slices.MaxFunc(list, func(a, b *tasks.Task) int {
			return cmp.Or(cmp.Compare(a.Preemptions, b.Preemptions), strings.Compare(a.UID, b.UID))
		})
		f, of := in.about(TaskPreempted, g, in.subject(g))
		f.Summary = fmt.Sprintf("%s %s %s preempted %s or more, most often %s.", count(len(list), "task"), of, verb(len(list), "was", "were"), count(int(t.Preemptions), "time"), nameOf(most))
		found = append(found, f)
	}
	return found
}

// failing finds the groups of whose tasks too many failed.
func (in *Input) failing(t Thresholds) (found []Finding) {
	for g, ended := range in.groups(func(task *tasks.Task) bool {
		return task.State.Finished() && in.Now.Sub(task.FinishedAt) < failurePeriod
	}) {
		all := len(ended)
		failed := slices.DeleteFunc(ended, func(task *tasks.Task) bool { return task.State != tasks.Failed })
		if len(failed) < t.Failures || len(failed)*100 < t.FailureRate*all {
			continue
		}
		last := slices.MaxFunc(failed, func(a, b *tasks.Task) int {
			return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), strings.Compare(a.UID, b.UID))
		})
		f, of := in.about(TasksFail, g, in.subject(g))
		f.Summary = fmt.Sprintf("%d of %s %s that ended in the last hour failed, last %s.", len(failed), count(all, "task"), of, nameOf(last))
		found = append(found, f)
	}
	return found
}

// notAdmitted finds first tasks that fit and are not admitted, and those whose queue does not
// work.
func (in *Input) notAdmitted(Thresholds) (found []Finding) {
	for _, h := range in.Heads {
		if h.Verdict == nil {
			continue
		}
		f, of := in.about(NotAdmitted, in.groupOf(h.Place()), h.Namespace+"/"+h.Queue)
		switch h.Verdict.Constraint {
		case explain.PendingEvaluation:
			f.Summary = fmt.Sprintf("%s %s fits the quota, and Kueue does not admit it. Check that Kueue runs.", nameOf(h.Task), of)
		case explain.QueueInactive, explain.CohortCycle, explain.NoClusterQueue, explain.WrongNamespace:
			f.Summary = fmt.Sprintf("Kueue admits no task %s: the queue of %s does not work.", of, nameOf(h.Task))
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// ownQuota finds first tasks that fit the quota of their own team.
func (in *Input) ownQuota(Thresholds) (found []Finding) {
	for _, h := range in.Heads {
		v := h.Verdict
		if v != nil && (v.Constraint == explain.Quota || v.Constraint == explain.Preempting) && v.Shortage != nil && v.Shortage.Needed > v.Shortage.Available && v.Shortage.Used.Plus(v.Shortage.Needed) <= v.Shortage.Nominal {
			f, of := in.about(OwnQuotaWaits, in.groupOf(h.Place()), h.Namespace+"/"+h.Queue)
			f.Summary = fmt.Sprintf("%s %s waits, although it fits the team's own quota in %s: others use that quota and have not returned it.", nameOf(h.Task), of, v.Shortage.Flavor)
			found = append(found, f)
		}
	}
	return found
}

func (in *Input) looping(Thresholds) (found []Finding) {
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

func (in *Input) idle(Thresholds) (found []Finding) {
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
		simulated := ""
		if first.Simulated {
			simulated = " (simulated)"
		}
		f.Summary = fmt.Sprintf("%s %s %s not use %s %s, longest %s %s, since %s%s.", count(len(list), "running task"), of, verb(len(list), "does", "do"), verb(len(list), "its", "their"), count(int(accelerators), "accelerator"), first.Task.Kind, first.Task.Name, moment(first.Since), simulated)
		found = append(found, f)
	}
	return found
}

// noCheckpoint finds the groups with trainings that have not written a checkpoint for too long.
// Workers that have just started continue from one. A training that never reports one may write
// them in another way.
func (in *Input) noCheckpoint(t Thresholds) (found []Finding) {
	since := func(of Training) time.Time { return governance.Later(of.Checkpoint, of.Started) }
	groups := map[group][]Training{}
	for _, training := range in.Trainings {
		if !training.Checkpoint.IsZero() && !in.Now.Before(since(training).Add(t.NoCheckpoint)) {
			g := group{training.Task.Namespace, training.Team}
			groups[g] = append(groups[g], training)
		}
	}
	for g, list := range groups {
		first := slices.MinFunc(list, func(a, b Training) int {
			return cmp.Or(since(a).Compare(since(b)), strings.Compare(a.Task.UID, b.Task.UID))
		})
		f, of := in.about(NoCheckpoint, g, in.subject(g))
		f.Since = since(first).Add(t.NoCheckpoint)
		last := "since it started at " + moment(first.Started)
		if !first.Checkpoint.Before(first.Started) {
			last = "since " + moment(first.Checkpoint)
		}
		f.Summary = fmt.Sprintf("%s %s %s written no checkpoint for longer than %s, longest %s %s, %s.", count(len(list), "training"), of, verb(len(list), "has", "have"), duration(t.NoCheckpoint), first.Task.Kind, first.Task.Name, last)
		found = append(found, f)
	}
	return found
}

// slowBelow is the share of its usual rate below which a training is slow, in percent.
const slowBelow = 50

// slow finds trainings that are slower than usual. Each is a subject of its own: each must be slow
// for long enough.
func (in *Input) slow(Thresholds) (found []Finding) {
	for _, t := range in.Trainings {
		if !(t.Rate*100 < t.Usual*slowBelow) { // also without one of the rates
			continue
		}
		g := group{t.Task.Namespace, t.Team}
		f, of := in.about(TrainingSlow, g, in.subject(g)+"/"+t.Task.UID)
		f.Summary = fmt.Sprintf("%s %s %s does less than %s of its usual samples a second with as many workers.", t.Task.Kind, t.Task.Name, of, percent(slowBelow))
		found = append(found, f)
	}
	return found
}

func (in *Input) idleQuota(Thresholds) (found []Finding) {
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

// departmentSubject begins the subject of an alert about a department, before its name.
const departmentSubject = "department/"

// budgets finds each step that the budget of a team or a department has reached. A status of the
// period before is none.
func (in *Input) budgets(Thresholds) (found []Finding) {
	add := func(who string, about Finding, b *v1alpha1.Budget, s *v1alpha1.BudgetStatus) {
		if b == nil || s == nil || !in.Now.Before(s.To.Time) {
			return
		}
		for _, step := range b.Steps {
			if s.Percent >= int64(step.Percent) {
				f := about
				f.Rule, f.Subject = Budget, about.Subject+"/"+string(step.Action)+"/"+s.From.UTC().Format(time.DateOnly)
				f.Summary = fmt.Sprintf("%s has used %d %% of its budget of %s. %s", who, step.Percent, describe.BudgetAmount(b), budgetEffects[step.Action])
				found = append(found, f)
			}
		}
	}
	for i := range in.Allocations {
		a := &in.Allocations[i]
		add("Team "+a.Name, Finding{Subject: a.Name, Team: a.Name, Namespace: a.Status.Namespace}, a.Spec.Budget, a.Status.Budget)
	}
	for i := range in.Departments {
		d := &in.Departments[i]
		add("Department "+d.Name, Finding{Subject: departmentSubject + d.Name}, d.Spec.Budget, d.Status.Budget)
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

func (in *Input) lostNodes(Thresholds) (found []Finding) {
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

func (in *Input) policyDiffers(Thresholds) (found []Finding) {
	if in.Policy != nil {
		ready := meta.FindStatusCondition(in.Policy.Status.Conditions, "Ready")
		if ready != nil && ready.Status == metav1.ConditionFalse {
			found = append(found, Finding{Rule: PolicyDiffers, Subject: in.Policy.Name, Since: ready.LastTransitionTime.Time, Summary: "The cluster does not match the cluster policy. " + sentence(ready.Message)})
		}
	}
	return found
}

func (in *Input) historyRefused(Thresholds) (found []Finding) {
	if in.Refused == 0 || in.LastRefused == nil {
		return nil
	}
	return []Finding{{Rule: HistoryRefused, Subject: "history", Summary: fmt.Sprintf("The history database refused %s in the last day, and pages lack what was refused. The last one, of %s: %s", count(in.Refused, "record"), in.LastRefused.Writer, sentence(in.LastRefused.Reason))}}
}

func nameOf(t *tasks.Task) string { return t.Kind + " " + t.Name }

func className(object string) string { return strings.TrimSuffix(object, "-priority") }

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return quota.Thousands(strconv.Itoa(n)) + " " + noun
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func percent(n int) string { return strconv.Itoa(n) + "%" }

// moment formats a time, which does not change while the time passes: a summary that
// changes is saved again.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// duration formats a threshold, such as "3 days" or "5 minutes".
func duration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		noun string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= unit.of && d%unit.of == 0 {
			return count(int(d/unit.of), unit.noun)
		}
	}
	if d%time.Second == 0 {
		return count(int(d/time.Second), "second")
	}
	return d.String()
}

// sentence returns text as a sentence.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%s%s.", strings.ToUpper(text[:1]), text[1:])
}
