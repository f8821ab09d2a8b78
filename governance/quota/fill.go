package quota

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
)

// slicesPerAccelerator is the number of slices that MIG divides an accelerator
// into.
const slicesPerAccelerator = 7

// WholeInstance returns the resources of one whole instance.
func WholeInstance(instance catalog.Instance) Resources {
	whole := Resources{
		catalog.CPU:     instance.MilliCPU,
		catalog.Memory:  instance.Memory,
		catalog.GPU:     0,
		catalog.Neuron:  0,
		catalog.Network: instance.NetworkDevices,
	}
	if instance.AcceleratorResource != "" {
		whole[instance.AcceleratorResource] = instance.Accelerators
	}
	return whole
}

// share is a fraction of an instance: num / den. It can exceed 1.
type share struct{ num, den resources.Amount }

// of returns amount × share, rounded down; ok is false on overflow.
func (s share) of(amount resources.Amount) (resources.Amount, bool) {
	return amount.Fraction(s.num, s.den)
}

// ceil returns amount × share, rounded up; ok is false on overflow.
func (s share) ceil(amount resources.Amount) (resources.Amount, bool) {
	floor, ok := s.of(amount)
	if !ok || floor == resources.Unlimited {
		return 0, false
	}
	if compareProducts(floor, s.den, amount, s.num) < 0 {
		floor = floor.Plus(1)
	}
	return floor, true
}

// larger reports whether s > t. It compares exactly, because the products can
// exceed an int64.
func (s share) larger(t share) bool {
	return compareProducts(s.num, t.den, t.num, s.den) > 0
}

// Fill returns the resources of a row in one instance type. Amounts that the row
// omits are filled in, in proportion to one instance:
//
//   - instances: whole instances;
//   - accelerators only: vCPU and memory by the share of an instance's
//     accelerators; vCPU only, or memory only: the other by the same share,
//     accelerators 0;
//   - accelerators, or a partition, and one of vCPU and memory: the other by
//     the larger share;
//   - a partition: its share is count × slices / (accelerators × 7);
//   - network devices always: the largest share of an instance's, rounded up.
//
// Other resources have no default, and no influence on defaults.
// Shares can exceed 1. vCPU is rounded down to 0.001 and memory to 1 MiB. Errors
// have paths relative to the row, such as "vCPU".
func Fill(row v1alpha1.Quantities, instance catalog.Instance) (Resources, []governance.FieldError) {
	entered, errs := parse(row, instance)
	if len(errs) > 0 {
		return nil, errs
	}
	whole := WholeInstance(instance)
	if entered.instances > 0 {
		filled, ok := whole.Times(entered.instances)
		if !ok {
			return nil, tooLarge("instances")
		}
		filled.Add(entered.others)
		return filled, nil
	}

	filled := Resources{catalog.GPU: 0, catalog.Neuron: 0}
	largest := share{0, 1}
	consider := func(num, den resources.Amount) {
		if s := (share{num, den}); den > 0 && s.larger(largest) {
			largest = s
		}
	}
	if entered.accelerators > 0 {
		filled[instance.AcceleratorResource] = entered.accelerators
		consider(entered.accelerators, instance.Accelerators)
	}
	if p := row.Partition; p != nil {
		count := resources.Amount(p.Count)
		filled[PartitionResource(p.Profile)] = count
		consider(count.Times(partitionSlices(p.Profile)), instance.Accelerators.Times(slicesPerAccelerator))
	}
	if row.VCPU != nil {
		consider(entered.milliCPU, instance.MilliCPU)
	}
	if row.Memory != nil {
		consider(entered.memory, instance.Memory)
	}

	ok := true
	fill := func(name string, isEntered bool, amount, unit resources.Amount) {
		if isEntered {
			filled[name] = amount
			return
		}
		part, fits := largest.of(whole[name])
		filled[name], ok = part.Minus(part%unit), ok && fits
	}
	fill(catalog.CPU, row.VCPU != nil, entered.milliCPU, 1)
	fill(catalog.Memory, row.Memory != nil, entered.memory, catalog.MiB)
	network, fits := largest.ceil(instance.NetworkDevices)
	if filled[catalog.Network] = network; !ok || !fits {
		return nil, tooLarge("")
	}
	filled.Add(entered.others)
	return filled, nil
}

// PartitionResource returns the Kubernetes resource of a MIG profile.
func PartitionResource(migProfile string) string { return "nvidia.com/" + migProfile }

