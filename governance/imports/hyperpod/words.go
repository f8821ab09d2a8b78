package hyperpod

import (
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"
)

// paths replaces the field paths of an allocation's spec by HyperPod's. A path
// stands before its own prefixes, because the first match is used.
var paths = strings.NewReplacer(
	"spec.displayName", "Name",
	"spec.description", "Description",
	"spec.fairShareWeight", "ComputeQuotaTarget.FairShareWeight",
	"spec.quota", "{config}ComputeQuotaResources",
	"spec.sharing.strategy", "{config}ResourceSharingConfig.Strategy",
	"spec.sharing.borrowLimitPercent", "{config}ResourceSharingConfig.BorrowLimit",
	"spec.sharing.borrowLimits", "{config}ResourceSharingConfig.AbsoluteBorrowLimits",
	"spec.preemption.withinTeam", "{config}PreemptTeamTasks",
	".instances", ".Count",
	".accelerators", ".Accelerators",
	".vCPU", ".VCpu",
	".memory", ".MemoryInGiB",
	".partition.profile", ".AcceleratorPartition.Type",
	".partition.count", ".AcceleratorPartition.Count",
	".partition", ".AcceleratorPartition",
)

// configPath returns the path of the configuration of a quota.
func configPath(shape Shape, path string) string {
	if shape == QuotaConfig {
		return path
	}
	return document.Child(path, "ComputeQuotaConfig")
}

// pathsOf returns a function that converts a path of an allocation to HyperPod's.
func pathsOf(shape Shape, path string) func(string) string {
	config := "ComputeQuotaConfig."
	if shape == QuotaConfig {
		config = ""
	}
	return func(p string) string {
		return document.Child(path, strings.ReplaceAll(paths.Replace(p), "{config}", config))
	}
}

// sanitize sanitizes an allocation, and reports problems with HyperPod's paths.
func sanitize(a *v1alpha1.ComputeAllocation, convert func(string) string) (wrong governance.FieldErrors) {
	wrong = manifest.SanitizeName(&a.Name, "ComputeQuotaTarget.TeamName")
	wrong = append(wrong, manifest.SanitizeSpec(&a.Spec, "spec")...)
	for i := range wrong {
		wrong[i].Path = convert(wrong[i].Path)
	}
	return wrong
}

// sanitizePolicy is sanitize for a policy.
func sanitizePolicy(spec *v1alpha1.ClusterPolicySpec, path string) governance.FieldErrors {
	wrong := manifest.SanitizePolicy(spec, "spec")
	for i := range wrong {
		wrong[i].Path = document.Child(path, strings.Replace(wrong[i].Path, "spec.priorityClasses", "PriorityClasses", 1))
	}
	return wrong
}
