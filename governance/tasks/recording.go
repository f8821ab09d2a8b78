package tasks

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Seen is a task as somebody writes it down who keeps what Kubernetes forgets.
type Snapshot struct {
	*Task
	Events    []Event   // all that is known, the oldest first; the first is its submission
	DeletedAt time.Time // when its objects left the cluster; zero while they are there
	Loops     []Loop    // that its Workloads were preempted in
}

// recording is which tasks changed since somebody took them down. The zero value
// notes nothing.
type recording struct {
	on      bool
	changed map[groupKey]struct{}
	left    []Snapshot // gone since
}

// mostLeft is how many tasks that are gone wait to be taken down, while whoever
// does so cannot. Of more, the first are forgotten; when the console starts anew,
// it finds that they are gone.
const mostLeft = 20_000

// note takes in that a task became another; either may be nil.
func (r *recording) note(x *Index, before, t *Task) {
	if !r.on {
		return
	}
	switch {
	case t != nil:
		r.changed[groupKey{t.Namespace, t.UID}] = struct{}{}
	case before != nil:
		key := groupKey{before.Namespace, before.UID}
		delete(r.changed, key)
		if len(r.left) == mostLeft {
			r.left = slices.Delete(r.left, 0, mostLeft/10)
		}
		r.left = append(r.left, Snapshot{Task: before, Events: x.timeline(before, x.life.pasts[key]), DeletedAt: x.now(), Loops: x.loopsOf(before)})
	}
}

// Record has it noted from now on which tasks change. It is called before the
// cluster is watched.
func (s *Service) Record() {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	s.index.recording = recording{on: true, changed: map[groupKey]struct{}{}}
}

// TakeChanged are the tasks that changed since they were taken the last time, n
// at most, those that are gone first.
func (s *Service) TakeChanged(n int) []Snapshot {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	r := &x.recording
	some := min(n, len(r.left))
	taken := slices.Clone(r.left[:some])
	r.left = slices.Delete(r.left, 0, some)
	for key := range r.changed {
		if len(taken) >= n {
			break
		}
		delete(r.changed, key)
		if t := x.tasks[key]; t != nil {
			taken = append(taken, Snapshot{Task: t, Events: x.timeline(t, x.life.pasts[key]), Loops: x.loopsOf(t)})
		}
	}
	if len(r.changed) == 0 {
		r.changed = map[groupKey]struct{}{} // after the start it had room for all that there is
	}
	return taken
}

// Complete tells whether all Workloads are known that there were at the start.
func (s *Service) HasSynced() bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.complete
}

// Workload returns the Workload with a UID, shared with the cache: read only; nil
// for none.
func (s *Service) Workload(uid types.UID) *kueue.Workload {
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	parts := x.parts[x.group[uid]]
	if at := partOf(parts, uid); at >= 0 {
		return parts[at]
	}
	return nil
}

// Has tells whether there is a task with the UID of its owner in a namespace.
func (s *Service) HasTask(namespace, uid string) bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.tasks[groupKey{namespace, uid}] != nil
}
