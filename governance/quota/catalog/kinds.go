package catalog

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota/resources"
)

// BuiltIn reports whether quota covers a resource that no policy lists.
func BuiltIn(resource string) bool {
	return FollowsAccelerators(resource) || slices.Contains(acceleratorResources, resource) || IsPartition(resource)
}

// IsQuotaResource reports whether Kuota counts a resource: what quota, nodes and tasks have
// of it.
func IsQuotaResource(resource string) bool {
	_, ok := resources.Listed(resource)
	return ok || BuiltIn(resource)
}

// IsAccelerator reports whether a resource is an accelerator or a partition of one.
func IsAccelerator(resource string) bool {
	r, _ := resources.Listed(resource)
	return r.Accelerator || slices.Contains(acceleratorResources, resource) || IsPartition(resource)
}

// FollowsAccelerators reports whether quota of a resource follows from that of accelerators, so
// that lists need not name both.
func FollowsAccelerators(resource string) bool {
	return resource == CPU || resource == Memory || resource == Network
}

// accelerators returns the resources that can be the accelerators of an instance; the first
// that it reports counts.
func accelerators() []string {
	names := slices.Clone(acceleratorResources)
	for _, r := range resources.AllListed() {
		if r.Accelerator && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names
}

// IsPartition reports whether a resource is a partition of an accelerator.
func IsPartition(resource string) bool { return strings.HasPrefix(resource, partitionPrefix) }
