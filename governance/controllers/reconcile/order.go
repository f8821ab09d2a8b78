package reconcile

import (
	"context"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// orderTime is RFC 3339 of a fixed length, so that times in UTC compare as strings.
const orderTime = "2006-01-02T15:04:05.000000Z07:00"

// noteOrder sets desired.AnnotationOrder of a ClusterQueue: Kueue 0.19 reads how it orders
// the tasks of a ClusterQueue when the ClusterQueue is created and when Kueue starts, so
// that a change of an existing one needs a restart of Kueue. A change by another manager
// that Kuota reverts does not: the annotation remains.
func noteOrder(piece managed.Object, now time.Time) {
	want, ok := piece.Desired.(*applykueue.ClusterQueueApplyConfiguration)
	live, _ := piece.Live.(*kueue.ClusterQueue)
	if !ok || live.Name == "" {
		return
	}
	mode, liveMode := "priority", "priority"
	if want.Spec.AdmissionScope != nil {
		mode = "usage"
	}
	if scope := live.Spec.AdmissionScope; scope != nil && scope.AdmissionMode == kueue.UsageBasedAdmissionFairSharing {
		liveMode = "usage"
	}
	noted := live.Annotations[desired.AnnotationOrder]
	before, _, ok := strings.Cut(noted, " ")
	if !ok {
		before = liveMode
	}
	switch {
	case before != mode:
		want.WithAnnotations(map[string]string{desired.AnnotationOrder: mode + " " + now.UTC().Format(orderTime)})
	case noted != "":
		want.WithAnnotations(map[string]string{desired.AnnotationOrder: noted})
	default:
		delete(want.Annotations, desired.AnnotationOrder)
	}
}

// lastOrderChange returns when Kuota last changed the order of an existing ClusterQueue,
// as orderTime; empty for never.
func (r *KueueReconciler) lastOrderChange(ctx context.Context) (last string, err error) {
	var queues kueue.ClusterQueueList
	err = r.List(ctx, &queues)
	for i := range queues.Items {
		_, changed, _ := strings.Cut(queues.Items[i].Annotations[desired.AnnotationOrder], " ")
		last = max(last, changed)
	}
	return last, err
}
