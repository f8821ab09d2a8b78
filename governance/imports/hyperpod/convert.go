package hyperpod

import (
	"math"
	"math/big"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// converter converts HyperPod's types to Kuota's, and reports what it skips.
type converter struct{ problems governance.FieldErrors }

// quota sets the spec of an allocation, and returns the name of the team. Rows
// keep their index, which the paths of problems contain.
func (c *converter) quota(spec *v1alpha1.ComputeAllocationSpec, q *computeQuota, shape Shape, path string) (team string) {
	spec.DisplayName, spec.Description = ptr.Deref(q.Name, ""), ptr.Deref(q.Description, "")
	switch state := ptr.Deref(q.ActivationState, ""); state {
	case "", "Enabled":
	case "Disabled":
		spec.Activation = v1alpha1.Hold
	default:
		c.oneOf(document.Child(path, "ActivationState"), state, "Enabled", "Disabled")
	}
	if t := q.ComputeQuotaTarget; t != nil {
		team = ptr.Deref(t.TeamName, "")
		spec.FairShareWeight = toInt32(t.FairShareWeight)
	}
	config := q.ComputeQuotaConfig
	if config == nil {
		return team
	}
	at := configPath(shape, path)
	spec.Quota = c.rows(config.ComputeQuotaResources, document.Child(at, "ComputeQuotaResources"))
	if s := config.ResourceSharingConfig; s != nil {
		spec.Sharing.Strategy = v1alpha1.SharingStrategy(ptr.Deref(s.Strategy, ""))
		if s.BorrowLimit != nil {
			percent := toInt32(s.BorrowLimit)
			spec.Sharing.BorrowLimitPercent = &percent
		}
		spec.Sharing.BorrowLimits = c.rows(s.AbsoluteBorrowLimit, document.Child(at, "ResourceSharingConfig.AbsoluteBorrowLimits"))
	}
	spec.Preemption.WithinTeam = v1alpha1.WithinTeam(ptr.Deref(config.PreemptTeamTasks, ""))
	return team
}

func (c *converter) rows(rows []*row, path string) []v1alpha1.QuotaRow {
	var all []v1alpha1.QuotaRow
	for i, from := range rows {
		if from == nil {
			from = &row{}
		}
		at := document.Index(path, i)
		one := v1alpha1.QuotaRow{InstanceType: ptr.Deref(from.InstanceType, "")}
		one.Instances, one.Accelerators = from.Count, from.Accelerators
		one.VCPU = c.vCPU(from.VCPU, document.Child(at, "VCpu"))
		one.Memory = c.memory(from.MemoryInGiB, document.Child(at, "MemoryInGiB"))
		if p := from.AcceleratorPartition; p != nil {
			one.Partition = &v1alpha1.Partition{Profile: ptr.Deref(p.Type, "")}
			if p.Count != nil {
				one.Partition.Count = *p.Count
			} else {
				c.problems.Addf(document.Child(at, "AcceleratorPartition.Count"), "is missing; 0 is used")
			}
		}
		all = append(all, one)
	}
	return all
}

// vCPU returns a number of vCPU, rounded down to thousandths. It reports the
// rounding.
func (c *converter) vCPU(d *document.Decimal, path string) *resource.Quantity {
	n, ok := c.parts(d, path, 1000, "a thousandth of a vCPU")
	if !ok {
		return nil
	}
	return resource.NewMilliQuantity(n, resource.DecimalSI)
}

// memory returns an amount of memory in GiB, rounded down to MiB. It reports the
// rounding.
func (c *converter) memory(d *document.Decimal, path string) *resource.Quantity {
	n, ok := c.parts(d, path, int64(catalog.GiB/catalog.MiB), "a MiB")
	if !ok {
		return nil
	}
	return resource.NewQuantity(n*int64(catalog.MiB), resource.BinarySI)
}

// parts returns d in units of 1/parts, rounded down.
func (c *converter) parts(d *document.Decimal, path string, parts int64, name string) (int64, bool) {
	if d == nil {
		return 0, false
	}
	number, ok := document.ParseRat(string(*d))
	if !ok || number.Sign() < 0 || number.Cmp(big.NewRat(v1alpha1.MaxAmount, 1)) > 0 {
		c.problems.Addf(path, "must be a number from 0 to 10,000,000; ignored")
		return 0, false
	}
	number.Mul(number, big.NewRat(parts, 1))
	whole := new(big.Int).Quo(number.Num(), number.Denom())
	if !number.IsInt() {
		c.problems.Addf(path, "%s is finer than %s; rounded down", document.Quote(string(*d)), name)
	}
	return whole.Int64(), true
}

// policy sets the fields of a policy that HyperPod has.
func (c *converter) policy(spec *v1alpha1.ClusterPolicySpec, s *schedulerConfig, path string) {
	spec.TaskPrioritization = v1alpha1.FirstComeFirstServe
	if len(s.PriorityClasses) > 0 {
		spec.TaskPrioritization = v1alpha1.TaskRanking
	}
	for _, from := range s.PriorityClasses {
		if from == nil {
			from = &class{}
		}
		one := v1alpha1.PriorityClass{Name: ptr.Deref(from.Name, "")}
		if from.Weight != nil {
			weight := toInt32(from.Weight)
			one.Weight = &weight
		}
		spec.PriorityClasses = append(spec.PriorityClasses, one)
	}
	spec.IdleCompute.Strategy = v1alpha1.IdleFairShare
	switch fair := ptr.Deref(s.FairShare, ""); fair {
	case "", "Enabled":
	case "Disabled":
		spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	default:
		c.oneOf(document.Child(path, "FairShare"), fair, "Enabled", "Disabled")
	}
	switch share := ptr.Deref(s.IdleResourceSharing, ""); share {
	case "", "Disabled":
	case "Enabled":
		spec.IdleCompute.ShareUnallocated = true
	default:
		c.oneOf(document.Child(path, "IdleResourceSharing"), share, "Disabled", "Enabled")
	}
}

// oneOf reports an invalid value, instead of which usual is used.
func (c *converter) oneOf(path, word, usual, other string) {
	c.problems.Addf(path, "is %s; it must be %s or %s. The default %s is used", document.Quote(word), usual, other, usual)
}

// toInt32 converts n to an int32; 0 for nil. A value that does not fit is clamped:
// it is out of bounds either way, so SanitizeSpec or SanitizePolicy reports it.
func toInt32(n *int64) int32 { return int32(min(max(ptr.Deref(n, 0), math.MinInt32), math.MaxInt32)) }

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
