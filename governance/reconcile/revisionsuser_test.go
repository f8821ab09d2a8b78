package reconcile

import (
	"context"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/revisions"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// created is an empty store that keeps what is created.
type created struct {
	revisions.Store
	list []*appsv1.ControllerRevision
}

func (c *created) Cached(string) ([]*metav1.PartialObjectMetadata, error) { return nil, nil }
func (c *created) Create(_ context.Context, r *appsv1.ControllerRevision) (bool, error) {
	c.list = append(c.list, r)
	return true, nil
}

// A version names the user only if the API server records users.
func TestVersionsNameRecordedUsersOnly(t *testing.T) {
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: requestAllocation, Name: "vision"}}
	object := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "vision", UID: "a", Generation: 1, Annotations: map[string]string{v1alpha1.AnnotationChangedBy: "ada", v1alpha1.AnnotationChangedGeneration: "1"}}}
	for name, tc := range map[string]struct {
		records func() bool
		want    string
	}{
		"recorded":     {func() bool { return true }, "ada"},
		"by default":   {nil, "ada"},
		"not recorded": {func() bool { return false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store := &created{}
			r := &RevisionReconciler{Store: store, Now: time.Now, RecordsUsers: tc.records, pending: map[ctrl.Request][]observation{request: {{object: object, at: time.Now()}}}}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if len(store.list) != 1 || store.list[0].Annotations[v1alpha1.AnnotationChangedBy] != tc.want {
				t.Errorf("got %+v", store.list)
			}
		})
	}
}
