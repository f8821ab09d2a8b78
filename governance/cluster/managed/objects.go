package managed

import (
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/quota/desired"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// Object is one object that Kuota writes. Desired and Metadata are nil where the
// object is only read or removed.
type Object struct {
	Kind     string
	Key      client.ObjectKey
	Live     client.Object // an empty object of its kind, to read the existing one into
	Desired  runtime.ApplyConfiguration
	Metadata *applymeta.ObjectMetaApplyConfiguration // of Desired

	// TakesOver reports that an existing object of another owner becomes Kuota's if it
	// has the spec of Desired.
	TakesOver bool
}

// NewObject returns the object that desired describes.
func NewObject(kind string, live client.Object, desired runtime.ApplyConfiguration, metadata *applymeta.ObjectMetaApplyConfiguration) Object {
	key := client.ObjectKey{Name: *metadata.Name}
	if metadata.Namespace != nil {
		key.Namespace = *metadata.Namespace
	}
	return Object{Kind: kind, Key: key, Live: live, Desired: desired, Metadata: metadata}
}

// Objects returns the objects of an allocation except its namespace, in the order
// in which they are applied. Members come last, so that they can submit only
// once the queue exists.
func Objects(objects desired.Objects) []Object {
	var all []Object
	for _, flavor := range objects.Flavors {
		all = append(all, NewObject("ResourceFlavor", &kueue.ResourceFlavor{}, flavor, flavor.ObjectMetaApplyConfiguration))
	}
	for _, o := range objects.ClusterQueues() {
		all = append(all, NewObject("ClusterQueue", &kueue.ClusterQueue{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Defaults; o != nil { // before the ceiling, which rejects pods without requests
		all = append(all, NewObject("LimitRange", &corev1.LimitRange{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Ceiling; o != nil {
		all = append(all, NewObject("ResourceQuota", &corev1.ResourceQuota{}, o, o.ObjectMetaApplyConfiguration))
	}
	for _, o := range objects.LocalQueues() {
		all = append(all, NewObject("LocalQueue", &kueue.LocalQueue{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Elastic; o != nil {
		all = append(all, NewObject("RoleBinding", &rbacv1.RoleBinding{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Department; o != nil {
		all = append(all, NewObject("RoleBinding", &rbacv1.RoleBinding{}, o, o.ObjectMetaApplyConfiguration))
	}
	if o := objects.Members; o != nil {
		all = append(all, NewObject("RoleBinding", &rbacv1.RoleBinding{}, o, o.ObjectMetaApplyConfiguration))
	}
	return all
}

// Optional returns the objects that an allocation may have in its namespace, in
// the order in which they are removed: first the members' access, then their
// queue, then its limits.
func Optional(namespace string) []Object {
	object := func(kind, name string, live client.Object) Object {
		return Object{Kind: kind, Key: client.ObjectKey{Namespace: namespace, Name: name}, Live: live}
	}
	return []Object{
		object("RoleBinding", desired.MembersName, &rbacv1.RoleBinding{}),
		object("RoleBinding", desired.DepartmentName, &rbacv1.RoleBinding{}),
		object("RoleBinding", desired.ElasticName, &rbacv1.RoleBinding{}),
		object("LocalQueue", desired.DefaultQueueName, &kueue.LocalQueue{}),
		object("ResourceQuota", desired.CeilingName, &corev1.ResourceQuota{}),
		object("LimitRange", desired.CeilingName, &corev1.LimitRange{}),
	}
}

// Queues returns the LocalQueue and the ClusterQueue of an allocation.
func Queues(allocation *v1alpha1.ComputeAllocation, naming desired.Naming) []Object {
	return []Object{
		{Kind: "LocalQueue", Key: client.ObjectKey{Namespace: desired.NamespaceName(allocation, naming), Name: desired.LocalQueueName(allocation, naming)}, Live: &kueue.LocalQueue{}},
		{Kind: "ClusterQueue", Key: client.ObjectKey{Name: desired.ClusterQueueName(allocation, naming)}, Live: &kueue.ClusterQueue{}},
	}
}

// Removable returns the objects that are removed or released with an allocation, in this
// order: the Optional ones, the queues of shares, and then the queues.
func Removable(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, naming desired.Naming) ([]Object, error) {
	namespace := desired.NamespaceName(allocation, naming)
	shares, err := ShareQueues(ctx, reader, allocation, naming)
	if err != nil {
		return nil, err
	}
	return slices.Concat(Optional(namespace), shares, Queues(allocation, naming)), nil
}

// ShareQueues returns the ClusterQueues that shares of an allocation have or had, some of which do
// not exist, and then their existing LocalQueues. A LocalQueue is deleted after its ClusterQueue,
// which is found by it.
func ShareQueues(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation, naming desired.Naming) (all []Object, err error) {
	var locals kueue.LocalQueueList
	team, namespace := allocation.Name, desired.NamespaceName(allocation, naming)
	if err := reader.List(ctx, &locals, client.InNamespace(namespace), client.MatchingLabels{desired.LabelTeam: team}, client.HasLabels{desired.LabelShare}); err != nil {
		return nil, fmt.Errorf("list LocalQueues of the shares of team %s: %w", team, err)
	}
	names := desired.ClusterQueueNames(allocation, naming)[1:]
	for _, share := range allocation.Status.Shares {
		names = append(names, share.ClusterQueue)
	}
	for i := range locals.Items {
		names = append(names, naming.ShareClusterQueue(team, locals.Items[i].Labels[desired.LabelShare]))
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		all = append(all, Object{Kind: "ClusterQueue", Key: client.ObjectKey{Name: name}, Live: &kueue.ClusterQueue{}})
	}
	for i := range locals.Items {
		all = append(all, Object{Kind: "LocalQueue", Key: client.ObjectKeyFromObject(&locals.Items[i]), Live: &kueue.LocalQueue{}})
	}
	return all, nil
}

// Unwanted returns those of the Optional objects, and of the queues of shares,
// that an allocation does not have.
func Unwanted(objects desired.Objects, shares []Object) []Object {
	wanted := map[string]bool{}
	for _, object := range Objects(objects) {
		wanted[object.Kind+" "+object.Key.Name] = true
	}
	return slices.DeleteFunc(append(Optional(*objects.Namespace.GetName()), shares...), func(o Object) bool { return wanted[o.Kind+" "+o.Key.Name] })
}

// UsesAsIs reports whether an object is an existing flavor that is used without being
// written: Kuota does not manage it, and it selects the nodes of its pool.
func UsesAsIs(ctx context.Context, reader client.Reader, object Object, objects desired.Objects) (bool, error) {
	if object.Kind != "ResourceFlavor" {
		return false, nil
	}
	flavor := &kueue.ResourceFlavor{}
	err := reader.Get(ctx, object.Key, flavor)
	if meta.IsNoMatchError(err) {
		return false, nil // its write reports that the kind is missing
	}
	return err == nil && usesAsIs(objects, flavor), client.IgnoreNotFound(err)
}

func usesAsIs(objects desired.Objects, flavor *kueue.ResourceFlavor) bool {
	return flavor.Name != "" && !ByKuota(flavor) && objects.UsesFlavor(flavor.Name, flavor.Spec.NodeLabels)
}

// Describes reports whether a priority class of the policy is what an existing
// WorkloadPriorityClass of its name is, so that Kuota takes it over without changing it.
func Describes(class *applykueue.WorkloadPriorityClassApplyConfiguration, live *kueue.WorkloadPriorityClass) bool {
	return live.DeletionTimestamp == nil && live.Value == *class.Value && live.Description == ptr.Deref(class.Description, "")
}

// ByKuota reports whether Kuota manages an object: it has Kuota's label or, if
// someone removed the label, the controller still owns fields of it.
func ByKuota(object client.Object) bool {
	if object.GetLabels()[desired.LabelManagedBy] == desired.ManagedBy {
		return true
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == cluster.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}
