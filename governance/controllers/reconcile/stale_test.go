package reconcile_test

import (
	"context"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// An object of another manager that the controller's cache does not have yet, or that
// it has only after the check for conflicts, is not overwritten.
func TestUncachedObjectsAreNotAdopted(t *testing.T) {
	c := setup(t)
	clusterQueue := func(team string) client.Object {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: desired.DefaultNaming.ClusterQueue(team)}}
	}
	namespace := func(team string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: desired.DefaultNaming.Namespace(team)}}
	}
	for name, test := range map[string]struct {
		foreign func(team string) client.Object
		misses  int // reads before the cache has the object; 0 for all
	}{
		"ClusterQueue":                              {clusterQueue, 0},
		"ClusterQueue created after the check":      {clusterQueue, 1},
		"Namespace":                                 {namespace, 0},
		"Namespace created after the first reading": {namespace, 1},
	} {
		t.Run(name, func(t *testing.T) {
			team := clustertest.Name("unseen")
			object := test.foreign(team)
			if err := c.Client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			create(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)}))
			conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "exist")
			before := object.DeepCopyObject().(client.Object)
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(object), before); err != nil {
				t.Fatal(err)
			}

			direct, err := client.NewWithWatch(c.Config, client.Options{Scheme: cluster.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			reads := 0
			behind := interceptor.NewClient(direct, interceptor.Funcs{
				Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					if key.Name == object.GetName() {
						reads++
					}
					if key.Name == object.GetName() && (test.misses == 0 || reads <= test.misses) {
						return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
					}
					return under.Get(ctx, key, into, options...)
				},
			})
			stale := reconcile.NewReconcilers(behind, direct, events.NewFakeRecorder(10), reconcile.Options{Naming: desired.DefaultNaming})
			if _, err := stale.Cohort.Reconcile(t.Context(), ctrl.Request{}); err != nil { // no quota grows before
				t.Fatal(err)
			}
			result, err := stale.Allocations.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: team}})
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("the conflict was not requeued: %v, %v", result, err)
			}
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if object.GetGeneration() != before.GetGeneration() || object.GetLabels()[desired.LabelTeam] != "" || object.GetAnnotations()[desired.AnnotationTeam] != "" {
				t.Errorf("the object was adopted: labels %v, annotations %v", object.GetLabels(), object.GetAnnotations())
			}
		})
	}
}
