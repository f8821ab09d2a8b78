package queries

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// maxListed bounds each list of tasks, teams and objects in a preview.
const maxListed = 50

// Simulated is a change that was simulated, with the names of all teams.
type Simulated struct {
	Snapshot *simulate.Snapshot
	Change   simulate.Change
	Report   *simulate.Report
	Queues   map[string]QueueOwner // ClusterQueues of teams, before and after the change
	// Subject is the team whose allocation changes: its reviewer sees its figures.
	// Empty if the policy changes.
	Subject string
	Objects []ObjectDiff
}

// QueueOwner is the team of a ClusterQueue.
type QueueOwner struct{ Team, Namespace string }

// ObjectDiff is how one object changes, as YAML.
type ObjectDiff struct {
	Kind, Name string
	Queue      string // the ClusterQueue of the team that it belongs to; empty for none
	Lines      []textdiff.Line
}

// Preview is what a change does, as one viewer sees it.
type Preview struct {
	Time    time.Time
	Settled bool // the simulation came to its end
	// OneOrder reports that ties were broken in one order only: no effect is Tied.
	OneOrder bool
	// Started wait now and start. Preempted and Evicted lose their quota. Missed start
	// without the change, and wait with it. Exceeding wait, and can no longer start.
	Started, Preempted, Evicted, Missed, Exceeding Effects

	Teams     []TeamEffect // whose figures change; those of other teams last, as one
	MoreTeams int          // that are not in Teams

	Objects     []ObjectDiff
	MoreObjects int // that are not in Objects
	Omitted     []simulate.Omission
	VersionNote string // see live.VersionNote
}

// Effects are the tasks with one effect.
type Effects struct {
	Listed []TaskEffect // the largest that the viewer sees
	// More is how many further ones they see, which use Rest. Others use the sum of
	// those that they do not see, whose number is hidden.
	More         int
	Rest, Others quota.FlavorResourceQuantities
}

// Empty reports whether no task has the effect.
func (e Effects) Empty() bool { return len(e.Listed) == 0 && e.More == 0 && e.Others == nil }

// TaskEffect is what happens to a task that the viewer sees.
type TaskEffect struct {
	Task     *tasks.Task
	Team     string // empty for none
	Workload string // its name
	Usage    quota.FlavorResourceQuantities
	By       string // the preemptor, or "another team"
	Reason   string // Kueue's, in one word
	Anyway   bool   // without the change too
	Tied     bool   // in some orders of ties only
}

// TeamEffect is what a team has without and with a change: nominal quota, and usage
// at the end of the simulation.
type TeamEffect struct {
	Team    string // empty for the sum of other teams
	Figures []TeamFigure
}

// TeamFigure is one resource of one pool.
type TeamFigure struct {
	quota.FlavorResource
	Allocated, Used, Borrowed BeforeAfter
}

// BeforeAfter is an amount without and with a change.
type BeforeAfter struct{ Before, After resources.Amount }

// Differs reports whether the change changes the amount.
func (b BeforeAfter) Differs() bool { return b.Before != b.After }

// Preview returns what a simulated change does, with the names that user may see.
func (s *Service) Preview(ctx context.Context, user governance.User, c Simulated) (Preview, error) {
	v, err := s.view(ctx, user)
	if err != nil {
		return Preview{}, err
	}
	return v.preview(c), nil
}

// preview is the filter of previews: only what it returns is shown.
func (v viewer) preview(c Simulated) Preview {
	p := Preview{Time: c.Snapshot.Time, Settled: c.Report.Settled, Omitted: c.Snapshot.Omitted, VersionNote: live.VersionNote(c.Snapshot, c.Report)}
	workloads := newWorkloadNames(c.Snapshot, v).workloads
	p.Started, p.Preempted = v.effects(c.Report.Started, workloads), v.effects(c.Report.Preempted, workloads)
	p.Evicted, p.Missed = v.effects(c.Report.Evicted, workloads), v.effects(c.Report.Missed, workloads)
	exceeding := make([]simulate.Effect, len(c.Report.Exceeding))
	for i, key := range c.Report.Exceeding {
		exceeding[i] = simulate.Effect{Workload: key}
	}
	p.Exceeding = v.effects(exceeding, workloads)
	p.Teams, p.MoreTeams = v.teamEffects(c)
	for _, o := range c.Objects {
		if len(o.Lines) > 0 && (o.Queue == "" || v.seesQueue(c, o.Queue)) {
			p.Objects = append(p.Objects, o)
		}
	}
	if more := len(p.Objects) - maxListed; more > 0 {
		p.Objects, p.MoreObjects = p.Objects[:maxListed], more
	}
	return p
}

