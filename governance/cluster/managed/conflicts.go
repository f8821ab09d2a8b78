package managed

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/change"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fields are the fields of an allocation that request an optional object, by the
// object's kind and name. A conflict with any other object is one of the
// allocation's name.
var fields = map[[2]string]string{
	{"LocalQueue", desired.DefaultQueueName}: "spec.defaultQueue",
	{"RoleBinding", desired.MembersName}:     "spec.members",
	{"ResourceQuota", desired.CeilingName}:   "spec.namespaceCeiling",
	{"LimitRange", desired.CeilingName}:      "spec.namespaceCeiling",
}

// Conflicts returns the existing objects that have a name an allocation needs and
// belong to someone else, each with the path of the field of the allocation that
// needs it.
// The form rejects the allocation with these sentences before it is saved. The
// controller shows them in the Ready condition and writes nothing.
func Conflicts(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, objects desired.Objects) ([]governance.FieldError, error) {
	var all []governance.FieldError
	conflict, err := namespaceConflict(ctx, reader, allocation, *objects.Namespace.GetName())
	if err != nil {
		return nil, err
	}
	if conflict != nil {
		all = append(all, *conflict)
	}
	flavor := 0
	var ofFlavors []governance.FieldError
	for _, object := range Objects(objects) {
		isFlavor := object.Kind == "ResourceFlavor"
		owner := allocation.Name
		if isFlavor {
			owner = "" // teams share flavors
		}
		conflict, err := objectConflict(ctx, reader, object, owner)
		if err != nil {
			return nil, err
		}
		if flavor, ok := object.Live.(*kueue.ResourceFlavor); ok && usesAsIs(objects, flavor) {
			conflict = nil
		}
		if path, named := Existing(allocation, object); named {
			if conflict, err = takeoverConflict(object, path, conflict); err != nil {
				return nil, err
			}
		}
		switch {
		case isFlavor:
			if conflict != nil {
				conflict.Path = "spec.quota"
				if flavor < len(allocation.Spec.Quota) {
					conflict.Path = fmt.Sprintf("spec.quota[%d].instanceType", flavor)
				}
				ofFlavors = append(ofFlavors, *conflict)
			}
			flavor++
		case conflict != nil:
			if path, ok := fields[[2]string{object.Kind, object.Key.Name}]; ok {
				conflict.Path = path
			}
			all = append(all, *conflict)
		}
	}
	return append(all, ofFlavors...), nil
}

// namespaceConflict returns what prevents an allocation from using the namespace of a
// name; nil for nothing.
func namespaceConflict(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, name string) (*governance.FieldError, error) {
	var namespace corev1.Namespace
	err := reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.Translate("read namespace", err)
	}
	if conflict := NamespaceConflict(allocation, &namespace, nil); conflict == nil {
		return nil, nil
	}
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &departments); err != nil {
		return nil, err
	}
	return NamespaceConflict(allocation, &namespace, departments.Items), nil
}

// NamespaceConflict returns what prevents an allocation from using an existing
// namespace; nil for nothing. The namespace in its status is its own, whatever its department
// is now.
func NamespaceConflict(allocation *v1alpha1.ComputeAllocation, namespace *corev1.Namespace, departments []v1alpha1.Department) *governance.FieldError {
	path := "metadata.name"
	if allocation.Spec.Namespace != "" {
		path = "spec.namespace"
	}
	name, owner := namespace.Name, namespace.Annotations[desired.AnnotationTeam]
	switch {
	case namespace.DeletionTimestamp != nil:
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s is being deleted; wait until it is deleted", name)}
	case owner == allocation.Name && (allocation.Status.Namespace == name || mayReuse(allocation, namespace, departments)):
		return nil
	case owner == allocation.Name:
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s has the data of an earlier team %s of %s; choose another name, or let an admin of the cluster %s", name, owner, leftBy(namespace), permitting(allocation, name))}
	case owner != "" && namespace.Labels[desired.LabelGoverned] == "true":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s belongs to another team; choose another name", name)}
	case owner != "":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s belonged to team %s and may contain its data; choose another, or remove annotation %s from it", name, owner, desired.AnnotationTeam)}
	case allocation.Spec.Namespace == "":
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("namespace %s already exists; choose another name, or set spec.namespace of the allocation to take it over", name)}
	}
	return nil
}

