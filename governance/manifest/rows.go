package manifest

import (
	"regexp"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/document"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The patterns of amounts in the CRD.
var (
	vCPU   = regexp.MustCompile(`^-?(10000000|(0|[1-9][0-9]{0,6})([.][0-9]{0,3})?|10000000000m|(0|[1-9][0-9]{0,9})m|0k|[1-9][0-9]{0,3}([.][0-9]{0,6})?k|([1-9]|10)M|[0-9]{1,10}([.][0-9]{0,9})?[KMGTPE]i)$`)
	memory = regexp.MustCompile(`^-?((0|[1-9][0-9]{0,15})|(0|[1-9][0-9]{0,12})(k|Ki)|(0|[1-9][0-9]{0,9})(M|Mi)|10000000Gi|(0|[1-9][0-9]{0,6})(G|Gi)|(0|[1-9][0-9]{0,3})(T|Ti)|[0-9](P|Pi)|([1-9][0-9]{0,3}[.][0-9]{1,9}|0[.]0{0,8}[1-9][0-9]{0,8})([KMGT]i|[kMGT]))$`)
)

var (
	maxVCPU   = *resource.NewQuantity(v1alpha1.MaxAmount, resource.DecimalSI)
	maxMemory = *resource.NewQuantity(v1alpha1.MaxAmount*int64(catalog.GiB), resource.BinarySI)
)

// rows returns the valid rows.
func (s sanitizer) rows(rows []v1alpha1.QuotaRow, path string) (kept []v1alpha1.QuotaRow) {
	seen := map[[2]string]bool{}
	for i, row := range rows {
		at := document.Index(path, i)
		key := [2]string{row.InstanceType, row.Pool}
		switch {
		case len(kept) == v1alpha1.MaxQuotaRows:
			s.report(path, "has %d rows; an allocation has at most %d, and the first %d were imported", len(rows), v1alpha1.MaxQuotaRows, v1alpha1.MaxQuotaRows)
			return kept
		case row.InstanceType != "" && row.Pool != "":
			s.report(at, "has both an instance type and a pool; ignored")
		case row.InstanceType == "" && row.Pool == "":
			s.report(at, "has no instance type; ignored")
		case len(row.InstanceType+row.Pool) > v1alpha1.MaxLabelValue:
			s.report(at, "has a name of more than %d characters; ignored", v1alpha1.MaxLabelValue)
		case seen[key]:
			s.report(at, "%s is already in an earlier row; ignored", document.Quote(row.InstanceType+row.Pool))
		case !s.amounts(&row.Quantities, at):
			s.report(at, "has no amount above 0; ignored")
		default:
			seen[key] = true
			kept = append(kept, row)
		}
	}
	return kept
}

// amounts removes invalid amounts of a row. It returns false if no positive amount
// is left.
func (s sanitizer) amounts(a *v1alpha1.Quantities, path string) bool {
	s.count(&a.Instances, document.Child(path, "instances"))
	s.count(&a.Accelerators, document.Child(path, "accelerators"))
	if q := a.VCPU; q != nil && (q.Sign() < 0 || q.Cmp(maxVCPU) > 0 || q.Format == resource.BinarySI && !q.IsZero() || !vCPU.MatchString(q.String()) || !quota.InThousandths(*q)) {
		s.report(document.Child(path, "vCPU"), "must be a number from 0 to 10,000,000 in steps of 0.001; ignored")
		a.VCPU = nil
	}
	if q := a.Memory; q != nil && (q.Sign() < 0 || q.Cmp(maxMemory) > 0 || !memory.MatchString(q.String())) {
		s.report(document.Child(path, "memory"), "must be from 0 to 10,000,000 GiB with fewer decimals; ignored")
		a.Memory = nil
	}
	if p := a.Partition; p != nil && !catalog.PartitionProfile.MatchString(p.Profile) {
		s.report(document.Child(path, "partition.profile"), "%s is not a profile such as mig-1g.5gb; ignored with its count", document.Quote(p.Profile))
		a.Partition = nil
	} else if p != nil && (p.Count < 0 || p.Count > v1alpha1.MaxAmount) {
		s.report(document.Child(path, "partition.count"), "must be from 0 to 10,000,000; ignored with its profile")
		a.Partition = nil
	}
	s.combinations(a, path)
	return positive(a)
}

func (s sanitizer) count(n **int64, path string) {
	if *n != nil && (**n < 0 || **n > v1alpha1.MaxAmount) {
		s.report(path, "must be from 0 to 10,000,000; ignored")
		*n = nil
	}
}

// combinations removes amounts that cannot be combined.
func (s sanitizer) combinations(a *v1alpha1.Quantities, path string) {
	single := a.Accelerators != nil || a.VCPU != nil || a.Memory != nil || a.Partition != nil
	switch {
	case a.Instances == nil || !single:
	case *a.Instances == 0:
		s.report(document.Child(path, "instances"), "is 0; the single resources are used instead")
		a.Instances = nil
	default:
		for _, single := range []struct {
			name string
			set  bool
		}{{"accelerators", a.Accelerators != nil}, {"vCPU", a.VCPU != nil}, {"memory", a.Memory != nil}, {"partition", a.Partition != nil}} {
			if single.set {
				s.report(document.Child(path, single.name), "cannot be combined with whole instances; ignored")
			}
		}
		*a = v1alpha1.Quantities{Instances: a.Instances}
	}
	switch {
	case a.Partition == nil || a.Accelerators == nil:
	case *a.Accelerators == 0:
		s.report(document.Child(path, "accelerators"), "is 0; the partition is used instead")
		a.Accelerators = nil
	default:
		s.report(document.Child(path, "partition"), "cannot be combined with whole accelerators; ignored")
		a.Partition = nil
	}
}

func positive(a *v1alpha1.Quantities) bool {
	return a.Instances != nil && *a.Instances > 0 || a.Accelerators != nil && *a.Accelerators > 0 ||
		a.VCPU != nil && a.VCPU.Sign() > 0 || a.Memory != nil && a.Memory.Sign() > 0 || a.Partition != nil && a.Partition.Count > 0
}
