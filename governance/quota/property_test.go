package quota_test

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// each runs a check on many random cases, as subtests named by their seed, and
// stops at the first failure.
func each(t *testing.T, cases int, check func(t *testing.T, random *rand.Rand)) {
	for seed := range uint64(cases) {
		random := rand.New(rand.NewPCG(seed, 19))
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { check(t, random) })
		if t.Failed() {
			return
		}
	}
}

// anyInstance returns an instance of the table, the sum of a pool, or one of random
// size.
func anyInstance(random *rand.Rand) catalog.Instance {
	switch random.IntN(3) {
	case 0:
		return oneOf(random, cluster().Pools()).Instance
	case 1:
		return catalog.Instance{
			Type: "lab", MilliCPU: size(random), Memory: size(random), Accelerators: size(random), AcceleratorResource: "amd.com/gpu",
			NetworkDevices: size(random), Partitions: []string{"mig-1g.5gb", "mig-7g.80gb"},
		}
	}
	instance, _ := catalog.Known(oneOf(random, catalog.KnownTypes()))
	return instance
}

// size returns a positive number of up to 60 bits, the maximum of a catalog.
func size(random *rand.Rand) resources.Amount {
	return resources.Amount(1 + random.Int64N(1<<random.IntN(60)))
}

func oneOf[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

// anyAmounts returns amounts of a row, of resources that the instance has.
func anyAmounts(random *rand.Rand, instance catalog.Instance) v1alpha1.Quantities {
	var a v1alpha1.Quantities
	some := func() int64 { return 1 + random.Int64N(1<<random.IntN(23)) }
	if random.IntN(8) == 0 {
		a.Instances = amount(some())
		return a
	}
	switch {
	case len(instance.Partitions) > 0 && random.IntN(3) == 0:
		a.Partition = partition(oneOf(random, instance.Partitions), some())
	case instance.Accelerators > 0 && random.IntN(2) == 0:
		a.Accelerators = amount(some())
	}
	if random.IntN(2) == 0 {
		a.VCPU = resource.NewMilliQuantity(some(), resource.DecimalSI)
	}
	if a.VCPU == nil && a.Accelerators == nil && a.Partition == nil || random.IntN(3) == 0 {
		a.Memory = resource.NewQuantity(some()<<random.IntN(30), resource.BinarySI)
	}
	return a
}

const overflow = "is more than Kubernetes can count; enter less"

// fill fills a row in; ok is false on overflow.
func fill(t *testing.T, row v1alpha1.Quantities, instance catalog.Instance) (filled quota.Resources, ok bool) {
	t.Helper()
	filled, errs := quota.Fill(row, instance)
	for _, e := range errs {
		if e.Message != overflow {
			t.Fatalf("%+v of %+v: %v", row, instance, errs)
		}
	}
	for name, n := range filled {
		if n < 0 {
			t.Errorf("%+v of %+v: got %d %s, want at least 0", row, instance, n, name)
		}
	}
	return filled, len(errs) == 0
}

// A larger amount of one resource never lowers another.
func TestFillIsMonotonic(t *testing.T) {
	each(t, 3000, func(t *testing.T, random *rand.Rand) {
		instance := anyInstance(random)
		row := anyAmounts(random, instance)
		less, ok := fill(t, row, instance)
		larger := row.DeepCopy()
		for _, n := range []*int64{larger.Instances, larger.Accelerators} {
			if n != nil {
				*n += random.Int64N(1000)
			}
		}
		if larger.Partition != nil {
			larger.Partition.Count += random.Int64N(1000)
		}
		if larger.VCPU != nil {
			larger.VCPU.Add(*resource.NewMilliQuantity(random.Int64N(100_000), resource.DecimalSI))
		}
		if larger.Memory != nil {
			larger.Memory.Add(*resource.NewQuantity(random.Int64N(1<<35), resource.BinarySI))
		}
		more, fits := fill(t, *larger, instance)
		if fits && !ok {
			t.Errorf("%+v overflows and the larger %+v does not", row, larger)
		}
		if !fits || !ok {
			return
		}
		for name := range less {
			if more[name] < less[name] {
				t.Errorf("%s decreases from %d to %d as %+v becomes %+v, of %+v", name, less[name], more[name], row, larger, instance)
			}
		}
	})
}

// The shares of two teams are never more vCPU or memory than one share of the same
// size, so splitting a pool among teams cannot exceed it. Network devices are
// rounded up, so two shares can have one device more than one share, and never
// fewer.
func TestSharesAddUp(t *testing.T) {
	each(t, 3000, func(t *testing.T, random *rand.Rand) {
		instance := anyInstance(random)
		if instance.Accelerators == 0 {
			return
		}
		of := func(n int64) (quota.Resources, bool) {
			return fill(t, v1alpha1.Quantities{Accelerators: &n}, instance)
		}
		a, b := 1+random.Int64N(1000), 1+random.Int64N(1000)
		first, ok1 := of(a)
		second, ok2 := of(b)
		both, ok3 := of(a + b)
		if !ok1 || !ok2 || !ok3 {
			return
		}
		for _, name := range []string{catalog.CPU, catalog.Memory, instance.AcceleratorResource} {
			if first[name]+second[name] > both[name] {
				t.Errorf("%d and %d of %+v: %s is %d and %d, together %d", a, b, instance, name, first[name], second[name], both[name])
			}
		}
		if apart, together := first[catalog.Network]+second[catalog.Network], both[catalog.Network]; apart < together || apart > together+1 {
			t.Errorf("%d and %d of %+v: %d network devices, together %d", a, b, instance, apart, together)
		}
	})
}

// anyRows returns rows of distinct pools, by name or by type.
func anyRows(random *rand.Rand, types catalog.Catalog) []v1alpha1.QuotaRow {
	var rows []v1alpha1.QuotaRow
	pools := slices.DeleteFunc(types.Pools(), func(p catalog.Pool) bool { return p.Instance.MilliCPU == 0 })
	random.Shuffle(len(pools), func(i, j int) { pools[i], pools[j] = pools[j], pools[i] })
	for _, pool := range pools[:random.IntN(len(pools)+1)] {
		row := v1alpha1.QuotaRow{Pool: pool.Name, Quantities: anyAmounts(random, pool.Instance)}
		if !pool.Named {
			row.Pool, row.InstanceType = "", pool.Types[0]
		}
		if row.Instances != nil && pool.Grouped {
			row.Quantities = v1alpha1.Quantities{VCPU: quantity("1")}
		}
		rows = append(rows, row)
	}
	return rows
}

// A borrowing limit is its exact percentage of the quota, rounded down to a unit or
// to 1 MiB.
func TestPercentageLimits(t *testing.T) {
	types := cluster()
	each(t, 1000, func(t *testing.T, random *rand.Rand) {
		p := int32(random.IntN(10_001))
		rows := anyRows(random, types)
		resolved, errs := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: rows, Sharing: v1alpha1.Sharing{BorrowLimitPercent: &p}}, types)
		if len(errs) == 1 && errs[0].Message == overflow {
			return
		}
		if len(errs) > 0 {
			t.Fatalf("%+v: %v", rows, errs)
		}
		for _, pool := range resolved.Pools {
			if diff := cmp.Diff(slices.Sorted(maps.Keys(pool.Nominal)), slices.Sorted(maps.Keys(pool.BorrowingLimit))); diff != "" {
				t.Errorf("%s: resources of quota and limit differ (-quota +limit):\n%s", pool.Name, diff)
			}
			for name, nominal := range pool.Nominal {
				exact := new(big.Int).Mul(big.NewInt(int64(nominal)), big.NewInt(int64(p)))
				exact.Div(exact, big.NewInt(100))
				unit := resources.Amount(1)
				if name == catalog.Memory && nominal%catalog.MiB == 0 {
					unit = catalog.MiB
				}
				below := new(big.Int).Sub(exact, big.NewInt(int64(pool.BorrowingLimit[name])))
				if below.Sign() < 0 || below.Cmp(big.NewInt(int64(unit))) >= 0 || pool.BorrowingLimit[name] < 0 {
					t.Errorf("%d %% of %d %s: got %d, want %s rounded down", p, nominal, name, pool.BorrowingLimit[name], exact)
				}
			}
		}
	})
}

