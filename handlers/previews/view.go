package previews

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// failure returns a sentence about why there is no preview, and logs an error that the sentence
// does not name.
func failure(ctx context.Context, err error) string {
	var ours *governance.Error
	switch {
	case errors.As(err, &ours) && ours.Kind != governance.Internal:
		return ours.Message
	case ctx.Err() != nil:
		return "The simulation took too long."
	}
	slog.Default().Error("preview failed", "error", err)
	return "The simulation failed."
}

// variant maps a preview to its view.
func variant(view views.PreviewVariant, p queries.Preview) views.PreviewVariant {
	view.State, view.Failure, view.Time, view.Notes = views.PreviewReady, "", format.Time(p.Time), notes(p)
	var counts []string
	for _, e := range effects {
		rows, n := e.rows(e.of(&p))
		view.Tasks = append(view.Tasks, rows...)
		if n > 0 {
			counts = append(counts, fmt.Sprintf(e.counts, format.Tasks(n)))
		}
	}
	switch {
	case len(counts) > 0:
		view.Summary = format.Capitalize(strings.Join(counts, ", ")) + "."
	case len(view.Tasks) > 0:
		view.Summary = "The change itself affects no task that you see."
	default:
		view.Summary = "No task starts, is preempted, or waits longer because of this change."
	}
	for _, team := range p.Teams {
		view.Teams = append(view.Teams, teamRows(team)...)
	}
	view.MoreTeams, view.MoreObjects = p.MoreTeams, p.MoreObjects
	for _, o := range p.Objects {
		object := views.PreviewObject{Name: o.Kind + " " + o.Name}
		for _, line := range o.Lines {
			object.Lines = append(object.Lines, views.YAMLLine{Text: line.Text, Added: line.Added, Removed: line.Removed})
		}
		view.Objects = append(view.Objects, object)
	}
	return view
}

// notes returns sentences about what the simulation leaves out.
func notes(p queries.Preview) (list []string) {
	if !p.Settled {
		list = append(list, "Preemptions had not ended within a minute of simulated time. This is how they begin.")
	}
	if p.OneOrder {
		list = append(list, "In a cluster of this size, what depends on a tie is not marked.")
	}
	if slices.Contains(p.Omitted, simulate.OmittedTopology) {
		list = append(list, "Placement by topology is not simulated: a task can wait although its quota is free.")
	}
	if slices.Contains(p.Omitted, simulate.OmittedChecks) {
		list = append(list, "Admission checks count as passed.")
	}
	others := slices.DeleteFunc(slices.Clone(p.Omitted), func(o simulate.Omission) bool {
		return o == simulate.OmittedTopology || o == simulate.OmittedChecks
	})
	if text := format.NotSimulated(others); text != "" {
		list = append(list, text)
	}
	if p.VersionNote != "" {
		list = append(list, p.VersionNote)
	}
	return list
}

// effect describes one effect on tasks.
type effect struct {
	key, tone, label, counts, why string
	of                            func(*queries.Preview) *queries.Effects
}

// effects are in the order of the table.
var effects = []effect{
	{key: "started", tone: "ok", label: "Starts", counts: "%s would start", of: func(p *queries.Preview) *queries.Effects { return &p.Started }},
	{key: "preempted", tone: "pre", label: "Preempted", counts: "%s would be preempted", of: func(p *queries.Preview) *queries.Effects { return &p.Preempted }},
	{key: "evicted", tone: "bad", label: "Requeued", counts: "%s would be stopped and requeued", of: func(p *queries.Preview) *queries.Effects { return &p.Evicted }},
	{key: "missed", tone: "wait", label: "Waits", counts: "%s would wait instead of starting", why: "starts without this change", of: func(p *queries.Preview) *queries.Effects { return &p.Missed }},
	{key: "exceeding", tone: "bad", label: "Cannot start", counts: "%s could no longer start", why: "requests more than its team can ever get", of: func(p *queries.Preview) *queries.Effects { return &p.Exceeding }},
}

