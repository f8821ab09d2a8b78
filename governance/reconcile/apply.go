package reconcile

import (
	"context"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is who sets the fields of what is applied.
const fieldOwner = client.FieldOwner(cluster.FieldManager)

// applier writes what is wanted into the cluster.
type applier struct {
	client.Client               // reads from the cache
	APIReader     client.Reader // asks the API server itself
}

// apply writes one object, unless it is there as it should be. It tells of a
// change by somebody else that it put right. Where the cache may not show yet
// what was written here last, fresh has the API server asked instead.
func (a applier) apply(ctx context.Context, piece managed.Object, fresh bool) (*v1alpha1.Correction, error) {
	key := piece.Key
	reader := client.Reader(a.Client)
	if fresh {
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
	// Who changed what is read from the API server itself: the cache may be
	// behind, and show a change that was put right already.
	// What the cache has not seen is not forced: should somebody have made it
	// just now, that is a conflict, and an obstacle when it is looked at again.
	options := []client.ApplyOption{fieldOwner}
	if piece.Live.GetName() != "" {
		if !fresh {
			if err := client.IgnoreNotFound(a.APIReader.Get(ctx, key, piece.Live)); err != nil {
				return nil, err
			}
			if upToDate(piece.Live, want) {
				return nil, nil
			}
		}
		options = append(options, client.ForceOwnership)
	}
	digest := piece.Metadata.Annotations[desired.AnnotationDesired]
	if err := a.Apply(ctx, piece.Desired, options...); err != nil { // the answer is written into object and its metadata
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

// corrected tells that an object, which was not as it should be although it had
// been applied as it is wanted now, was changed by somebody else.
func correctionOf(kind string, before client.Object, digest string) *v1alpha1.Correction {
	if before.GetName() == "" || before.GetAnnotations()[desired.AnnotationDesired] != digest {
		return nil
	}
	manager, changed := lastManager(before)
	return &v1alpha1.Correction{Object: objectName(kind, before.GetName()), Manager: manager, Time: changed}
}

// lastManager names who last changed the spec of an object, and when.
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
