package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Counts tells whether a resource is a figure of an instance: quota is given of
// these, and of no others.
func IsQuotaResource(resource string) bool {
	return resource == CPU || resource == Memory || resource == Network || slices.Contains(acceleratorResources, resource) || strings.HasPrefix(resource, partitionPrefix)
}

// likeAccelerator is found in names such as google.com/tpu.
var likeAccelerator = regexp.MustCompile(`(?i)/(.*[^a-z])?v?[gntx]pu`)

// LooksLikeAccelerator tells whether a resource that is no figure of an instance
// may be an accelerator, or a part of one, all the same: it is called so, or
// comes from somebody who makes them.
func LooksLikeAccelerator(resource string) bool {
	vendor, _, extended := strings.Cut(resource, "/")
	if !extended || IsQuotaResource(resource) {
		return false
	}
	return likeAccelerator.MatchString(resource) || slices.ContainsFunc(acceleratorResources, func(known string) bool {
		return strings.HasPrefix(known, vendor+"/")
	})
}

// IsPartition tells whether a resource is a part of an accelerator.
func IsPartition(resource string) bool { return strings.HasPrefix(resource, partitionPrefix) }