// The order of rows is an order of preference and changes no amount.
func TestOrderChangesNoAmount(t *testing.T) {
	types := cluster()
	each(t, 500, func(t *testing.T, random *rand.Rand) {
		spec := v1alpha1.ComputeAllocationSpec{Quota: anyRows(random, types), Sharing: v1alpha1.Sharing{BorrowLimits: anyRows(random, types)}}
		amounts := func() map[string]quota.FlavorQuotas {
			resolved, errs := quota.Resolve(&spec, types)
			if len(errs) > 0 {
				t.Fatalf("%+v: %v", spec, errs)
			}
			all := map[string]quota.FlavorQuotas{}
			for i, pool := range resolved.Pools {
				if i < len(spec.Quota) == pool.BorrowOnly {
					t.Errorf("%s is at position %d of %d rows, with BorrowOnly %t", pool.Name, i, len(spec.Quota), pool.BorrowOnly)
				}
				all[pool.Name] = pool
			}
			return all
		}
		before := amounts()
		for _, rows := range [][]v1alpha1.QuotaRow{spec.Quota, spec.Sharing.BorrowLimits} {
			random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
		if diff := cmp.Diff(before, amounts()); diff != "" {
			t.Errorf("amounts depend on the order (-before +after):\n%s", diff)
		}
	})
}
