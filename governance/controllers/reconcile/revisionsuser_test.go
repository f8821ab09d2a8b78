package reconcile

import (
	"context"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/revisions"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// A version that changes the activation is what the button of that name does, without
// the console too.
func TestSeenChange(t *testing.T) {
	held := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{Activation: v1alpha1.Hold}}
	released := held.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.AnnotationRelease: "true"}
	for name, tc := range map[string]struct {
		object   client.Object
		revision revisions.Revision
		before   string
		want     audit.Action
	}{
		"created on hold": {held, revisions.Revision{Generation: 1}, "", audit.Create},
		"created again":   {held, revisions.Revision{Generation: 1}, `{"spec":{"activation":"Active"}}`, audit.Create},
		"the first known": {held, revisions.Revision{Generation: 4}, "", audit.Update},
		"held":            {held, revisions.Revision{Generation: 4}, `{"spec":{}}`, audit.Hold},
		"still on hold":   {held, revisions.Revision{Generation: 4}, `{"spec":{"activation":"Hold"}}`, audit.Update},
		"resumed":         {&v1alpha1.ComputeAllocation{}, revisions.Revision{Generation: 4}, `{"spec":{"activation":"Drain"}}`, audit.Resume},
		"deleted":         {held, revisions.Revision{Generation: 5, Summary: "Deleted"}, `{"spec":{"activation":"Hold"}}`, audit.Delete},
		"released":        {released, revisions.Revision{Generation: 5, Summary: "Deleted"}, `{"spec":{"activation":"Hold"}}`, audit.Release},
		"the policy":      {&v1alpha1.ClusterPolicy{}, revisions.Revision{Generation: 4}, `{"spec":{}}`, audit.Update},
	} {
		if got := seenChange(tc.object, tc.revision, []byte(tc.before)); got.Action != string(tc.want) {
			t.Errorf("%s: got %s, want %s", name, got.Action, tc.want)
		}
	}
}
