package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// A ClusterQueue has the time of the last change of its order that Kuota wants, and no
// time of those that Kuota reverts.
func TestNoteOrder(t *testing.T) {
	now := time.Date(2026, 11, 25, 14, 0, 0, 0, time.UTC)
	const noted, before = " 2026-11-25T14:00:00.000000Z", " 2026-11-24T00:00:00.000000Z"
	byUsage := &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	for name, tc := range map[string]struct {
		live   *kueue.AdmissionScope
		has    string
		shares bool
		want   string
	}{
		"no shares":             {nil, "", false, ""},
		"shares":                {byUsage, "", true, ""},
		"the first share":       {nil, "", true, "usage" + noted},
		"the last share":        {byUsage, "", false, "priority" + noted},
		"shares again":          {nil, "priority" + before, true, "usage" + noted},
		"no change":             {byUsage, "usage" + before, true, "usage" + before},
		"reverted":              {nil, "usage" + before, true, "usage" + before},
		"reverted, without any": {byUsage, "priority" + before, false, "priority" + before},
	} {
		t.Run(name, func(t *testing.T) {
			live := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{desired.AnnotationOrder: tc.has}}}
			live.Spec.AdmissionScope = tc.live
			want := applykueue.ClusterQueue("a").WithSpec(applykueue.ClusterQueueSpec())
			if tc.shares {
				want.Spec.WithAdmissionScope(applykueue.AdmissionScope().WithAdmissionMode(kueue.UsageBasedAdmissionFairSharing))
			}
			piece := managed.NewObject("ClusterQueue", live, want, want.ObjectMetaApplyConfiguration)
			for range 2 { // the second time with the object from the API server
				if reconcile.NoteOrder(piece, now); want.Annotations[desired.AnnotationOrder] != tc.want {
					t.Errorf("got %q, want %q", want.Annotations[desired.AnnotationOrder], tc.want)
				}
			}
		})
	}
}

// A changed order of an existing ClusterQueue restarts Kueue once, if Kueue counts usage.
func TestChangedOrderRestartsKueue(t *testing.T) {
	c := setup(t)
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("ordered")}}
	if err := c.Client.Create(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Client.Delete(t.Context(), queue) }()
	note := func(order string) {
		t.Helper()
		before := queue.DeepCopy()
		queue.Annotations = map[string]string{desired.AnnotationOrder: order}
		if err := c.Client.Patch(t.Context(), queue, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	other := newOtherKueue(t, c, 0)
	uncounted, spec := ranking(), ranking()
	spec.AdmissionFairSharing = &v1alpha1.AdmissionFairSharing{}
	controller, policy := other.reconciler(t, c.Config, spec, true), unstored(spec)
	restarts := func(want bool) {
		t.Helper()
		before := other.deployment(t)
		reason := "NotRunning"
		if want {
			reason = "Restarting"
		}
		reconcileTo(t, controller, policy, reason, "")
		if after := other.deployment(t); want != (after.Generation > before.Generation) {
			t.Errorf("the Deployment has generation %d, before %d, want a restart: %t", after.Generation, before.Generation, want)
		}
	}

	note("usage 2026-11-25T14:00:00.000000Z")
	restarts(true) // with the configuration
	restarts(false)
	note("priority 2026-11-25T14:00:00.500000Z")
	unmanaged := other.reconciler(t, c.Config, spec, false)
	if seen := reconcileTo(t, unmanaged, policy, "Differs", "must be restarted to order tasks"); !strings.Contains(seen.Patch, `{"kuota.dev/order":"2026-11-25T14:00:00.500000Z"}`) {
		t.Errorf("the patch does not restart Kueue:\n%s", seen.Patch)
	}
	restarts(true)
	restarts(false)
	note("usage 2026-11-25T14:00:01.000000Z")
	reconcileTo(t, other.reconciler(t, c.Config, uncounted, true), unstored(uncounted), "NotRunning", "")
}
