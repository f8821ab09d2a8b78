package tasks

import (
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	taskviews "kuota.dev/kuota/views/tasks"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// positionOf returns the position of a task in its queue; nil for a task that does
// not wait.
func positionOf(d queries.Detail, now time.Time) *taskviews.QueuePosition {
	if d.Position == 0 {
		return nil
	}
	of := func(place, all int) string {
		return fmt.Sprintf("%s of %s", format.Ordinal(place), format.Thousands(int64(all)))
	}
	p := &taskviews.QueuePosition{
		Text: of(d.Position, d.QueueLength), Queue: d.Queue, For: format.Elapsed(d.Waited(now), true),
		Before: named(d.Ahead), Behind: named(d.Behind),
		MoreBefore: max(0, d.Position-1-len(d.Ahead)), MoreBehind: max(0, d.QueueLength-d.Position-len(d.Behind)),
		Source: "Calculated by Kueue's rule: Kueue does not report it now.",
	}
	if d.ByKueue {
		p.Source = "As Kueue reports it."
	}
	if d.ByUsage {
		p.Source += " The usage of the team's shares comes before priority."
	}
	switch {
	case d.Shared:
		p.Cluster = "shared with other teams"
	case d.ClusterQueuePosition > 0 && !d.OnlyLocalQueue:
		p.Cluster = of(d.ClusterQueuePosition, d.ClusterQueueLength)
	}
	switch stood := now.Sub(d.PositionSince); {
	case d.PositionSince.IsZero() || d.PositionEarlier && stood < time.Minute: // the console has just started to observe the position
	case d.PositionEarlier:
		p.Since = "at least " + format.Age(stood)
	default:
		p.Since = format.Age(stood)
	}
	return p
}

// rules describes the reasons for which Kueue preempts.
var rules = map[string]string{
	"InClusterQueue":                "a task of a higher class in its own team",
	"InCohortReclamation":           "another team reclaims its own quota",
	"InCohortFairSharing":           "fair sharing between teams",
	"InCohortReclaimWhileBorrowing": "a borrowing task of a higher class in another team",
	"ConfigurablePreemption":        "a rule of a PreemptionConfig", // Kueue 0.20
}

func ranWords(e timeline.Event) string {
	if e.Ran < 0 {
		return ""
	}
	return "it had run for " + format.Duration(e.Ran)
}

// by returns the preemptor of a task as a link, or words for one without a name.
func by(e timeline.Event) (link *views.TaskLink, unnamed string) {
	switch {
	case e.Preemptor == nil:
		return nil, "a task that was deleted or that you cannot see"
	case e.PreemptorDeleted:
		return &views.TaskLink{Name: e.Preemptor.Name + " (deleted)"}, ""
	}
	return &views.TaskLink{Name: e.Preemptor.Name, URL: urls.Task(e.Preemptor)}, ""
}

// incompleteNote returns a sentence about the part of a task's life that is not
// recorded, or "".
func incompleteNote(d queries.Detail, life []event) string {
	n := d.Omitted - countLosses(life)
	for _, e := range d.Timeline {
		if e.Type.Lost() {
			n += 1 + e.Omitted
		}
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("It lost its quota %s more before this console started. Kueue keeps only the last time.", format.Times(n))
}

// lastPreemption returns what a task was preempted for, as long as it does not run
// again; else nil.
func lastPreemption(d queries.Detail) *taskviews.LastPreemption {
	if d.State != tasks.Preempted && d.State != tasks.Stopping {
		return nil
	}
	for i := len(d.Timeline) - 1; i >= 0; i-- {
		e := d.Timeline[i]
		if e.Type == timeline.Evicted {
			return nil
		}
		if e.Type != timeline.Preempted {
			continue
		}
		loss := &taskviews.LastPreemption{At: e.At.UTC().Format(time.RFC3339), Rule: format.Upper(format.OrDash(rules[e.Reason])), Team: e.PreemptorTeam, Ran: "Unknown"}
		loss.By, loss.Unnamed = by(e)
		if e.Ran >= 0 {
			loss.Ran = format.Duration(e.Ran) + ". Kueue stops the whole task. What is lost depends on its checkpoints."
		}
		return loss
	}
	return nil
}

// sizesOf returns the sizes that a task had, newest first.
func sizesOf(d queries.Detail) (lines []taskviews.SizeLine) {
	for i := len(d.Sizes) - 1; i >= 0; i-- {
		r := d.Sizes[i]
		line := taskviews.SizeLine{At: r.At.UTC().Format(time.RFC3339), Tone: "idle", Pods: format.Pods(r.To)}
		switch r.Cause {
		case timeline.Started:
			line.Tone, line.Text = "ok", "started"
		case timeline.StartedPart:
			line.Tone, line.Text = "ok", "started with the pods that fit"
		case timeline.Scaled:
			line.Text = fmt.Sprintf("scaled down from %d", r.From)
			if r.To > r.From {
				line.Tone, line.Text = "ok", fmt.Sprintf("scaled up from %d", r.From)
			}
		case timeline.Joined:
			line.Tone, line.Text = "ok", fmt.Sprintf("another part was admitted; it had %d", r.From)
		case timeline.LostTo:
			line.Tone, line.Text = "pre", fmt.Sprintf("preempted; it had %d", r.From)
		case timeline.Lost:
			line.Tone, line.Text = "pre", fmt.Sprintf("lost its quota; it had %d", r.From)
		case timeline.Ended:
			line.Text = fmt.Sprintf("ended; it had %d", r.From)
		}
		lines = append(lines, line)
	}
	return lines
}

// timeLimitWords describes the time limit of a task, and when it is reached if the task
// keeps its quota until then; empty for no limit.
func timeLimitWords(d queries.Detail) string {
	if d.TimeLimit == 0 {
		return ""
	}
	words := limitWords(d.TimeLimit)
	elastic := d.Kind == v1alpha1.ElasticJobKind
	if elastic {
		words += " after each start of its minimum"
	}
	if !d.State.UsesQuota() || d.AdmittedAt.IsZero() || elastic {
		return words
	}
	return words + ", reached at " + d.AdmittedAt.Add(d.TimeLimit-d.RanBefore).UTC().Format("2006-01-02 15:04") + " (UTC)"
}

// timedOutWords explains that a task reached its time limit. Kueue counts the time of
// all admissions, and stops a resumed task after what is left.
func timedOutWords(d queries.Detail) string {
	text := fmt.Sprintf("It had its quota for %s, which is its time limit, so Kueue deactivated its Workload. ", limitWords(d.TimeLimit))
	if left := d.TimeLimit - d.RanBefore; left >= time.Minute {
		return text + fmt.Sprintf("Resumed, it can run for another %s; submit it again for more.", limitWords(left.Truncate(time.Second)))
	}
	return text + "Resumed, it would be stopped again at once: submit it again, with a longer time limit if it needs one."
}

// limitWords formats a time limit as users type it, such as 1h30m.
func limitWords(limit time.Duration) string {
	return describe.Duration(&metav1.Duration{Duration: limit})
}
