package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// release removes Kuota's labels, annotations and ownership from the objects of an
// allocation. Their specs stay as they are, and no object is deleted.
func (r *AllocationReconciler) release(ctx context.Context, allocation *v1alpha1.ComputeAllocation) error {
	objects, err := managed.Removable(ctx, r.APIReader, allocation, r.Naming)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range objects {
		found, err := r.getManaged(ctx, allocation.Name, object)
		if err == nil && found {
			err = r.disown(ctx, object.Live)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("release %s %s: %w", object.Kind, object.Key.Name, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return r.reduceNamespace(ctx, allocation, desired.NamespaceName(allocation, r.Naming), nil)
}

// disown removes Kuota's labels and annotations from an object, and its entries from
// managedFields: the fields stay, and later applies of others do not conflict with them.
// An apply of no fields would remove the fields themselves.
func (r *AllocationReconciler) disown(ctx context.Context, live client.Object) error {
	// The cache may not have all managed fields, or the last resourceVersion.
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	managers := slices.DeleteFunc(slices.Clone(live.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == cluster.FieldManager && entry.Subresource == ""
	})
	if len(managers) == 0 {
		managers = []metav1.ManagedFieldsEntry{{}} // the API server ignores an empty list
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"labels":          map[string]any{desired.LabelManagedQueue: nil, desired.LabelTeam: nil, desired.LabelShare: nil, desired.LabelManagedBy: nil},
		"annotations":     map[string]any{desired.AnnotationDesired: nil},
		"managedFields":   managers,
	}})
	if err != nil {
		return err
	}
	object, _ := live.DeepCopyObject().(client.Object)
	return client.IgnoreNotFound(r.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner))
}