// partitionSlices returns the number of slices of one partition; 0 for an
// invalid profile.
func partitionSlices(migProfile string) int64 {
	match := catalog.PartitionProfile.FindStringSubmatch(migProfile)
	if match == nil {
		return 0
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	return n
}

// amounts are the amounts of a row in the units of Resources.
type amounts struct {
	instances                      int64
	accelerators, milliCPU, memory resources.Amount
	others                         Resources
}

// parse validates the amounts of a row, by themselves and for the instance.
func parse(row v1alpha1.Quantities, instance catalog.Instance) (a amounts, errs governance.FieldErrors) {
	whole := func(field string, n *int64) int64 {
		if n == nil {
			return 0
		}
		if *n < 0 || *n > v1alpha1.MaxAmount {
			errs.Addf(field, "must be a whole number from 0 to 10,000,000")
			return 0
		}
		return *n
	}
	a.instances = whole("instances", row.Instances)
	a.accelerators = resources.Amount(whole("accelerators", row.Accelerators))
	if row.VCPU != nil {
		if problem := checkVCPU(*row.VCPU); problem != "" {
			errs.Addf("vCPU", "%s", problem)
		} else {
			a.milliCPU = resources.AmountFromQuantity(catalog.CPU, *row.VCPU)
		}
	}
	if row.Memory != nil {
		if problem := checkMemory(*row.Memory); problem != "" {
			errs.Addf("memory", "%s", problem)
		} else {
			a.memory = floorBytes(*row.Memory)
		}
	}
	single := row.Accelerators != nil || row.VCPU != nil || row.Memory != nil || row.Partition != nil
	if row.Instances != nil && single {
		errs.Addf("instances", "enter either whole instances or single resources, not both")
	}
	if row.Partition != nil {
		parsePartition(row, instance, &errs)
	}
	if a.accelerators > 0 && instance.Accelerators == 0 {
		errs.Addf("accelerators", "instances of %s have no accelerators", instance.Type)
	}
	a.others = parseOthers(row, instance, &errs)
	if len(errs) == 0 && a.instances == 0 && a.accelerators == 0 && a.milliCPU == 0 && a.memory == 0 && len(a.others) == 0 && (row.Partition == nil || row.Partition.Count == 0) {
		errs.Addf(firstFigure(row), "enter at least one amount above 0")
	}
	return a, errs
}

// firstFigure returns the field of the first amount that a row sets; empty for
// none.
func firstFigure(row v1alpha1.Quantities) string {
	switch {
	case row.Instances != nil:
		return "instances"
	case row.Accelerators != nil:
		return "accelerators"
	case row.VCPU != nil:
		return "vCPU"
	case row.Memory != nil:
		return "memory"
	case row.Partition != nil:
		return "partition.count"
	case len(row.Resources) > 0:
		return "resources[0].quantity"
	}
	return ""
}

// parseOthers returns the resources of a row that have no field of their own.
func parseOthers(row v1alpha1.Quantities, instance catalog.Instance, errs *governance.FieldErrors) Resources {
	others := Resources{}
	for i := range row.Resources {
		r := &row.Resources[i]
		at := fmt.Sprintf("resources[%d].", i)
		amount := resources.AmountFromQuantity(r.Name, r.Quantity)
		exact := amount.Quantity(r.Name)
		switch {
		case slices.Contains(standard, r.Name) || r.Name == instance.AcceleratorResource:
			errs.Addf(at+"name", "%s has a field of its own: accelerators, vCPU or memory; network devices follow from those", r.Name)
		case r.Quantity.Sign() < 0 || r.Quantity.Cmp(maxMemory) > 0:
			errs.Addf(at+"quantity", "must be from 0 to 10,000,000 GiB")
		case r.Quantity.Cmp(exact) != 0:
			errs.Addf(at+"quantity", "must be a whole number")
		case amount > 0:
			others[r.Name] = amount
		}
	}
	return others
}

func parsePartition(row v1alpha1.Quantities, instance catalog.Instance, errs *governance.FieldErrors) {
	p := row.Partition
	if row.Accelerators != nil {
		errs.Addf("partition", "enter either whole accelerators or a partition of them, not both")
	}
	if p.Count < 0 || p.Count > v1alpha1.MaxAmount {
		errs.Addf("partition.count", "must be a whole number from 0 to 10,000,000")
	}
	switch {
	case !catalog.PartitionProfile.MatchString(p.Profile):
		errs.Addf("partition.profile", "must look like mig-1g.5gb")
	case len(instance.Partitions) == 0:
		errs.Addf("partition", "the accelerators of %s cannot be partitioned", instance.Type)
	case !slices.Contains(instance.Partitions, p.Profile):
		errs.Addf("partition.profile", "instances of %s have the profiles %s", instance.Type, strings.Join(instance.Partitions, ", "))
	case instance.Accelerators == 0 && (row.VCPU == nil || row.Memory == nil):
		errs.Addf("partition", "no node of %s ever reported whole accelerators, so the share is unknown: enter vCPU and memory too", instance.Type)
	}
}

var (
	maxVCPU   = *resource.NewQuantity(v1alpha1.MaxAmount, resource.DecimalSI)
	maxMemory = *resource.NewQuantity(v1alpha1.MaxAmount*int64(catalog.GiB), resource.BinarySI)
)

func checkVCPU(q resource.Quantity) string {
	switch {
	case q.Format == resource.BinarySI && !q.IsZero():
		return "vCPU is counted in plain numbers such as 48 or 0.5, not in binary units such as Ki"
	case q.Sign() < 0 || q.Cmp(maxVCPU) > 0:
		return "must be a number from 0 to 10,000,000"
	case !InThousandths(q):
		return "is counted in steps of 0.001"
	}
	return ""
}

// InThousandths reports whether a quantity of vCPU is a whole number of thousandths.
func InThousandths(q resource.Quantity) bool {
	thousandths := resources.AmountFromQuantity(catalog.CPU, q).Quantity(catalog.CPU)
	return q.Cmp(thousandths) == 0
}

func checkMemory(q resource.Quantity) string {
	if q.Sign() < 0 || q.Cmp(maxMemory) > 0 {
		return "must be from 0 to 10,000,000 GiB"
	}
	return ""
}

// floorBytes returns a memory quantity in bytes, rounded down. AmountFromQuantity
// rounds up.
func floorBytes(q resource.Quantity) resources.Amount {
	bytes := resources.AmountFromQuantity(catalog.Memory, q)
	if rounded := bytes.Quantity(catalog.Memory); rounded.Cmp(q) > 0 {
		return bytes.Minus(1)
	}
	return bytes
}

func tooLarge(field string) []governance.FieldError {
	return []governance.FieldError{{Path: field, Message: "is more than Kubernetes can count; enter less"}}
}
