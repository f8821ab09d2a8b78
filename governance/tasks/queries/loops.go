package queries

import (
	"context"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// GuardedLoop is a preemption loop as a viewer may see it.
type GuardedLoop struct {
	loopguard.Loop
	// Preempted and For are the tasks of the two Workloads; nil if the viewer may
	// not see the task, or it is deleted.
	Preempted, For *tasks.Task
	Team, ForTeam  string // of the tasks; empty for none
}

// Concerns reports whether t is one of the two tasks.
func (l GuardedLoop) Concerns(t *tasks.Task) bool {
	return l.Preempted != nil && l.Preempted.UID == t.UID || l.For != nil && l.For.UID == t.UID
}

// LoopsWithin returns the preemption loops of the last minutes in which a scope
// covers one of the two tasks, those that go on first.
func (s *Service) LoopsWithin(ctx context.Context, scope access.Scope) ([]GuardedLoop, error) {
	if s.Guard == nil {
		return nil, nil
	}
	loops := s.Guard.Loops()
	if len(loops) == 0 {
		return nil, nil
	}
	v, err := s.within(ctx, scope)
	if err != nil {
		return nil, err
	}
	return v.loops(loops), nil
}

func (v viewer) loops(loops []loopguard.Loop) (seen []GuardedLoop) {
	for _, l := range loops {
		g := GuardedLoop{Loop: l}
		var hidden, other bool
		g.Preempted, g.Team, hidden = v.party(l.Victim)
		g.For, g.ForTeam, other = v.party(l.Preemptor)
		if g.Preempted == nil && g.For == nil {
			continue
		}
		if hidden {
			g.Victim = loopguard.Party{}
		}
		if other {
			g.Preemptor = loopguard.Party{}
		}
		seen = append(seen, g)
	}
	return seen
}

// party returns the task of a Workload, nil if the viewer may not see it, and
// whether that is so.
func (v viewer) party(p loopguard.Party) (t *tasks.Task, team string, hidden bool) {
	if !v.seesNamespace(p.Namespace) {
		return nil, "", true
	}
	place := tasks.Place{Namespace: p.Namespace}
	if t = taskOf(v.index, p); t != nil {
		place = t.Place()
	}
	return t, v.team(place), false
}

// taskOf returns the task of a Workload, which can be deleted if it was that of a
// replica; nil for none.
func taskOf(x *index.Index, p loopguard.Party) *tasks.Task {
	if p.Service != "" {
		return x.ByKey(tasks.Key{Namespace: p.Namespace, UID: string(p.Service)})
	}
	return x.ByWorkload(p.UID)
}

// LoopVictim returns the task that a loop preempts, of any team; nil if it is deleted.
func (s *Service) LoopVictim(l loopguard.Loop) *tasks.Task { return taskOf(s.Index, l.Victim) }

// Watcher returns a loopguard.Watcher that records the guard's events in timelines,
// and the runs and waits that averages exclude.
func (s *Service) Watcher() loopguard.Watcher { return guardWatcher{s} }

type guardWatcher struct{ *Service }

// Loop implements loopguard.Watcher.
func (g guardWatcher) Loop(l loopguard.Loop) {
	g.Index.RecordLoop(timeline.Loop{Namespace: l.Victim.Namespace, WorkloadUID: l.Victim.UID, Since: l.Since, Last: l.Last})
	g.Cluster.TaskChanges.Notify() // also if only its state changed
}

var guardSteps = map[loopguard.What]timeline.EventType{
	loopguard.Detected: timeline.LoopDetected, loopguard.WasHeld: timeline.Held, loopguard.WasReleased: timeline.Released, loopguard.WasTakenOver: timeline.Released,
}

// Step implements loopguard.Watcher.
func (g guardWatcher) Step(s loopguard.Step) {
	workload := s.Of.UID
	if t := taskOf(g.Index, s.Of); t != nil && s.Of.Service != "" {
		workload = t.Main.UID
	}
	g.Index.RecordEvent(s.Of.Namespace, workload, timeline.Event{Type: guardSteps[s.What], At: s.At, Reason: s.Reason, Preemptor: taskOf(g.Index, s.Other)})
}
