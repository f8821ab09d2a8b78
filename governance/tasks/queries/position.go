package queries

import (
	"context"
	"slices"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	visibility "sigs.k8s.io/kueue/apis/visibility/v1beta2"
)

// QueuePosition is the position of a task that waits, and its neighbors. Positions
// count from 1.
type QueuePosition struct {
	QueueLength int // of the LocalQueue
	// The position in the ClusterQueue, over all its LocalQueues. OnlyLocalQueue
	// reports that both positions are equal. 0 if the ClusterQueue is unknown, or if
	// the viewer may not see all its LocalQueues, which Shared says: the position
	// reveals how many tasks wait there.
	ClusterQueuePosition, ClusterQueueLength int
	OnlyLocalQueue, Shared                   bool
	ByKueue                                  bool          // the positions are from Kueue; else they are computed by its rule
	ByUsage                                  bool          // Kueue orders the ClusterQueue by the usage of its LocalQueues, before priority
	PositionSince                            time.Time     // in the LocalQueue
	PositionEarlier                          bool          // or earlier: the console was not running
	Ahead, Behind                            []*tasks.Task // in its LocalQueue, those next to it
}

// position returns the position of a task in its LocalQueue, 0 if it does not wait or the
// LocalQueue does not exist, and its neighbors. It is Kueue's own where the visibility API
// answers, else the index's.
func (s *Service) position(ctx context.Context, v viewer, t *tasks.Task) (place int, d QueuePosition, err error) {
	if place, d.QueueLength = v.index.Position(t); place == 0 {
		return 0, d, nil
	}
	locals, err := v.siblings(ctx, t)
	if err != nil {
		return 0, d, err
	}
	if len(locals) == 0 {
		return 0, QueuePosition{}, nil
	}
	d.OnlyLocalQueue = len(locals) == 1
	d.Shared = slices.ContainsFunc(locals, func(q index.QueueKey) bool { return !v.scope.Includes(q.Namespace) })
	if len(locals) > 1 {
		if d.ByUsage, err = v.byUsage(ctx, t); err != nil {
			return 0, d, err
		}
	}
	if !d.Shared {
		d.ClusterQueuePosition, d.ClusterQueueLength = v.index.PositionAcross(t, locals)
	}
	d.Ahead, d.Behind = v.index.Neighbors(t, shownAround)
	d.PositionSince, d.PositionEarlier = v.index.PositionSince(t)
	if items, ok := s.pendingByKueue(ctx, v, t, place); ok {
		place = d.applyKueue(items, v.index, t, place)
	}
	if d.ByUsage && !d.ByKueue { // only Kueue knows the usage now
		d.ClusterQueuePosition, d.ClusterQueueLength = 0, 0
	}
	return place, d, nil
}

// byUsage reports whether Kueue orders the ClusterQueue of a task by usage.
func (v viewer) byUsage(ctx context.Context, t *tasks.Task) (bool, error) {
	var local kueue.LocalQueue
	if err := v.reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Queue}, &local); err != nil {
		return false, cluster.Translate("read queue", client.IgnoreNotFound(err))
	}
	if status := local.Status.FairSharing; status == nil || status.AdmissionFairSharingStatus == nil {
		return false, nil // Kueue does not count usage
	}
	return v.orderedByUsage(ctx, local.Spec.ClusterQueue)
}

// applyKueue sets what Kueue's visibility API returned, and returns the position;
// unchanged if the answer does not contain the task.
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

// siblings returns the LocalQueues of a task's ClusterQueue that are not on hold, and its
// own; none if that does not exist.
func (v viewer) siblings(ctx context.Context, t *tasks.Task) ([]index.QueueKey, error) {
	queues, err := cluster.All[kueue.LocalQueue](ctx, v.reader)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(queues, func(q *kueue.LocalQueue) bool { return q.Namespace == t.Namespace && q.Name == t.Queue })
	if i < 0 {
		return nil, nil
	}
	var found []index.QueueKey
	for j, q := range queues {
		if q.Spec.ClusterQueue == queues[i].Spec.ClusterQueue && (j == i || !isStopped(q.Spec.StopPolicy)) {
			found = append(found, index.QueueKey{Namespace: q.Namespace, Queue: q.Name})
		}
	}
	return found, nil
}

// Suppose returns the page of a task that user may see, and its position with each
// of these priorities. A stopped task counts as one that waits.
func (s *Service) Suppose(ctx context.Context, user governance.User, at tasks.Address, priorities ...int32) (Detail, []index.Supposed, error) {
	d, err := s.Detail(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	if err != nil || len(priorities) == 0 {
		return d, nil, err
	}
	v, err := s.view(ctx, user)
	if err != nil {
		return Detail{}, nil, err
	}
	c, err := v.surroundings(ctx, d.Task)
	if err != nil {
		return Detail{}, nil, err
	}
	c.Behind = false // the position that each priority gives says it
	supposed := make([]index.Supposed, len(priorities))
	for i, priority := range priorities {
		supposed[i] = v.index.Suppose(d.Task, priority)
		supposed[i].Preempts = c.Queue != nil && !c.Queue.NeverWithinClusterQueue
		if d.State.UsesQuota() || d.NoWorkload {
			continue
		}
		q := explainInput(d.Task)
		q.Priority, q.Deactivated, q.TimedOut = priority, false, false
		q.LoopHeld = false
		supposed[i].Verdict = v.explain(q, c)
	}
	return d, supposed, nil
}
