package index

import (
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/types"
)

// life is what the index observed and Kueue does not keep. Most tasks have nothing
// in it.
type life struct {
	from         time.Time // end of the first list: everything since was observed
	positionLogs map[QueueKey]*positionLog
	pasts        map[tasks.Key]*timeline.Past
}

// note records a change of a task; before or t may be nil. first reports that the task
// existed before this process.
func (x *Index) note(before, t *tasks.Task, first bool) {
	x.recording.note(x, before, t)
	if x.life.positionLogs == nil {
		x.life = life{from: x.Now(), positionLogs: map[QueueKey]*positionLog{}, pasts: map[tasks.Key]*timeline.Past{}}
	}
	switch {
	case before == nil && t == nil:
		return
	case first && t != nil: // what it was before is unknown
		x.life.from = x.Now()
		if t.Queued() {
			x.life.positionLog(t).extend(sortKeyOf(t))
		}
		x.setPast(t, x.life.pasts[t.Key()].AddPreemptors(t, lockedTasks{x}))
	case t == nil:
		x.recordPosition(before, t)
		delete(x.life.pasts, before.Key())
	case before == nil:
		x.recordPosition(before, t)
		x.setPast(t, x.life.pasts[t.Key()].AddPreemptors(t, lockedTasks{x}))
		x.measureLoops(t)
	default:
		x.recordPosition(before, t)
		x.setPast(t, x.life.pasts[t.Key()].Update(before, t, x.Now(), lockedTasks{x}))
		x.measureLoops(t)
	}
}

func (x *Index) setPast(t *tasks.Task, p *timeline.Past) {
	if p != nil {
		x.life.pasts[t.Key()] = p
	}
}

// lockedTasks implements Tasks while x.mu is locked.
type lockedTasks struct{ x *Index }

func (l lockedTasks) ByWorkload(uid types.UID) *tasks.Task { return l.x.tasks[l.x.group[uid]] }

func (l lockedTasks) Exists(key tasks.Key) bool { return l.x.tasks[key] != nil }

// ByWorkload returns the task of a Workload; nil for none.
func (x *Index) ByWorkload(uid types.UID) *tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return lockedTasks{x}.ByWorkload(uid)
}

// ByKey returns the task with a key; nil for none.
func (x *Index) ByKey(key tasks.Key) *tasks.Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tasks[key]
}

// Timeline returns the events of a task, the oldest first, see Past.Events.
func (x *Index) Timeline(t *tasks.Task) []timeline.Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.timeline(t)
}

func (x *Index) timeline(t *tasks.Task) []timeline.Event {
	return x.life.pasts[t.Key()].Events(t, lockedTasks{x})
}

// Sizes returns the known changes of a task's size, the oldest first, see Past.Sizes.
func (x *Index) Sizes(t *tasks.Task) []timeline.Resize {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.life.pasts[t.Key()].Sizes(t)
}
