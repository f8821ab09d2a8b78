package resources

import (
	"slices"
	"strings"
	"sync/atomic"

	"kuota.dev/kuota/governance/api/v1alpha1"
)

// listed are the resources of the cluster policy, sorted by name. They are vocabulary, as the
// table of instance types is: a process serves one cluster, and all its pages name the
// resources alike.
var listed atomic.Pointer[[]v1alpha1.ListedResource]

// List sets the resources that the cluster policy lists.
func List(of []v1alpha1.ListedResource) {
	sorted := slices.SortedFunc(slices.Values(of), func(a, b v1alpha1.ListedResource) int { return strings.Compare(a.Name, b.Name) })
	listed.Store(&sorted)
}

// AllListed returns the resources that the cluster policy lists, sorted by name. Its
// callers do not change them.
func AllListed() []v1alpha1.ListedResource {
	if of := listed.Load(); of != nil {
		return *of
	}
	return nil
}

// Listed returns a resource that the cluster policy lists.
func Listed(resource string) (v1alpha1.ListedResource, bool) {
	for _, r := range AllListed() {
		if r.Name == resource {
			return r, true
		}
	}
	return v1alpha1.ListedResource{}, false
}
