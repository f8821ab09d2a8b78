package dependencies

import (
	"context"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A gate goes when its task has ended as the other one waits for, and never early: also not while
// nothing is known of it after a start. What can never start is seldom looked at.
func TestReconcile(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const theirs = "example.com/gate"
	for name, c := range map[string]struct {
		gates  string
		ending Ending
		age    time.Duration // of the process
		want   string
		after  time.Duration
	}{
		"runs":                    {"ok", NotEnded, time.Hour, "ok", recheckInterval},
		"succeeded":               {"ok", Succeeded, 0, "", recheckInterval},
		"failed":                  {"ok", Failed, 0, "ok", neverInterval},
		"failed, any":             {"any", Failed, 0, "", recheckInterval},
		"unknown after a start":   {"any", Deleted, time.Second, "any", recheckInterval},
		"deleted":                 {"ok", Deleted, time.Minute, "ok", neverInterval},
		"deleted, any":            {"any", Deleted, time.Minute, "", recheckInterval},
		"with a gate of others":   {theirs + ", ok", Succeeded, 0, theirs, recheckInterval},
		"with gates that stay":    {"any,ok", Failed, 0, "ok", recheckInterval},
		"with only those of them": {theirs, Succeeded, 0, theirs, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := func(gates string) string {
				return strings.NewReplacer("ok", tasks.After{UID: "u"}.Gate(), "any", tasks.After{UID: "u", Any: true}.Gate()).Replace(gates)
			}
			annotations := map[string]string{tasks.AdmissionGatedByAnnotation: full(c.gates)}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "next", UID: "next", Annotations: annotations}}
			w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w", CreationTimestamp: metav1.NewTime(begin.Add(-time.Hour)), Annotations: annotations}}
			w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
			now := begin
			r := &Reconciler{
				Client: fake.NewClientBuilder().WithScheme(cluster.Scheme).WithObjects(job, w).Build(), Now: func() time.Time { return now },
				Ending: func(_ context.Context, key tasks.Key) (Ending, error) { return c.ending, nil },
			}
			request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "w"}}
			if c.age > 0 {
				r.started.Do(func() { r.since = begin })
				now = begin.Add(c.age)
			}
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter != c.after {
				t.Errorf("again after %s (%v), want %s", result.RequeueAfter, err, c.after)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil || job.Annotations[tasks.AdmissionGatedByAnnotation] != full(c.want) {
				t.Errorf("the gates are %q (%v), want %q", job.Annotations[tasks.AdmissionGatedByAnnotation], err, full(c.want))
			}
		})
	}
}
