package hyperpod

import (
	"math"
	"math/big"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/document"

	"k8s.io/apimachinery/pkg/api/resource"
)

// reader turns what was read into Kuota's.
type reader struct{ wrong document.Problems }

func (r *reader) tell(path, format string, args ...any) { r.wrong.Add(path, format, args...) }

// quota fills the spec of an allocation, and returns the team. Rows keep their
// places, so that what is wrong with one can be told by its number.
func (r *reader) quota(spec *v1alpha1.ComputeAllocationSpec, q *computeQuota, shape Shape, path string) (team string) {
	spec.DisplayName, spec.Description = text(q.Name), text(q.Description)
	switch state := text(q.ActivationState); state {
	case "", "Enabled":
	case "Disabled":
		spec.Activation = v1alpha1.Hold
	default:
		r.oneOf(document.Child(path, "ActivationState"), state, "Enabled", "Disabled")
	}
	if t := q.ComputeQuotaTarget; t != nil {
		team = text(t.TeamName)
		spec.FairShareWeight = small(t.FairShareWeight)
	}
	config := q.ComputeQuotaConfig
	if config == nil {
		return team
	}
	at := configPath(shape, path)
	spec.Quota = r.rows(config.ComputeQuotaResources, document.Child(at, "ComputeQuotaResources"))
	if s := config.ResourceSharingConfig; s != nil {
		spec.Sharing.Strategy = v1alpha1.SharingStrategy(text(s.Strategy))
		if s.BorrowLimit != nil {
			percent := small(s.BorrowLimit)
			spec.Sharing.BorrowLimitPercent = &percent
		}
		spec.Sharing.BorrowLimits = r.rows(s.AbsoluteBorrowLimit, document.Child(at, "ResourceSharingConfig.AbsoluteBorrowLimits"))
	}
	spec.Preemption.WithinTeam = v1alpha1.WithinTeam(text(config.PreemptTeamTasks))
	return team
}

func (r *reader) rows(rows []*row, path string) []v1alpha1.QuotaRow {
	var all []v1alpha1.QuotaRow
	for i, from := range rows {
		if from == nil {
			from = &row{}
		}
		at := document.Index(path, i)
		one := v1alpha1.QuotaRow{InstanceType: text(from.InstanceType)}
		one.Instances, one.Accelerators = from.Count, from.Accelerators
		one.VCPU = r.vCPU(from.VCPU, document.Child(at, "VCpu"))
		one.Memory = r.memory(from.MemoryInGiB, document.Child(at, "MemoryInGiB"))
		if p := from.AcceleratorPartition; p != nil {
			one.Partition = &v1alpha1.Partition{Profile: text(p.Type)}
			if p.Count != nil {
				one.Partition.Count = *p.Count
			} else {
				r.tell(document.Child(at, "AcceleratorPartition.Count"), "is missing; 0 is used")
			}
		}
		all = append(all, one)
	}
	return all
}

// vCPU is a number of vCPU in thousandths; what is finer is rounded down, and
// told.
func (r *reader) vCPU(d *document.Decimal, path string) *resource.Quantity {
	n, ok := r.parts(d, path, 1000, "a thousandth of a vCPU")
	if !ok {
		return nil
	}
	return resource.NewMilliQuantity(n, resource.DecimalSI)
}

// memory is an amount of GiB in MiB, likewise.
func (r *reader) memory(d *document.Decimal, path string) *resource.Quantity {
	n, ok := r.parts(d, path, catalog.GiB/catalog.MiB, "a MiB")
	if !ok {
		return nil
	}
	return resource.NewQuantity(n*catalog.MiB, resource.BinarySI)
}

// parts counts a number in parts of one.
func (r *reader) parts(d *document.Decimal, path string, parts int64, name string) (int64, bool) {
	if d == nil {
		return 0, false
	}
	number, ok := document.ParseRat(string(*d))
	if !ok || number.Sign() < 0 || number.Cmp(big.NewRat(v1alpha1.MaxAmount, 1)) > 0 {
		r.tell(path, "must be a number from 0 to 10,000,000; ignored")
		return 0, false
	}
	number.Mul(number, big.NewRat(parts, 1))
	whole := new(big.Int).Quo(number.Num(), number.Denom())
	if !number.IsInt() {
		r.tell(path, "%s is finer than %s; rounded down", document.Quote(string(*d)), name)
	}
	return whole.Int64(), true
}

// policy fills the spec of a policy with what HyperPod says of it.
func (r *reader) policy(spec *v1alpha1.ClusterPolicySpec, s *schedulerConfig, path string) {
	spec.TaskPrioritization = v1alpha1.FirstComeFirstServe
	if len(s.PriorityClasses) > 0 {
		spec.TaskPrioritization = v1alpha1.TaskRanking
	}
	for _, from := range s.PriorityClasses {
		if from == nil {
			from = &class{}
		}
		one := v1alpha1.PriorityClass{Name: text(from.Name)}
		if from.Weight != nil {
			weight := small(from.Weight)
			one.Weight = &weight
		}
		spec.PriorityClasses = append(spec.PriorityClasses, one)
	}
	spec.IdleCompute.Strategy = v1alpha1.IdleFairShare
	switch fair := text(s.FairShare); fair {
	case "", "Enabled":
	case "Disabled":
		spec.IdleCompute.Strategy = v1alpha1.IdleFirstComeFirstServe
	default:
		r.oneOf(document.Child(path, "FairShare"), fair, "Enabled", "Disabled")
	}
	switch share := text(s.IdleResourceSharing); share {
	case "", "Disabled":
	case "Enabled":
		spec.IdleCompute.ShareUnallocated = true
	default:
		r.oneOf(document.Child(path, "IdleResourceSharing"), share, "Disabled", "Enabled")
	}
}

// oneOf tells of a word that is none; the first is what applies instead.
func (r *reader) oneOf(path, word, usual, other string) {
	r.tell(path, "is %s; it must be %s or %s. The default %s is used", document.Quote(word), usual, other, usual)
}

// small is a number as Kuota holds it; what does not fit stays out of bounds,
// and is told as that.
func small(n *int64) int32 {
	if n == nil {
		return 0
	}
	return int32(min(max(*n, math.MinInt32), math.MaxInt32))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
