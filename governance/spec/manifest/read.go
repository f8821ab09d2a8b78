package manifest

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
)

// object is the part that both kinds share.
type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   metadata        `json:"metadata"`
	Spec       document.Opaque `json:"spec"`
	Status     document.Opaque `json:"status"`
}

// metadata is an object's metadata, of which only the name is decoded.
type metadata struct {
	Name           string          `json:"name"`
	Labels         document.Opaque `json:"labels"`
	Annotations    document.Opaque `json:"annotations"`
	serverMetadata `json:",inline"`
}

// serverMetadata is the metadata that users do not write.
type serverMetadata struct {
	Finalizers        document.Opaque `json:"finalizers"`
	CreationTimestamp document.Opaque `json:"creationTimestamp"`
	DeletionTimestamp document.Opaque `json:"deletionTimestamp"`
	Generation        document.Opaque `json:"generation"`
	ManagedFields     document.Opaque `json:"managedFields"`
	OwnerReferences   document.Opaque `json:"ownerReferences"`
	ResourceVersion   document.Opaque `json:"resourceVersion"`
	UID               document.Opaque `json:"uid"`
	SelfLink          document.Opaque `json:"selfLink"`
	GracePeriod       document.Opaque `json:"deletionGracePeriodSeconds"`
}

// Read decodes one of Kuota's resources, and sanitizes its spec. Both are nil if n
// is not one. problems are the parts that were skipped.
func Read(n *document.Node, path string) (*v1alpha1.ComputeAllocation, *v1alpha1.ClusterPolicy, governance.FieldErrors) {
	var o object
	report := n.Decode(&o, path)
	wrong := report.Problems
	if o.APIVersion != v1alpha1.GroupVersion.String() {
		wrong.Addf(document.Child(path, "apiVersion"), "is %s; Kuota reads %s", document.Quote(o.APIVersion), v1alpha1.GroupVersion)
		return nil, nil, wrong
	}
	if o.Kind != KindAllocation && o.Kind != KindPolicy {
		wrong.Addf(document.Child(path, "kind"), "is %s; Kuota reads %s, %s and %s", document.Quote(o.Kind), KindAllocation, KindPolicy, v1alpha1.ElasticJobKind)
		return nil, nil, wrong
	}
	if left := slices.DeleteFunc(report.Opaque, func(p string) bool { return p == document.Child(path, "spec") }); len(left) > 0 {
		wrong.Addf(path, "only the name and the spec were imported, not %s", strings.Join(left, ", "))
	}
	spec := n.Get("spec")
	if spec == nil {
		wrong.Addf(document.Child(path, "spec"), "is missing")
		spec = &document.Node{Kind: document.Object}
	}
	at := document.Child(path, "spec")
	if o.Kind == KindPolicy {
		p := &v1alpha1.ClusterPolicy{}
		p.Name = v1alpha1.ClusterPolicyName
		if o.Metadata.Name != p.Name {
			wrong.Addf(document.Child(path, "metadata.name"), "is %s; there is one cluster policy, and its name is %s", document.Quote(o.Metadata.Name), p.Name)
		}
		filled := spec.Decode(&p.Spec, at)
		return nil, p, slices.Concat(wrong, filled.Problems, filled.Unreported(SanitizePolicy(&p.Spec, at)))
	}
	a := &v1alpha1.ComputeAllocation{}
	a.Name = o.Metadata.Name
	wrong = slices.Concat(wrong, report.Unreported(SanitizeName(&a.Name, document.Child(path, "metadata.name"))))
	filled := spec.Decode(&a.Spec, at)
	return a, nil, slices.Concat(wrong, filled.Problems, filled.Unreported(SanitizeSpec(&a.Spec, at)))
}
