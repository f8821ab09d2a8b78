package quota_test

import (
	"math/rand/v2"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amount(n int64) *int64 { return &n }

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func partition(profile string, count int64) *v1alpha1.Partition {
	return &v1alpha1.Partition{Profile: profile, Count: count}
}

func known(t *testing.T, instanceType string) catalog.Instance {
	t.Helper()
	instance, ok := catalog.Known(instanceType)
	if !ok {
		t.Fatalf("instance type %s is not in the table", instanceType)
	}
	return instance
}

// quantities returns the resources as Kubernetes quantities, without zeros.
func quantities(r quota.Resources) map[string]string {
	out := map[string]string{}
	for _, name := range r.Names() {
		if q := r.Quantity(name); !q.IsZero() {
			out[name] = q.String()
		}
	}
	return out
}

func TestFill(t *testing.T) {
	cases := map[string]struct {
		instanceType string
		row          v1alpha1.Quantities
		want         map[string]string
	}{
		"two of a p5's eight GPUs: a quarter of the instance": {
			"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(2)},
			map[string]string{"nvidia.com/gpu": "2", "cpu": "48", "memory": "512Gi", "vpc.amazonaws.com/efa": "8"},
		},
		"two GPUs of an instance with one: two instances": {
			"ml.g5.2xlarge", v1alpha1.Quantities{Accelerators: amount(2)},
			map[string]string{"nvidia.com/gpu": "2", "cpu": "16", "memory": "64Gi"},
		},
		"accelerators and vCPU: memory by the larger share": {
			"ml.g6.12xlarge", v1alpha1.Quantities{Accelerators: amount(2), VCPU: quantity("48")},
			map[string]string{"nvidia.com/gpu": "2", "cpu": "48", "memory": "192Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"accelerators and memory: vCPU by the larger share": {
			"ml.g6.12xlarge", v1alpha1.Quantities{Accelerators: amount(3), Memory: quantity("48Gi")},
			map[string]string{"nvidia.com/gpu": "3", "cpu": "36", "memory": "48Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"only vCPU: memory by the same share, no accelerators": {
			"ml.c5.2xlarge", v1alpha1.Quantities{VCPU: quantity("2")},
			map[string]string{"cpu": "2", "memory": "4Gi"},
		},
		"only vCPU on a GPU instance: a network device too": {
			"ml.p5.48xlarge", v1alpha1.Quantities{VCPU: quantity("500m")},
			map[string]string{"cpu": "500m", "memory": "5461Mi", "vpc.amazonaws.com/efa": "1"},
		},
		"other resources beside a proportion": {
			"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(2), Resources: []v1alpha1.ResourceQuantity{{Name: "example.com/license", Quantity: *quantity("3")}, {Name: "ephemeral-storage", Quantity: *quantity("1.5Ti")}, {Name: "example.com/none", Quantity: *quantity("0")}}},
			map[string]string{"nvidia.com/gpu": "2", "cpu": "48", "memory": "512Gi", "vpc.amazonaws.com/efa": "8", "example.com/license": "3", "ephemeral-storage": "1536Gi"},
		},
		"other resources alone": {
			"ml.p5.48xlarge", v1alpha1.Quantities{Resources: []v1alpha1.ResourceQuantity{{Name: "example.com/license", Quantity: *quantity("3")}}},
			map[string]string{"example.com/license": "3"},
		},
		"other resources beside whole instances": {
			"ml.g5.2xlarge", v1alpha1.Quantities{Instances: amount(1), Resources: []v1alpha1.ResourceQuantity{{Name: "nvidia.com/mig-1g.24gb.gfx", Quantity: *quantity("3")}}},
			map[string]string{"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi", "nvidia.com/mig-1g.24gb.gfx": "3"},
		},
		"only memory: vCPU by the same share": {
			"ml.c5.2xlarge", v1alpha1.Quantities{Memory: quantity("3Gi")},
			map[string]string{"cpu": "1500m", "memory": "3Gi"},
		},
		"vCPU and memory: nothing to fill in": {
			"ml.c5.2xlarge", v1alpha1.Quantities{VCPU: quantity("1"), Memory: quantity("10Gi")},
			map[string]string{"cpu": "1", "memory": "10Gi"},
		},
		"whole instances": {
			"ml.p5.48xlarge", v1alpha1.Quantities{Instances: amount(3)},
			map[string]string{"nvidia.com/gpu": "24", "cpu": "576", "memory": "6Ti", "vpc.amazonaws.com/efa": "96"},
		},
		"Neuron devices are accelerators": {
			"ml.trn1.32xlarge", v1alpha1.Quantities{Accelerators: amount(4)},
			map[string]string{"aws.amazon.com/neurondevice": "4", "cpu": "32", "memory": "128Gi", "vpc.amazonaws.com/efa": "2"},
		},
		"a partition counts by its slices, of seven": {
			"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 7)},
			map[string]string{"nvidia.com/mig-1g.5gb": "7", "cpu": "12", "memory": "144Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"a partition of uneven share is rounded down to milli-CPU and MiB": {
			"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-3g.20gb", 1)},
			map[string]string{"nvidia.com/mig-3g.20gb": "1", "cpu": "5142m", "memory": "63195Mi", "vpc.amazonaws.com/efa": "1"},
		},
		"a partition and memory: vCPU by the larger share": {
			"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 7), Memory: quantity("288Gi")},
			map[string]string{"nvidia.com/mig-1g.5gb": "7", "cpu": "24", "memory": "288Gi", "vpc.amazonaws.com/efa": "1"},
		},
		"0 accelerators count as none entered": {
			"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(0), VCPU: quantity("96")},
			map[string]string{"cpu": "96", "memory": "1Ti", "vpc.amazonaws.com/efa": "16"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			filled, errs := quota.Fill(c.row, known(t, c.instanceType))
			if len(errs) > 0 {
				t.Fatalf("got errors %v, want none", errs)
			}
			if diff := cmp.Diff(c.want, quantities(filled)); diff != "" {
				t.Errorf("filled in (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFillRejects(t *testing.T) {
	cases := map[string]struct {
		instanceType string
		row          v1alpha1.Quantities
		wantPath     string
	}{
		"no amounts":                     {"ml.p5.48xlarge", v1alpha1.Quantities{}, ""},
		"a row of zeros":                 {"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(0), VCPU: quantity("0"), Memory: quantity("0")}, "accelerators"},
		"zero partitions":                {"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 0)}, "partition.count"},
		"instances with vCPU":            {"ml.p5.48xlarge", v1alpha1.Quantities{Instances: amount(1), VCPU: quantity("1")}, "instances"},
		"a negative number":              {"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(-1)}, "accelerators"},
		"more than ten million":          {"ml.p5.48xlarge", v1alpha1.Quantities{Accelerators: amount(10_000_001)}, "accelerators"},
		"vCPU in a binary unit":          {"ml.p5.48xlarge", v1alpha1.Quantities{VCPU: quantity("1Ki")}, "vCPU"},
		"vCPU finer than a thousandth":   {"ml.p5.48xlarge", v1alpha1.Quantities{VCPU: quantity("100u")}, "vCPU"},
		"negative vCPU":                  {"ml.p5.48xlarge", v1alpha1.Quantities{VCPU: quantity("-1")}, "vCPU"},
		"vCPU beyond int64":              {"ml.p5.48xlarge", v1alpha1.Quantities{VCPU: quantity("9223372036854775808")}, "vCPU"},
		"negative memory":                {"ml.p5.48xlarge", v1alpha1.Quantities{Memory: quantity("-1Gi")}, "memory"},
		"memory beyond ten million GiB":  {"ml.p5.48xlarge", v1alpha1.Quantities{Memory: quantity("10000001Gi")}, "memory"},
		"accelerators of a type without": {"ml.c5.2xlarge", v1alpha1.Quantities{Accelerators: amount(1)}, "accelerators"},
		"a partition with accelerators":  {"ml.p4d.24xlarge", v1alpha1.Quantities{Accelerators: amount(1), Partition: partition("mig-1g.5gb", 1)}, "partition"},
		"a profile of another model":     {"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.10gb.me", 1)}, "partition.profile"},
		"an invalid profile":             {"ml.p4d.24xlarge", v1alpha1.Quantities{Partition: partition("half", 1)}, "partition.profile"},
		"partitions of a type without":   {"ml.g5.2xlarge", v1alpha1.Quantities{Partition: partition("mig-1g.5gb", 1)}, "partition"},
		"memory beyond int64":            {"ml.u-none", v1alpha1.Quantities{Instances: amount(10_000_000)}, "instances"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			instance := catalog.Instance{Type: "ml.u-none", MilliCPU: 448_000, Memory: 24 << 40}
			if c.instanceType != "ml.u-none" {
				instance = known(t, c.instanceType)
			}
			filled, errs := quota.Fill(c.row, instance)
			if len(errs) != 1 || errs[0].Path != c.wantPath || errs[0].Message == "" {
				t.Errorf("got %v, %v; want one error at %q", filled, errs, c.wantPath)
			}
		})
	}
}

// For any row of any type, entered amounts stay unchanged, and amounts that are
// filled in are at most the largest share.
func TestFillKeepsEnteredAmounts(t *testing.T) {
	types := catalog.KnownTypes()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		instance := known(t, types[random.IntN(len(types))])
		var row v1alpha1.Quantities
		if instance.Accelerators > 0 && random.IntN(2) == 0 {
			row.Accelerators = amount(1 + random.Int64N(1000))
		}
		if random.IntN(2) == 0 {
			row.VCPU = resource.NewMilliQuantity(1+random.Int64N(1_000_000), resource.DecimalSI)
		}
		if row.Accelerators == nil && row.VCPU == nil || random.IntN(3) == 0 {
			row.Memory = resource.NewQuantity((1+random.Int64N(100_000))*int64(catalog.MiB), resource.BinarySI)
		}
		filled, errs := quota.Fill(row, instance)
		if len(errs) > 0 {
			t.Fatalf("%+v of %s: %v", row, instance.Type, errs)
		}
		whole := quota.WholeInstance(instance)
		for name, entered := range map[string]resources.Amount{
			instance.AcceleratorResource: value(row.Accelerators),
			catalog.CPU:                  milli(row.VCPU),
			catalog.Memory:               bytes(row.Memory),
		} {
			if entered > 0 && filled[name] != entered {
				t.Fatalf("%s of %s: got %d, want the entered %d", name, instance.Type, filled[name], entered)
			}
		}
		// The largest share is that of vCPU, memory or accelerators. Network devices
		// are that share, rounded up.
		largest := max(ratio(milli(row.VCPU), whole[catalog.CPU]), ratio(bytes(row.Memory), whole[catalog.Memory]), ratio(value(row.Accelerators), instance.Accelerators))
		if n := float64(filled[catalog.Network]); n < largest*float64(instance.NetworkDevices)-1e-6 || n >= largest*float64(instance.NetworkDevices)+1 {
			t.Fatalf("%+v of %s: got %v network devices for a share of %v", row, instance.Type, n, largest)
		}
		for _, name := range []string{catalog.CPU, catalog.Memory} {
			if float64(filled[name]) > largest*float64(whole[name])*(1+1e-12) {
				t.Fatalf("%+v of %s: got %d %s, more than the share %v", row, instance.Type, filled[name], name, largest)
			}
		}
	}
}

func value(n *int64) resources.Amount {
	if n == nil {
		return 0
	}
	return resources.Amount(*n)
}

func milli(q *resource.Quantity) resources.Amount {
	if q == nil {
		return 0
	}
	return resources.Amount(q.MilliValue())
}

func bytes(q *resource.Quantity) resources.Amount {
	if q == nil {
		return 0
	}
	return resources.Amount(q.Value())
}

func ratio(a, b resources.Amount) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
