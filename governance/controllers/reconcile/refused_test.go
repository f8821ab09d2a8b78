package reconcile

import (
	"context"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusingStore keeps no revision of one description.
type refusingStore struct {
	revisions.Store
	refuses string
	kept    []*metav1.PartialObjectMetadata
	data    map[string]*appsv1.ControllerRevision
}

func (s *refusingStore) Cached(string) ([]*metav1.PartialObjectMetadata, error) { return s.kept, nil }

func (s *refusingStore) Get(_ context.Context, name string) (*appsv1.ControllerRevision, error) {
	return s.data[name], nil
}

func (s *refusingStore) Create(_ context.Context, r *appsv1.ControllerRevision) (bool, error) {
	if r.Annotations[v1alpha1.AnnotationReason] == s.refuses {
		return false, &governance.Error{Kind: governance.Invalid, Op: "keep revision"}
	}
	s.kept = append(s.kept, &metav1.PartialObjectMetadata{ObjectMeta: r.ObjectMeta})
	s.data[r.Name] = r
	return true, nil
}

// A version that the API server refuses does not stop the later ones of its object.
func TestRefusedRevision(t *testing.T) {
	store := &refusingStore{refuses: "odd", data: map[string]*appsv1.ControllerRevision{}}
	r := &RevisionReconciler{Store: store, Now: time.Now}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: requestAllocation, Name: "vision"}}
	r.pending = map[ctrl.Request][]observation{}
	for i, reason := range []string{"first", "odd", "last"} {
		a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "vision", UID: types.UID("u"), Generation: int64(i + 1), Annotations: map[string]string{v1alpha1.AnnotationReason: reason}}}
		a.Spec.DisplayName = reason
		r.pending[request] = append(r.pending[request], observation{object: a, at: time.Now()})
	}
	if result, err := r.Reconcile(t.Context(), request); err != nil || !result.IsZero() {
		t.Errorf("got %v and error %v, want nothing left", result, err)
	}
	var kept []string
	for _, k := range store.kept {
		kept = append(kept, k.Annotations[v1alpha1.AnnotationReason])
	}
	if want := []string{"first", "last"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
}
