package quota

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

func TestFormats(t *testing.T) {
	const mib = catalog.MiB
	resources.List([]v1alpha1.ListedResource{{Name: "google.com/tpu", Label: "TPUs"}, {Name: "example.com/ram", Label: "GPU memory", Unit: v1alpha1.UnitBytes}, {Name: "cloud-glass", Label: "cups of glass"}})
	t.Cleanup(func() { resources.List(nil) })
	for name, test := range map[string]struct {
		resource                          string
		amount                            resources.Amount
		wantNumber, wantShort, wantAmount string
	}{
		"zero":                      {catalog.Memory, 0, "0", "0", "0 GiB"},
		"zero GPUs":                 {catalog.GPU, 0, "0", "0", "0 GPUs"},
		"one GPU":                   {catalog.GPU, 1, "1", "1", "1 GPU"},
		"a million GPUs":            {catalog.GPU, 1_000_000, "1000000", "1,000,000", "1,000,000 GPUs"},
		"memory with a fraction":    {catalog.Memory, 887_049 * mib, "866.258", "866", "866.258 GiB"},
		"more than a TiB of memory": {catalog.Memory, 2048*1024*mib + 512*mib, "2048.5", "2,048", "2,048.5 GiB"},
		"tens":                      {catalog.Memory, 12*1024*mib + 999*mib, "12.975", "12.9", "12.975 GiB"},
		"below ten":                 {catalog.CPU, 1_256, "1.256", "1.25", "1.256 vCPU"},
		"a half":                    {catalog.CPU, 500, "0.5", "0.5", "0.5 vCPU"},
		"no trailing zero":          {catalog.CPU, 96_020, "96.02", "96", "96.02 vCPU"},
		"too small to show":         {catalog.Memory, 3 * mib, "0.002", "<0.01", "0.002 GiB"},
		"below a thousandth":        {catalog.Memory, 1, "0", "<0.01", "0 GiB"},
		"ephemeral storage":         {"ephemeral-storage", 100 << 30, "100", "100", "100 GiB of ephemeral-storage"},
		"pods":                      {"pods", 1, "1", "1", "1 pod"},
		"as an example has it":      {catalog.CPU, 1_000_000_000_000, "1000000000", "over 100,000,000", "1,000,000,000 vCPU"},
		"a large cluster":           {catalog.CPU, 99_999_999_000, "99999999", "99,999,999", "99,999,999 vCPU"},
		"a listed resource":         {"google.com/tpu", 1200, "1200", "1,200", "1,200 TPUs"},
		"one of a listed resource":  {"google.com/tpu", 1, "1", "1", "1 TPU"},
		"a label in the singular":   {"cloud-glass", 1, "1", "1", "1 cups of glass"},
		"a listed resource, bytes":  {"example.com/ram", 3 << 29, "1.5", "1.5", "1.5 GiB of GPU memory"},
		"of unknown unit":           {"gpu.memory", 800 << 30, "858993459200", "858,993,459,200", "858,993,459,200 gpu.memory"},
		"999,999 terabytes":         {catalog.Memory, 999_999_000_000_000_000, "931321643.292", "over 100,000,000", "931,321,643.292 GiB"},
		"more than can be counted":  {catalog.CPU, resources.Unlimited, "no limit", "no limit", "no limit"},
		"negative":                  {catalog.GPU, -1_500, "-1500", "-1,500", "-1,500 GPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Number(test.resource, test.amount); got != test.wantNumber {
				t.Errorf("Number is %q, want %q", got, test.wantNumber)
			}
			if got := Short(test.resource, test.amount); got != test.wantShort {
				t.Errorf("Short is %q, want %q", got, test.wantShort)
			}
			if got := Amount(test.resource, test.amount); got != test.wantAmount {
				t.Errorf("Amount is %q, want %q", got, test.wantAmount)
			}
		})
	}
	for text, want := range map[string]string{"": "", "–": "–", "12 GPUs": "12 GPUs", "1234.5678": "1,234.5678"} {
		if got := Thousands(text); got != want {
			t.Errorf("Thousands(%q) is %q, want %q", text, got, want)
		}
	}
}
