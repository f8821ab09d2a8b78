package quota_test

import (
	"encoding/binary"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
)

// hugeExponent matches quantities that take minutes to compare. The schema of the
// CRD rejects them, and the form cannot produce them.
var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3,}`)

// parsed returns the quantity of a text; nil if the text is invalid.
func parsed(text string) *resource.Quantity {
	if len(text) > 64 || hugeExponent.MatchString(text) {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &q
}

// checkQuantities checks that amounts are not negative, and that their quantities
// parse to the same amounts and the same canonical form.
func checkQuantities(t *testing.T, r quota.Resources) {
	t.Helper()
	for _, name := range r.Names() {
		if r[name] < 0 {
			t.Errorf("got %d %s, want at least 0", r[name], name)
		}
		q := r.Quantity(name)
		again, err := resource.ParseQuantity(q.String())
		if err != nil {
			t.Fatalf("%s %s: %v", q.String(), name, err)
		}
		if got := resources.AmountFromQuantity(name, again); got != r[name] || again.String() != q.String() {
			t.Errorf("%d %s: quantity %s parses to %d, %s", r[name], name, q.String(), got, again.String())
		}
	}
}

// checkErrors checks that every error has a message, and a path below root.
func checkErrors(t *testing.T, errs []governance.FieldError, root string) {
	t.Helper()
	for _, e := range errs {
		if e.Message == "" || !strings.HasPrefix(e.Path, root) {
			t.Errorf("got error %q at %q, want a message and a path in %q", e.Message, e.Path, root)
		}
	}
}

// Fill fills in or rejects any row of any instance.
func FuzzFill(f *testing.F) {
	f.Add("48", "192Gi", int64(0), int64(2), "", int64(0), uint16(1))
	f.Add("0.5", "", int64(0), int64(0), "mig-1g.5gb", int64(7), uint16(64))
	f.Add("1Ki", "1e3", int64(3), int64(-1), "mig-7g.80gb", int64(10_000_001), uint16(300))
	f.Add("-1", "9223372036854775808", int64(10_000_000), int64(0), "", int64(0), uint16(65535))
	f.Add("10M", "10000000Gi", int64(0), int64(10_000_000), "", int64(0), uint16(65534))
	f.Add("100u", "1.5", int64(0), int64(0), "mig-9g.5gb", int64(-1), uint16(0))
	types := catalog.KnownTypes()
	pools := cluster().Pools()
	f.Fuzz(func(t *testing.T, vcpu, memory string, instances, accelerators int64, profile string, count int64, which uint16) {
		var instance catalog.Instance
		switch i := int(which); {
		case i < len(types):
			instance, _ = catalog.Known(types[i])
		case i < len(types)+len(pools):
			instance = pools[i-len(types)].Instance
		default: // as small and as large as nodes can report
			bits := which % 60
			instance = catalog.Instance{Type: "lab", MilliCPU: 1 << bits, Memory: 1 << (59 - bits), Accelerators: 1 << (bits / 2), AcceleratorResource: "amd.com/gpu", NetworkDevices: 1 << bits, Partitions: []string{"mig-1g.5gb"}}
		}
		row := v1alpha1.Quantities{VCPU: parsed(vcpu), Memory: parsed(memory)}
		if instances != 0 {
			row.Instances = &instances
		}
		if accelerators != 0 {
			row.Accelerators = &accelerators
		}
		if profile != "" {
			row.Partition = partition(profile, count)
		}
		filled, errs := quota.Fill(row, instance)
		if checkErrors(t, errs, ""); len(errs) > 0 {
			return
		}
		checkQuantities(t, filled)
		if row.VCPU != nil && filled[catalog.CPU] != milli(row.VCPU) {
			t.Errorf("%s vCPU: got %d millicores", vcpu, filled[catalog.CPU])
		}
		if accelerators != 0 && int64(filled[instance.AcceleratorResource]) != accelerators {
			t.Errorf("%d accelerators: got %v", accelerators, filled)
		}
	})
}

// Resolve resolves any rows to distinct pools or rejects them.
func FuzzResolve(f *testing.F) {
	f.Add([]byte{}, int32(50), false)
	f.Add([]byte{0, 1, 2, 0, 0, 0, 5, 0x85, 2, 4, 0, 0, 0, 7}, int32(10_000), false)
	f.Add([]byte{1, 9, 1, 0, 0, 0, 200, 1, 9, 8, 0xff, 0xff, 0xff, 0xff, 0x81, 3, 16, 0, 0, 0, 1}, int32(-1), true)
	types := cluster()
	names := []string{"", "h100", "a100", "neuron", "blue", "green", "later", "chips", "none", "ml.p5.48xlarge", "ml.p5.4xlarge", "ml.g5.2xlarge", "ml.c5.large", "ml.p5e.48xlarge", "ml.p5.48xlage", "ml.trn1n.32xlarge"}
	profiles := []string{"mig-1g.5gb", "mig-7g.80gb", "mig-1g.18gb", "x"}
	f.Fuzz(func(t *testing.T, bytes []byte, p int32, unlimited bool) {
		spec := v1alpha1.ComputeAllocationSpec{Sharing: v1alpha1.Sharing{Unlimited: unlimited}}
		if !unlimited {
			spec.Sharing.BorrowLimitPercent = &p
		}
		// Seven bytes encode a row: whether it names a pool or a type and whether it
		// is quota or a limit, the name, which amounts it sets, and the amount.
		for ; len(bytes) >= 7; bytes = bytes[7:] {
			row, n := v1alpha1.QuotaRow{}, int64(int32(binary.BigEndian.Uint32(bytes[3:])))
			if name := names[int(bytes[1])%len(names)]; bytes[0]&1 == 0 {
				row.Pool = name
			} else {
				row.InstanceType = name
			}
			if bytes[0]&2 != 0 {
				row.InstanceType = names[9]
			}
			if bytes[2]&1 != 0 {
				row.Instances = &n
			}
			if bytes[2]&2 != 0 {
				row.Accelerators = &n
			}
			if bytes[2]&4 != 0 {
				row.VCPU = resource.NewMilliQuantity(n, resource.DecimalSI)
			}
			if bytes[2]&8 != 0 {
				row.Memory = resource.NewQuantity(n<<20, resource.BinarySI)
			}
			if bytes[2]&16 != 0 {
				row.Partition = partition(profiles[bytes[2]>>6], n)
			}
			if bytes[0]&0x80 != 0 {
				spec.Sharing.BorrowLimits = append(spec.Sharing.BorrowLimits, row)
			} else {
				spec.Quota = append(spec.Quota, row)
			}
		}
		resolved, errs := quota.Resolve(&spec, types)
		if checkErrors(t, errs, "spec."); len(errs) > 0 {
			return
		}
		seen := map[string]bool{}
		for _, pool := range resolved.Pools {
			if _, ok := types.Find(pool.Name); !ok || seen[pool.Name] {
				t.Errorf("pool %q does not exist or is resolved twice", pool.Name)
			}
			seen[pool.Name] = true
			checkQuantities(t, pool.Nominal)
			checkQuantities(t, pool.BorrowingLimit)
			if len(pool.Nominal) != len(resolved.Covered()) || pool.BorrowingLimit != nil && len(pool.BorrowingLimit) != len(resolved.Covered()) {
				t.Errorf("pool %s has nominal quota %v and limit %v, want the covered resources %v", pool.Name, pool.Nominal, pool.BorrowingLimit, resolved.Covered())
			}
		}
	})
}