// rows returns the rows of one effect, and the number of tasks that have it because
// of the change, as far as the reader sees them.
func (e effect) rows(of *queries.Effects) (rows []views.PreviewTask, n int) {
	row := views.PreviewTask{Effect: e.key, Tone: e.tone, Label: e.label}
	for _, t := range of.Listed {
		r := row
		r.Workload, r.Name, r.URL, r.Team = t.Task.Namespace+"/"+t.Workload, t.Task.Name, urls.Task(t.Task), t.Team
		r.Uses, r.Why, r.Anyway, r.Tied = usageWords(t.Usage), cmp.Or(reasonWords(t), e.why), t.Anyway, t.Tied
		rows = append(rows, r)
		if !t.Anyway {
			n++
		}
	}
	if of.More > 0 {
		r := row
		r.Name, r.Uses = "and "+format.Count(of.More, "smaller task"), usageWords(of.Rest)
		rows, n = append(rows, r), n+of.More
	}
	if of.Others != nil {
		r := row
		r.Name, r.Uses = "Tasks of other teams", usageWords(of.Others)
		rows = append(rows, r)
	}
	return rows, n
}

// preemptions are Kueue's reasons for a preemption, in words.
var preemptions = map[string]string{
	kueue.InClusterQueueReason:                "has a lower priority",
	kueue.InCohortReclamationReason:           "its team borrows what another reclaims",
	kueue.InCohortFairSharingReason:           "its team borrows more than its fair share",
	kueue.InCohortReclaimWhileBorrowingReason: "has a lower priority and runs on borrowed compute",
}

func reasonWords(t queries.TaskEffect) string {
	words := preemptions[t.Reason]
	switch {
	case t.By != "" && words != "":
		return fmt.Sprintf("for %s: %s", t.By, words)
	case t.By != "":
		return "for " + t.By
	}
	switch t.Reason {
	case kueue.WorkloadEvictedByClusterQueueStopped, kueue.WorkloadEvictedByLocalQueueStopped:
		return "the queue is drained"
	}
	return words
}

// usageWords returns amounts by pool: the accelerators, or everything of a pool
// without.
func usageWords(usage quota.FlavorResourceQuantities) string {
	pools := map[string]quota.Resources{}
	for fr, amount := range usage {
		if pools[fr.Flavor] == nil {
			pools[fr.Flavor] = quota.Resources{}
		}
		pools[fr.Flavor][fr.Resource] = pools[fr.Flavor][fr.Resource].Plus(amount)
	}
	var parts []string
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		shown := pools[pool]
		if shown.Accelerators() > 0 {
			maps.DeleteFunc(shown, func(name string, _ resources.Amount) bool { return catalog.FollowsAccelerators(name) })
		}
		if words := format.ShortAmounts(shown); words != "" {
			parts = append(parts, words+" of "+pool)
		}
	}
	return strings.Join(parts, ", ")
}

// teamRows returns the rows of a team. Where the accelerators of a pool change, what
// comes with them is left out.
func teamRows(team queries.TeamEffect) (rows []views.PreviewTeam) {
	accelerated := map[string]bool{}
	for _, f := range team.Figures {
		accelerated[f.Flavor] = accelerated[f.Flavor] || catalog.IsAccelerator(f.Resource)
	}
	for _, f := range team.Figures {
		if accelerated[f.Flavor] && catalog.FollowsAccelerators(f.Resource) {
			continue
		}
		figure := func(b queries.BeforeAfter) views.PreviewFigure {
			return views.PreviewFigure{Before: quota.Grouped(f.Resource, b.Before), After: quota.Grouped(f.Resource, b.After)}
		}
		rows = append(rows, views.PreviewTeam{
			Team: cmp.Or(team.Team, "Other teams"), SameTeam: len(rows) > 0, Pool: f.Flavor, Resource: f.Resource, Label: format.ResourceLabel(f.Resource),
			Allocated: figure(f.Allocated), Used: figure(f.Used), Borrowed: figure(f.Borrowed),
		})
	}
	return rows
}
