package reconcile

import (
	"context"
	"errors"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the field manager of everything that the controllers apply.
const fieldOwner = client.FieldOwner(cluster.FieldManager)

// applier applies desired objects.
type applier struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // reads from the API server
}

// apply applies one object unless it is up to date, and returns the change by
// another field manager that this reverted, if any. Set live if the cache may
// not have Kuota's last write yet: the object is then read from the API server.
func (a applier) apply(ctx context.Context, piece managed.Object, live bool) (*v1alpha1.Correction, error) {
	key := piece.Key
	reader := client.Reader(a.Client)
	if live {
		reader = a.APIReader
	}
	if err := client.IgnoreNotFound(reader.Get(ctx, key, piece.Live)); err != nil {
		return nil, err
	}
	want, err := toFields(piece.Desired)
	if err != nil {
		return nil, err
	}
	if upToDate(piece.Live, want) || piece.Live.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	// The cache may still show a change that was already reverted, so the object is
	// read from the API server. An object that does not exist is applied without
	// force: if another manager just created it, that is a conflict, and the next
	// reconciliation reports it.
	exists := piece.Live.GetName() != ""
	if exists && !live {
		err := a.APIReader.Get(ctx, key, piece.Live)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if exists = err == nil; exists && upToDate(piece.Live, want) {
			return nil, nil
		}
	}
	options := []client.ApplyOption{fieldOwner}
	switch {
	case exists && !managed.ByKuota(piece.Live):
		return nil, errCreatedByAnother(piece)
	case exists:
		options = append(options, client.ForceOwnership)
	}
	digest := piece.Metadata.Annotations[desired.AnnotationDesired]
	if err := a.Apply(ctx, piece.Desired, options...); err != nil { // writes the response into Desired and Metadata
		return nil, fmt.Errorf("%s %s: %w", piece.Kind, key.Name, err)
	}
	if without := extraFieldsPatch(piece.Live, want); without != "" {
		stray, _ := piece.Live.DeepCopyObject().(client.Object)
		if err := a.Patch(ctx, stray, client.RawPatch(types.MergePatchType, []byte(without))); err != nil {
			return nil, fmt.Errorf("%s %s: %w", piece.Kind, key.Name, err)
		}
	}
	return correctionOf(piece.Kind, piece.Live, digest), nil
}

// correctionOf returns the correction if another manager changed an object
// after Kuota had applied the same desired state, and nil otherwise. digest is
// that of the desired state.
func correctionOf(kind string, before client.Object, digest string) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != digest {
		return nil
	}
	manager, changed := lastManager(before)
	return &v1alpha1.Correction{Object: objectName(kind, before.GetName()), Manager: manager, Time: changed}
}

// lastManager returns the manager that last changed the object except its
// status, other than Kuota's applies, and the time of that change.
func lastManager(object client.Object) (string, metav1.Time) {
	manager, changed := "an unknown manager", metav1.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		if entry.Manager == cluster.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		if changed.IsZero() || changed.Before(entry.Time) {
			manager, changed = entry.Manager, *entry.Time
		}
	}
	if changed.IsZero() {
		changed = object.GetCreationTimestamp()
	}
	return manager, changed
}

// errCreatedByAnother returns a conflict, which is retried: another manager created
// the object after the reconciliation had checked that it does not exist. The next
// one reports it.
func errCreatedByAnother(piece managed.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: piece.Kind}, piece.Key.Name, errors.New("it was created in the meantime"))
}
