package allocations

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Obstacles says what in the cluster stands in the way of an allocation:
// objects of the names it needs that are somebody else's. The form refuses
// with these sentences before saving, and the controller tells them in the
// Ready condition and touches nothing.
func Obstacles(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) ([]governance.FieldError, error) {
	var found []governance.FieldError
	for _, look := range []func() (*governance.FieldError, error){
		func() (*governance.FieldError, error) {
			return namespaceObstacle(ctx, reader, allocation, *objects.Namespace.GetName())
		},
		func() (*governance.FieldError, error) {
			return foreign(ctx, reader, &kueue.ClusterQueue{}, "ClusterQueue", "", *objects.ClusterQueue.GetName(), allocation.Name)
		},
		func() (*governance.FieldError, error) {
			return foreign(ctx, reader, &kueue.LocalQueue{}, "LocalQueue", *objects.LocalQueue.GetNamespace(), *objects.LocalQueue.GetName(), allocation.Name)
		},
		func() (*governance.FieldError, error) {
			if objects.DefaultQueue == nil {
				return nil, nil
			}
			return at("spec.defaultQueue")(foreign(ctx, reader, &kueue.LocalQueue{}, "LocalQueue", *objects.DefaultQueue.GetNamespace(), *objects.DefaultQueue.GetName(), allocation.Name))
		},
		func() (*governance.FieldError, error) {
			if objects.Members == nil {
				return nil, nil
			}
			return at("spec.members")(foreign(ctx, reader, &rbacv1.RoleBinding{}, "RoleBinding", *objects.Members.GetNamespace(), *objects.Members.GetName(), allocation.Name))
		},
		func() (*governance.FieldError, error) {
			if objects.Ceiling == nil {
				return nil, nil
			}
			return at("spec.namespaceCeiling")(foreign(ctx, reader, &corev1.ResourceQuota{}, "ResourceQuota", *objects.Ceiling.GetNamespace(), *objects.Ceiling.GetName(), allocation.Name))
		},
		func() (*governance.FieldError, error) {
			if objects.Defaults == nil {
				return nil, nil
			}
			return at("spec.namespaceCeiling")(foreign(ctx, reader, &corev1.LimitRange{}, "LimitRange", *objects.Defaults.GetNamespace(), *objects.Defaults.GetName(), allocation.Name))
		},
	} {
		obstacle, err := look()
		if err != nil {
			return nil, err
		}
		if obstacle != nil {
			found = append(found, *obstacle)
		}
	}
	for i, flavor := range objects.Flavors {
		obstacle, err := foreign(ctx, reader, &kueue.ResourceFlavor{}, "ResourceFlavor", "", *flavor.GetName(), "")
		if err != nil {
			return nil, err
		}
		if obstacle != nil {
			obstacle.Path = "spec.quota"
			if i < len(allocation.Spec.Quota) {
				obstacle.Path = fmt.Sprintf("spec.quota[%d].instanceType", i)
			}
			found = append(found, *obstacle)
		}
	}
	return found, nil
}

func namespaceObstacle(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, name string) (*governance.FieldError, error) {
	var namespace corev1.Namespace
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.Translate("read namespace", err)
	}
	path := "metadata.name"
	if allocation.Spec.Namespace != "" {
		path = "spec.namespace"
	}
	owner := namespace.Annotations[desired.AnnotationTeam]
	switch {
	case namespace.DeletionTimestamp != nil:
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s is being deleted; wait until it is deleted", name)}, nil
	case owner == allocation.Name:
		return nil, nil
	case owner != "" && namespace.Labels[desired.LabelGoverned] == "true":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s belongs to another team; choose another name", name)}, nil
	case owner != "":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s belonged to team %s and may contain its data; choose another, or remove annotation %s from it", name, owner, desired.AnnotationTeam)}, nil
	case allocation.Spec.Namespace == "":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s already exists; choose another name, or set spec.namespace of the allocation to take it over", name)}, nil
	}
	return nil, nil
}

// at puts an obstacle beside the field that asks for the object.
func at(path string) func(*governance.FieldError, error) (*governance.FieldError, error) {
	return func(obstacle *governance.FieldError, err error) (*governance.FieldError, error) {
		if obstacle != nil {
			obstacle.Path = path
		}
		return obstacle, err
	}
}

// foreign tells of an object that exists and is not Kuota's, or is another
// team's where a team is given.
func foreign(ctx context.Context, reader client.Reader, object client.Object, kind, namespace, name, team string) (*governance.FieldError, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.Translate("read "+kind, err)
	}
	switch {
	case !Ours(object):
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s exists and is not managed by Kuota; delete it, or choose another name", kind, name)}, nil
	case team != "" && object.GetLabels()[desired.LabelTeam] != "" && object.GetLabels()[desired.LabelTeam] != team:
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s belongs to another team; choose another name", kind, name)}, nil
	case object.GetDeletionTimestamp() != nil && team != "": // a flavor that goes is no obstacle: its queues go on
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s is being deleted; it is removed when its last task finishes", kind, name)}, nil
	}
	return nil, nil
}

// Ours tells whether Kuota made an object: it carries our label, or, where
// somebody took the label off, our controller still owns fields of it.
func Ours(object client.Object) bool {
	if object.GetLabels()[desired.LabelManagedBy] == desired.ManagedBy {
		return true
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == cluster.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}
