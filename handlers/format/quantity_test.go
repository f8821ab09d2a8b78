package format_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/format"
)

func TestResourceNames(t *testing.T) {
	resources.List([]v1alpha1.ListedResource{{Name: "example.com/license", Label: "éditions"}, {Name: "ephemeral-storage", Label: "scratch space"}})
	t.Cleanup(func() { resources.List(nil) })
	for resource, want := range map[string]struct{ label, name string }{
		"cpu":                    {"vCPU", "vCPUs"},
		"memory":                 {"Memory, GiB", "Memory"},
		"nvidia.com/gpu":         {"GPUs", "GPUs"},
		"vpc.amazonaws.com/efa":  {"Network devices", "Network devices"},
		"example.com/license":    {"Éditions", "Éditions"},
		"ephemeral-storage":      {"Scratch space, GiB", "Scratch space"},
		"example.com/unlisted":   {"example.com/unlisted", "example.com/unlisted"},
		"nvidia.com/mig-1g.10gb": {"mig-1g.10gb", "mig-1g.10gb"},
	} {
		if label, name := format.ResourceLabel(resource), format.ResourceName(resource); label != want.label || name != want.name {
			t.Errorf("%s: got %q and %q, want %q and %q", resource, label, name, want.label, want.name)
		}
	}
}
