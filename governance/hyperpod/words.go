package hyperpod

import (
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/document"
	"kuota.dev/kuota/governance/manifest"
)

// ours are the paths of an allocation's spec in HyperPod's words: longer ones
// before those that they begin with.
var ours = strings.NewReplacer(
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

// configPath is where the configuration of a quota stands.
func configPath(shape Shape, path string) string {
	if shape == QuotaConfig {
		return path
	}
	return document.Child(path, "ComputeQuotaConfig")
}

// words puts a path of an allocation into HyperPod's words.
func words(shape Shape, path string) func(string) string {
	config := "ComputeQuotaConfig."
	if shape == QuotaConfig {
		config = ""
	}
	return func(our string) string {
		return document.Child(path, strings.ReplaceAll(ours.Replace(our), "{config}", config))
	}
}

// bound takes out what an allocation cannot hold, and tells it in HyperPod's
// words.
func bound(a *v1alpha1.ComputeAllocation, words func(string) string) (wrong document.Problems) {
	wrong = manifest.SanitizeName(&a.Name, "ComputeQuotaTarget.TeamName")
	wrong = append(wrong, manifest.SanitizeSpec(&a.Spec, "spec")...)
	for i := range wrong {
		wrong[i].Path = words(wrong[i].Path)
	}
	return wrong
}

// boundPolicy does the same for a policy.
func boundPolicy(spec *v1alpha1.ClusterPolicySpec, path string) document.Problems {
	wrong := manifest.SanitizePolicy(spec, "spec")
	for i := range wrong {
		wrong[i].Path = document.Child(path, strings.Replace(wrong[i].Path, "spec.priorityClasses", "PriorityClasses", 1))
	}
	return wrong
}
