package queries

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

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
	ByKueue                                  bool          // Kueue told the places; else they are by its rule
	PositionSince                            time.Time     // when it came to its place in its LocalQueue
	PositionEarlier                          bool          // or earlier, which nobody saw
	Ahead, Behind                            []*tasks.Task // in its LocalQueue, those next to it
}

// standing is the place of a task in its LocalQueue, 0 for one that does not
// wait, and what is around it. It asks Kueue where it may; what Kueue does not
// tell, the index works out.
func (s *Service) position(ctx context.Context, v viewer, t *tasks.Task) (place int, d QueuePosition, err error) {
	if place, d.QueueLength = v.index.Position(t); place == 0 {
		return 0, d, nil
	}
	locals, err := v.siblings(ctx, t)
	if err != nil {
		return 0, d, err
	}
	d.OnlyLocalQueue = len(locals) == 1
	d.Shared = slices.ContainsFunc(locals, func(q index.QueueKey) bool { return !v.scope.Includes(q.Namespace) })
	if !d.Shared {
		d.ClusterQueuePosition, d.ClusterQueueLength = v.index.PositionAcross(t, locals)
	}
	d.Ahead, d.Behind = v.index.Neighbors(t, shownAround)
	d.PositionSince, d.PositionEarlier = v.index.PositionSince(t)
	items, ok := s.visibility.get(ctx, windowOf(t.Namespace, t.Queue, place), v.index.Now(), v.index.QueueChanged(t), func(ctx context.Context, w window) ([]visibility.PendingWorkload, error) {
		return s.Cluster.PendingWorkloads(ctx, w.namespace, w.queue, w.offset, windowSize)
	})
	if ok {
		place = d.applyKueue(items, v.index, t, place)
	}
	return place, d, nil
}

// told takes in what Kueue says, and returns the place; where it does not name
// the task, that stays what it was.
func (d *QueuePosition) applyKueue(items []visibility.PendingWorkload, x *index.Index, t *tasks.Task, place int) int {
	i := slices.IndexFunc(items, func(w visibility.PendingWorkload) bool { return w.Name == t.Main.Name })
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
	d.Ahead = x.PendingTasks(t, items[max(0, i-shownAround):i])
	d.Behind = x.PendingTasks(t, items[i+1:min(len(items), i+1+shownAround)])
	return place
}

// siblings are the LocalQueues of the ClusterQueue that a task's own leads to,
// with its own; none where it leads nowhere.
func (v viewer) siblings(ctx context.Context, t *tasks.Task) ([]index.QueueKey, error) {
	var queues kueue.LocalQueueList
	if err := v.reader.List(ctx, &queues, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list queues", err)
	}
	i := slices.IndexFunc(queues.Items, func(q kueue.LocalQueue) bool { return q.Namespace == t.Namespace && q.Name == t.Queue })
	if i < 0 {
		return nil, nil
	}
	var found []index.QueueKey
	for j := range queues.Items {
		if q := &queues.Items[j]; q.Spec.ClusterQueue == queues.Items[i].Spec.ClusterQueue {
			found = append(found, index.QueueKey{Namespace: q.Namespace, Queue: q.Name})
		}
	}
	return found, nil
}
