package tasks

import (
	"context"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
)

// noticedLoops is how many loops a notice names.
const noticedLoops = 3

// LoopNotice returns the active preemption loops within a scope; nil for none.
func LoopNotice(ctx context.Context, from console.Tasks, scope access.Scope) (*views.LoopNotice, error) {
	all, err := from.LoopsWithin(ctx, scope)
	if err != nil {
		return nil, err
	}
	var loops []queries.GuardedLoop
	for _, l := range all {
		if l.State != loopguard.Over {
			loops = append(loops, l)
		}
	}
	if len(loops) == 0 {
		return nil, nil
	}
	notice := &views.LoopNotice{Title: format.Count(len(loops), "preemption loop"), Lines: loopLines(loops[:min(len(loops), noticedLoops)])}
	if more := len(loops) - noticedLoops; more > 0 {
		notice.More = fmt.Sprintf("And %d more.", more)
	}
	return notice, nil
}

func loopLines(loops []queries.GuardedLoop) (lines []views.LoopLine) {
	for _, l := range loops {
		line := views.LoopLine{
			ID: "loop-" + l.ID(), Times: fmt.Sprintf("%s in %s", format.Times(l.Preemptions), format.Duration(max(time.Second, l.Last.Sub(l.Since)))),
			Preempted: loopTask(l.Preempted, l.Team), For: loopTask(l.For, l.ForTeam),
		}
		line.Cause = "The task is preempted again and again, and the other is not admitted, or only for a moment."
		if l.Rule == "InCohortFairSharing" {
			line.Cause += " This is a known defect of Kueue's fair sharing."
		}
		line.Tone, line.State = loopState(l, line)
		if l.State == loopguard.Held {
			line.Until = l.HeldUntil.UTC().Format(time.RFC3339)
		}
		lines = append(lines, line)
	}
	return lines
}

// loopTask links to one task of a loop. A task that the reader is not allowed to
// see, or that is deleted, has no name.
func loopTask(t *tasks.Task, team string) views.TaskLink {
	switch {
	case t == nil && team != "":
		return views.TaskLink{Name: "a deleted task of team " + team}
	case t == nil:
		return views.TaskLink{Name: "a task of another team"}
	}
	return views.TaskLink{Name: t.Name, URL: urls.Task(t)}
}

// notBroken explains why the loop guard does not break a loop, and what to do.
var notBroken = map[loopguard.Reason]string{
	loopguard.WarnOnly:     "Kuota only warns. To end the loop, stop the preempted task for some seconds, or have the cluster policy break loops.",
	loopguard.NotHoldable:  "Kuota does not hold tasks of this kind, since their pods would be lost. Delete one of the two tasks to end the loop.",
	loopguard.NotGoverned:  "Kuota does not manage this queue, and changes no task in it. Stop the preempted task for some seconds to end the loop.",
	loopguard.Overruled:    "A person stopped or resumed the preempted task, so the loop guard leaves it alone for ten minutes.",
	loopguard.OtherHeld:    "The loop guard breaks this loop at another of its tasks.",
	loopguard.NotPermitted: "Kuota could not hold the preempted task: the API server refused it. Kuota tries again.",
}

func loopState(l queries.GuardedLoop, line views.LoopLine) (tone, text string) {
	switch l.State {
	case loopguard.Held:
		if l.Repeated() {
			return "wait", fmt.Sprintf("The loop guard holds %s for longer, since the loop came back.", line.Preempted.Name)
		}
		return "wait", fmt.Sprintf("The loop guard holds %s until %s is admitted.", line.Preempted.Name, line.For.Name)
	case loopguard.Released:
		return "ok", fmt.Sprintf("The loop guard held %s, which can be admitted again.", line.Preempted.Name)
	case loopguard.Over:
		return "ok", "The loop is over."
	}
	if text := notBroken[l.NotHeld]; text != "" {
		return "bad", text
	}
	return "bad", fmt.Sprintf("The loop guard is about to hold %s.", line.Preempted.Name)
}
