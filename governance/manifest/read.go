package manifest

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
)

// object is what both kinds have around their spec.
type object struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   metadata      `json:"metadata"`
	Spec       document.Kept `json:"spec"`
	Status     document.Kept `json:"status"`
}

// metadata is an object's metadata, of which the name is read.
type metadata struct {
	Name              string        `json:"name"`
	Labels            document.Kept `json:"labels"`
	Annotations       document.Kept `json:"annotations"`
	Finalizers        document.Kept `json:"finalizers"`
	CreationTimestamp document.Kept `json:"creationTimestamp"`
	DeletionTimestamp document.Kept `json:"deletionTimestamp"`
	Generation        document.Kept `json:"generation"`
	ManagedFields     document.Kept `json:"managedFields"`
	OwnerReferences   document.Kept `json:"ownerReferences"`
	ResourceVersion   document.Kept `json:"resourceVersion"`
	UID               document.Kept `json:"uid"`
	SelfLink          document.Kept `json:"selfLink"`
	GracePeriod       document.Kept `json:"deletionGracePeriodSeconds"`
}

// Read reads one of Kuota's resources; both results are nil when it is none.
// What was left out of it is told.
func Read(n *document.Node, path string) (*v1alpha1.ComputeAllocation, *v1alpha1.ClusterPolicy, document.Wrongs) {
	var o object
	report := n.Fill(&o, path)
	wrong := report.Wrong
	if o.APIVersion != v1alpha1.GroupVersion.String() {
		wrong.Tell(document.Under(path, "apiVersion"), "is %s; Kuota reads %s", document.Short(o.APIVersion), v1alpha1.GroupVersion)
		return nil, nil, wrong
	}
	if o.Kind != KindAllocation && o.Kind != KindPolicy {
		wrong.Tell(document.Under(path, "kind"), "is %s; Kuota reads %s and %s", document.Short(o.Kind), KindAllocation, KindPolicy)
		return nil, nil, wrong
	}
	if left := slices.DeleteFunc(report.Kept, func(p string) bool { return p == document.Under(path, "spec") }); len(left) > 0 {
		wrong.Tell(path, "only the name and the spec were imported, not %s", strings.Join(left, ", "))
	}
	spec := n.Get("spec")
	if spec == nil {
		wrong.Tell(document.Under(path, "spec"), "is missing")
		spec = &document.Node{Kind: document.Object}
	}
	at := document.Under(path, "spec")
	if o.Kind == KindPolicy {
		p := &v1alpha1.ClusterPolicy{}
		p.Name = v1alpha1.ClusterPolicyName
		if o.Metadata.Name != p.Name {
			wrong.Tell(document.Under(path, "metadata.name"), "is %s; there is one cluster policy, and its name is %s", document.Short(o.Metadata.Name), p.Name)
		}
		filled := spec.Fill(&p.Spec, at)
		return nil, p, slices.Concat(wrong, filled.Wrong, filled.News(BoundPolicy(&p.Spec, at)))
	}
	a := &v1alpha1.ComputeAllocation{}
	a.Name = o.Metadata.Name
	wrong = slices.Concat(wrong, report.News(BoundName(&a.Name, document.Under(path, "metadata.name"))))
	filled := spec.Fill(&a.Spec, at)
	return a, nil, slices.Concat(wrong, filled.Wrong, filled.News(BoundSpec(&a.Spec, at)))
}