// effects returns the effects on tasks that the viewer sees, the largest first. All
// others are one sum, so that their number is hidden too.
func (v viewer) effects(all []simulate.Effect, workloads map[string]*kueue.Workload) (e Effects) {
	for _, effect := range all {
		namespace, name, _ := strings.Cut(effect.Workload, "/")
		if !v.seesNamespace(namespace) {
			if e.Others == nil {
				e.Others = quota.FlavorResourceQuantities{}
			}
			e.Others.Add(effect.Usage)
			continue
		}
		var uid types.UID
		place := tasks.Place{Namespace: namespace}
		if w := workloads[effect.Workload]; w != nil {
			uid, place = w.UID, tasks.PlaceOf(w)
		}
		task := v.index.ByWorkload(uid)
		if task == nil { // deleted since
			task = &tasks.Task{Namespace: namespace, Kind: "Workload", Name: name}
		}
		e.Listed = append(e.Listed, TaskEffect{Task: task, Team: v.team(place), Workload: name, Usage: effect.Usage,
			By: v.preemptor(effect.By, workloads), Reason: effect.Reason, Anyway: effect.Anyway, Tied: effect.Tied})
	}
	slices.SortStableFunc(e.Listed, func(a, b TaskEffect) int {
		return cmp.Or(compareUsage(b.Usage, a.Usage), strings.Compare(a.Team, b.Team), strings.Compare(a.Workload, b.Workload))
	})
	if len(e.Listed) > maxListed {
		e.More, e.Rest = len(e.Listed)-maxListed, quota.FlavorResourceQuantities{}
		for _, t := range e.Listed[maxListed:] {
			e.Rest.Add(t.Usage)
		}
		e.Listed = e.Listed[:maxListed]
	}
	return e
}

// preemptor returns the name of the task of a Workload, as the viewer may see it.
func (v viewer) preemptor(key string, workloads map[string]*kueue.Workload) string {
	namespace, name, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		return ""
	case !v.seesNamespace(namespace):
		return anotherTeam
	}
	if w := workloads[key]; w != nil {
		if task := v.index.ByWorkload(w.UID); task != nil {
			return task.Name
		}
	}
	return name
}

// compareUsage compares by the first resource in the order of quota.Compare of which
// one has more.
func compareUsage(a, b quota.FlavorResourceQuantities) int {
	sumA, sumB := a.ByResource(), b.ByResource()
	both := maps.Clone(sumA)
	maps.Copy(both, sumB)
	for _, name := range both.Names() {
		if c := cmp.Compare(sumA[name], sumB[name]); c != 0 {
			return c
		}
	}
	return 0
}

// seesQueue reports whether the viewer sees the team of a ClusterQueue.
func (v viewer) seesQueue(c Simulated, queue string) bool {
	owner, owned := c.Queues[queue]
	return v.scope.All || owned && (v.scope.Includes(owner.Namespace) || owner.Team == c.Subject && c.Subject != "")
}

// teamEffects returns the teams with a figure that changes. Those that the viewer
// does not see are one sum.
func (v viewer) teamEffects(c Simulated) (list []TeamEffect, more int) {
	before, after := nominals(c.Snapshot), nominals(c.Change.Apply(c.Snapshot))
	byTeam := map[string]map[quota.FlavorResource]TeamFigure{}
	for queue, usage := range c.Report.Queues {
		team := ""
		if v.seesQueue(c, queue) {
			team = cmp.Or(c.Queues[queue].Team, queue)
		}
		if byTeam[team] == nil {
			byTeam[team] = map[quota.FlavorResource]TeamFigure{}
		}
		for fr, f := range figures(before[queue], after[queue], usage) {
			sum := byTeam[team][fr]
			sum.FlavorResource = fr
			for to, amount := range map[*BeforeAfter]BeforeAfter{&sum.Allocated: f.Allocated, &sum.Used: f.Used, &sum.Borrowed: f.Borrowed} {
				to.Before = to.Before.Plus(amount.Before)
				to.After = to.After.Plus(amount.After)
			}
			byTeam[team][fr] = sum
		}
	}
	for team, figures := range byTeam {
		effect := TeamEffect{Team: team}
		for _, f := range figures {
			if f.Allocated.Differs() || f.Used.Differs() || f.Borrowed.Differs() {
				effect.Figures = append(effect.Figures, f)
			}
		}
		slices.SortFunc(effect.Figures, func(a, b TeamFigure) int {
			return cmp.Or(strings.Compare(a.Flavor, b.Flavor), quota.Compare(a.Resource, b.Resource))
		})
		if len(effect.Figures) > 0 {
			list = append(list, effect)
		}
	}
	rank := func(e TeamEffect) int { // the subject first, then by name, others last
		switch e.Team {
		case c.Subject:
			return -1
		case "":
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b TeamEffect) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Team, b.Team)) })
	if len(list) > maxListed {
		list, more = list[:maxListed], len(list)-maxListed
	}
	return list, more
}

// figures returns the figures of one queue.
func figures(before, after quota.FlavorResourceQuantities, usage simulate.QueueChange) map[quota.FlavorResource]TeamFigure {
	all := map[quota.FlavorResource]TeamFigure{}
	for _, quantities := range []quota.FlavorResourceQuantities{before, after, usage.Before.Usage, usage.After.Usage} {
		for fr := range quantities {
			all[fr] = TeamFigure{
				Allocated: BeforeAfter{before[fr], after[fr]},
				Used:      BeforeAfter{usage.Before.Usage[fr], usage.After.Usage[fr]},
				Borrowed:  BeforeAfter{max(0, usage.Before.Usage[fr].Minus(before[fr])), max(0, usage.After.Usage[fr].Minus(after[fr]))},
			}
		}
	}
	return all
}

// nominals returns the nominal quota of each ClusterQueue.
func nominals(s *simulate.Snapshot) map[string]quota.FlavorResourceQuantities {
	all := make(map[string]quota.FlavorResourceQuantities, len(s.ClusterQueues))
	for _, q := range s.ClusterQueues {
		all[q.Name] = quota.FlavorResourceQuantities{}
		for fr, r := range quota.ResourceQuotas(q.Spec.ResourceGroups) {
			all[q.Name][fr] = resources.AmountFromQuantity(fr.Resource, r.NominalQuota)
		}
	}
	return all
}
