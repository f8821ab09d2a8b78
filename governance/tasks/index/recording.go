package index

import (
	"slices"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/timeline"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// recording is which tasks changed since the recorder took them. Its zero value
// notes nothing.
type recording struct {
	on      bool
	changed map[tasks.Key]struct{}
	deleted []timeline.Snapshot
}

// maxDeleted is how many deleted tasks wait for a recorder that cannot write. Beyond
// that the oldest are dropped; the recorder finds at its next start that they do not
// exist any more.
const maxDeleted = 20_000

// note records that a task changed; before or t may be nil.
func (r *recording) note(x *Index, before, t *tasks.Task) {
	if !r.on {
		return
	}
	switch {
	case t != nil:
		r.changed[t.Key()] = struct{}{}
	case before != nil:
		delete(r.changed, before.Key())
		if len(r.deleted) == maxDeleted {
			r.deleted = slices.Delete(r.deleted, 0, maxDeleted/10)
		}
		r.deleted = append(r.deleted, timeline.Snapshot{Task: before.AsLost(), Events: x.timeline(before), DeletedAt: x.Now(), Loops: x.loopsOf(before), Lost: x.life.pasts[before.Key()].Lost()})
	}
}

// Record makes the index note from now on which tasks change. It is called before
// the cluster is watched.
func (x *Index) Record() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recording = recording{on: true, changed: map[tasks.Key]struct{}{}}
}

// TakeChanged returns up to n tasks that changed since they were last taken, deleted
// ones first.
func (x *Index) TakeChanged(n int) []timeline.Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.recording
	some := min(n, len(r.deleted))
	taken := slices.Clone(r.deleted[:some])
	r.deleted = slices.Delete(r.deleted, 0, some)
	for key := range r.changed {
		if len(taken) >= n {
			break
		}
		delete(r.changed, key)
		if t := x.tasks[key]; t != nil {
			taken = append(taken, timeline.Snapshot{Task: t, Events: x.timeline(t), Loops: x.loopsOf(t), Lost: x.life.pasts[key].Lost()})
		}
	}
	if len(r.changed) == 0 {
		r.changed = map[tasks.Key]struct{}{} // releases the memory of the start, when all tasks are new
	}
	return taken
}

// RecordAll notes all tasks as changed, after Record.
func (x *Index) RecordAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.recording.on {
		return
	}
	for key := range x.tasks {
		x.recording.changed[key] = struct{}{}
	}
}

// ForgetDeleted drops deleted tasks that were deleted before a time.
func (x *Index) ForgetDeleted(before time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.recording
	r.deleted = slices.DeleteFunc(r.deleted, func(s timeline.Snapshot) bool { return s.DeletedAt.Before(before) })
}

// HasSynced reports whether the index has all Workloads of the start.
func (x *Index) HasSynced() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.workloadsComplete
}

// Workload returns the Workload with a UID, shared with the cache: read only; nil
// for none.
func (x *Index) Workload(uid types.UID) *kueue.Workload {
	x.mu.Lock()
	defer x.mu.Unlock()
	parts := x.parts[x.group[uid]]
	if at := partOf(parts, uid); at >= 0 {
		return parts[at]
	}
	return nil
}

// Exists reports whether a task exists.
func (x *Index) Exists(key tasks.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tasks[key] != nil
}
