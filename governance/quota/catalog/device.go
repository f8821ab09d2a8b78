package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// IsQuotaResource reports whether quota covers a resource.
func IsQuotaResource(resource string) bool {
	return resource == CPU || resource == Memory || resource == Network || slices.Contains(acceleratorResources, resource) || strings.HasPrefix(resource, partitionPrefix)
}

// QuotaResources returns the resources that quota covers, without partitions.
func QuotaResources() []string {
	return append([]string{CPU, Memory, Network}, acceleratorResources...)
}

// IsAccelerator reports whether quota covers a resource that is an accelerator or a
// partition of one.
func IsAccelerator(resource string) bool {
	return slices.Contains(acceleratorResources, resource) || IsPartition(resource)
}

// likeAccelerator matches names such as google.com/tpu.
var likeAccelerator = regexp.MustCompile(`(?i)/(.*[^a-z])?v?[gntx]pu`)

// LooksLikeAccelerator reports whether a resource that quota does not cover may
// be an accelerator or a part of one, by its name or its vendor.
func LooksLikeAccelerator(resource string) bool {
	vendor, _, extended := strings.Cut(resource, "/")
	if !extended || IsQuotaResource(resource) {
		return false
	}
	return likeAccelerator.MatchString(resource) || slices.ContainsFunc(acceleratorResources, func(known string) bool {
		return strings.HasPrefix(known, vendor+"/")
	})
}

// IsPartition reports whether a resource is a partition of an accelerator.
func IsPartition(resource string) bool { return strings.HasPrefix(resource, partitionPrefix) }
