package tasks

import (
	"context"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/loopguard"

	"k8s.io/apimachinery/pkg/types"
)

// GuardedLoop is a preemption loop as a viewer may know it.
type GuardedLoop struct {
	loopguard.Loop
	// Preempted and For are the tasks of the two Workloads. A task that the viewer
	// may not see, or that is deleted, is nil.
	Preempted, For *Task
	Team, ForTeam  string // of the tasks; empty for none
	Restricted     bool   // the other task belongs to a team that the viewer does not see
}

// Concerns reports whether a task is one of the two.
func (l GuardedLoop) Concerns(t *Task) bool {
	return l.Preempted != nil && l.Preempted.UID == t.UID || l.For != nil && l.For.UID == t.UID
}

// Hold returns the mark of a task that the loop guard keeps out of admission; ok
// is false for any other task.
func (t *Task) Hold() (mark loopguard.Mark, ok bool) {
	if t.main == nil || t.State.Finished() {
		return loopguard.Mark{}, false
	}
	return loopguard.HoldOf(t.main)
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
		g.Restricted = hidden || other
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

// party returns the task of a Workload where the viewer may see it, and whether
// they may not.
func (v viewer) party(p loopguard.Party) (t *Task, team string, hidden bool) {
	if v.sees != nil && !v.sees[p.Namespace] {
		return nil, "", true
	}
	v.index.mu.Lock()
	t = v.index.tasks[v.index.group[p.UID]]
	v.index.mu.Unlock()
	return t, v.teams[p.Namespace], false
}

// Watcher takes in what the loop guard sees: steps in the life of tasks, and which
// runs and waits averages leave out.
func (s *Service) Watcher() loopguard.Watcher { return guardWatcher{s} }

type guardWatcher struct{ *Service }

// Loop implements loopguard.Watcher.
func (g guardWatcher) Loop(l loopguard.Loop) {
	g.RecordLoop(Loop{Namespace: l.Victim.Namespace, WorkloadUID: l.Victim.UID, Since: l.Since, Last: l.Last})
	if g.index.notify != nil { // also where only its state changed
		g.index.notify()
	}
}

var guardSteps = map[loopguard.What]EventType{
	loopguard.Detected: WasLooped, loopguard.WasHeld: WasHeld, loopguard.WasReleased: WasReleased, loopguard.WasTakenOver: WasReleased,
}

// Step implements loopguard.Watcher.
func (g guardWatcher) Step(s loopguard.Step) {
	g.RecordEvent(s.Of.Namespace, s.Of.UID, Event{Type: guardSteps[s.What], At: s.At, Reason: s.Reason, Preemptor: g.taskOfPart(s.Other.UID)})
}

func (s *Service) taskOfPart(uid types.UID) *Task {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.tasks[s.index.group[uid]]
}
