package loopguard

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Each preempted pod of a Deployment is replaced by another one, with a Workload of its
// own: the loop is that of the Deployment.
func TestLoopOfService(t *testing.T) {
	c := newCluster()
	known := map[types.UID]*kueue.Workload{}
	g := &Guard{Now: func() time.Time { return c.now }, Find: func(uid types.UID) *kueue.Workload { return known[uid] }}
	g.Start()
	c.detector = g.detector
	controlledBy := func(w *kueue.Workload, kind string, uid types.UID) {
		w.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "serve", UID: uid, Controller: new(true)}}
	}
	var replica types.UID
	observe := func(change func()) []types.NamespacedName {
		before := c.workloads[replica]
		change()
		after := c.workloads[replica].DeepCopy()
		controlledBy(after, "Pod", "pod-"+replica)
		return g.Observe(before, after, false)
	}
	for i := range 4 {
		replica = types.UID(fmt.Sprint("replica-", i))
		known[replica] = &kueue.Workload{}
		controlledBy(known[replica], "Deployment", "service")
		c.wait(time.Second)
		observe(func() { c.admit(replica) })
		c.wait(time.Second)
		due := observe(func() {
			known[replica] = nil // the index knows of its deletion before the guard sees the preemption
			c.preempted(replica, p, "b", 1)
		})
		if i < threshold-1 {
			continue
		}
		loops := g.Loops()
		if len(loops) != 1 || len(due) != 1 {
			t.Fatalf("after %d preemptions got %d loops, and %d Workloads to reconcile, want 1 and 1", i+1, len(loops), len(due))
		}
		if l := loops[0]; l.Victim.Service != "service" || l.Victim.UID != replica || l.NotHeld != NotHoldable || l.State != Looping || l.Preemptions != int32(i+1) {
			t.Errorf("got the loop %+v, want %d preemptions of the service", l, i+1)
		}
		g.Observe(c.workloads[replica], nil, false)
	}
	if len(g.Loops()) != 1 {
		t.Error("the loop ended with its last replica")
	}
}