// mayReuse reports whether an allocation may use the namespace that an earlier one of its name
// left. Departments that were created again with Kuota's CRDs count as the same while the
// namespace is not released.
func mayReuse(allocation *v1alpha1.ComputeAllocation, namespace *corev1.Namespace, departments []v1alpha1.Department) bool {
	mark := namespace.Annotations[desired.AnnotationDepartment]
	if namespace.Labels[desired.LabelGoverned] == "true" {
		mark, _, _ = strings.Cut(mark, "/")
	}
	return desired.MayReuse(departments, mark, allocation.Spec.Department)
}

// leftBy names the department of the team that left a namespace.
func leftBy(namespace *corev1.Namespace) string {
	department, _, _ := strings.Cut(namespace.Annotations[desired.AnnotationDepartment], "/")
	if department == "" {
		return "no department"
	}
	return "department " + department
}

// permitting says what lets an allocation use a namespace.
func permitting(allocation *v1alpha1.ComputeAllocation, namespace string) string {
	if allocation.Spec.Department == "" {
		return fmt.Sprintf("remove the annotation %s of namespace %s", desired.AnnotationDepartment, namespace)
	}
	return fmt.Sprintf("set the annotation %s of namespace %s to %s", desired.AnnotationDepartment, namespace, allocation.Spec.Department)
}

// Existing returns the path of the field of an allocation that names the object as
// one that existed before; named is false for all others.
func Existing(allocation *v1alpha1.ComputeAllocation, object Object) (path string, named bool) {
	switch {
	case object.Kind == "ClusterQueue" && allocation.Spec.ClusterQueueName != "":
		return "spec.clusterQueueName", true
	case object.Kind == "LocalQueue" && object.Key.Name == allocation.Spec.LocalQueueName:
		return "spec.localQueueName", true
	}
	return "", false
}

// takeoverConflict returns what prevents Kuota from taking over an object that the
// allocation names: the object does not exist, it belongs to another team, or the
// allocation describes another spec than it has. otherwise is the conflict of an
// object that Kuota does not take over.
func takeoverConflict(object Object, path string, otherwise *governance.FieldError) (*governance.FieldError, error) {
	name := object.Key.Name
	if object.Live.GetName() == "" {
		if object.Kind == "LocalQueue" {
			return nil, nil // Kuota creates it
		}
		return &governance.FieldError{Path: path, Message: fmt.Sprintf("%s %s does not exist; create it, or remove clusterQueueName in a new allocation", object.Kind, name)}, nil
	}
	if ByKuota(object.Live) || object.Live.GetDeletionTimestamp() != nil {
		if otherwise != nil {
			otherwise.Path = path
		}
		return otherwise, nil
	}
	different, err := change.Applied(object.Live, object.Desired)
	if err != nil || len(different) == 0 {
		return nil, err
	}
	var fields []string
	for _, d := range different {
		fields = append(fields, fmt.Sprintf("%s is %s and would be %s", d.Path, cmp.Or(d.Before, "not set"), cmp.Or(d.After, "not set")))
	}
	return &governance.FieldError{Path: path, Message: fmt.Sprintf("%s %s cannot be taken over, because the allocation would change it: %s. Correct the allocation, or change the %s first", object.Kind, name, strings.Join(fields, "; "), object.Kind)}, nil
}

// objectConflict returns what prevents Kuota from writing an object: it exists and
// is not Kuota's, belongs to another team than owner, or is being deleted. An
// object without an owner may belong to any team. A flavor that is being deleted
// is no conflict, because its queues keep working.
func objectConflict(ctx context.Context, reader client.Reader, object Object, owner string) (*governance.FieldError, error) {
	kind, name := object.Kind, object.Key.Name
	err := reader.Get(ctx, object.Key, object.Live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.Translate("read "+kind, err)
	}
	team := object.Live.GetLabels()[desired.LabelTeam]
	switch {
	case !ByKuota(object.Live):
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s exists and is not managed by Kuota; delete it, or choose another name", kind, name)}, nil
	case owner != "" && team != "" && team != owner:
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s belongs to another team; choose another name", kind, name)}, nil
	case owner != "" && object.Live.GetDeletionTimestamp() != nil:
		return &governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("%s %s is being deleted; it is removed when its last task finishes", kind, name)}, nil
	}
	return nil, nil
}
