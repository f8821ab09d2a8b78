package tasks

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance/cluster"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// Standing is how things stand around a task that waits. Places count from 1.
type QueuePosition struct {
	QueueLength int // how many wait in its LocalQueue
	// Its place in the ClusterQueue, over all its LocalQueues; Alone says that it
	// has one only, so that both are equal. 0 where the ClusterQueue is not known,
	// and where some of these queues are not for the reader: it tells how many wait
	// there. Shared says the latter.
	ClusterQueuePosition, ClusterQueueLength int
	OnlyLocalQueue, Shared                   bool
	ByKueue                                  bool      // Kueue told the places; else they are by its rule
	PositionSince                            time.Time // when it came to its place in its LocalQueue
	PositionEarlier                          bool      // or earlier, which nobody saw
	Ahead, Behind                            []*Task   // in its LocalQueue, those next to it
}

// standing is the place of a task in its LocalQueue, 0 for one that does not
// wait, and what is around it. It asks Kueue where it may; what Kueue does not
// tell, the index works out.
func (s *Service) standing(ctx context.Context, v viewer, t *Task) (place int, d QueuePosition, err error) {
	if place, d.QueueLength = v.index.Position(t); place == 0 {
		return 0, d, nil
	}
	locals, err := v.siblings(ctx, t)
	if err != nil {
		return 0, d, err
	}
	d.OnlyLocalQueue = len(locals) == 1
	d.Shared = slices.ContainsFunc(locals, func(q queueKey) bool { return !v.scope.Includes(q.namespace) })
	if !d.Shared {
		d.ClusterQueuePosition, d.ClusterQueueLength = v.index.across(t, locals)
	}
	d.Ahead, d.Behind = v.index.around(t, shownAround)
	d.PositionSince, d.PositionEarlier = v.index.placeSince(t)
	items, ok := s.pending.look(ctx, windowOf(t.Namespace, t.Queue, place), v.index.now(), v.index.changed(t), func(ctx context.Context, w window) ([]visibility.PendingWorkload, error) {
		return s.Cluster.PendingWorkloads(ctx, w.namespace, w.queue, w.offset, windowSize)
	})
	if ok {
		place = d.told(items, v.index, t, place)
	}
	return place, d, nil
}

// told takes in what Kueue says, and returns the place; where it does not name
// the task, that stays what it was.
func (d *QueuePosition) told(items []visibility.PendingWorkload, x *Index, t *Task, place int) int {
	i := slices.IndexFunc(items, func(w visibility.PendingWorkload) bool { return w.Name == t.main.Name })
	if i < 0 {
		return place
	}
	d.ByKueue = true
	place = int(items[i].PositionInLocalQueue) + 1
	d.QueueLength = max(d.QueueLength, place)
	if d.ClusterQueuePosition > 0 {
		d.ClusterQueuePosition = int(items[i].PositionInClusterQueue) + 1
		d.ClusterQueueLength = max(d.ClusterQueueLength, d.ClusterQueuePosition)
	}
	d.Ahead = x.waiting(t, items[max(0, i-shownAround):i])
	d.Behind = x.waiting(t, items[i+1:min(len(items), i+1+shownAround)])
	return place
}

// siblings are the LocalQueues of the ClusterQueue that a task's own leads to,
// with its own; none where it leads nowhere.
func (v viewer) siblings(ctx context.Context, t *Task) ([]queueKey, error) {
	var queues kueue.LocalQueueList
	if err := v.reader.List(ctx, &queues, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list queues", err)
	}
	i := slices.IndexFunc(queues.Items, func(q kueue.LocalQueue) bool { return q.Namespace == t.Namespace && q.Name == t.Queue })
	if i < 0 {
		return nil, nil
	}
	var found []queueKey
	for j := range queues.Items {
		if q := &queues.Items[j]; q.Spec.ClusterQueue == queues.Items[i].Spec.ClusterQueue {
			found = append(found, queueKey{q.Namespace, q.Name})
		}
	}
	return found, nil
}

// across is the place of a task among those of several queues, and how many
// wait there; 0 for no queues.
func (x *Index) across(t *Task, queues []queueKey) (place, of int) {
	if len(queues) == 0 {
		return 0, 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	place = 1
	for _, key := range queues {
		if o := x.queues[key]; o != nil {
			list := o.list()
			before, _ := slices.BinarySearchFunc(list, t, inQueue)
			place, of = place+before, of+len(list)
		}
	}
	return place, of
}

// changed is when the queue of a task last changed, as far as the index saw.
func (x *Index) changed(t *Task) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.life.lines[queueKey{t.Namespace, t.Queue}]; l != nil {
		return l.moved
	}
	return time.Time{}
}

// waiting are the tasks behind Workloads that wait in the queue of a task, in
// the order of the Workloads. What the index does not know is left out.
func (x *Index) waiting(t *Task, workloads []visibility.PendingWorkload) []*Task {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.queues[queueKey{t.Namespace, t.Queue}]
	if o == nil || len(workloads) == 0 {
		return nil
	}
	found := make([]*Task, len(workloads))
	for _, other := range o.list() {
		for i := range workloads {
			if workloads[i].Name == other.main.Name {
				found[i] = other
			}
		}
	}
	return slices.DeleteFunc(found, func(t *Task) bool { return t == nil })
}
