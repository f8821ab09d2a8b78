package format

import (
	"strings"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
)

// ResourceLabel heads the figures of a resource, with the unit where that is
// not the thing itself.
func ResourceLabel(resource string) string {
	switch resource {
	case catalog.Memory:
		return "Memory, GiB"
	case catalog.Network:
		return Capitalize(quota.Unit(resource, 2))
	}
	return quota.Unit(resource, 2)
}

// ResourceName is how a choice of resources names one.
func ResourceName(resource string) string {
	switch resource {
	case catalog.CPU:
		return "vCPUs"
	case catalog.Memory:
		return "Memory"
	}
	return Upper(Unit(resource))
}

func IsAccelerator(resource string) bool {
	return catalog.IsQuotaResource(resource) && resource != catalog.CPU && resource != catalog.Memory && resource != catalog.Network
}

// Amounts formats each resource exactly, with its unit. Network devices are left
// out: they follow from the rest.
func Amounts(resources quota.Resources) string { return joinAmounts(resources, quota.Amount) }

// ShortAmounts is amounts for lists, where memory and vCPUs are rounded.
func ShortAmounts(resources quota.Resources) string { return joinAmounts(resources, quota.ShortAmount) }

func joinAmounts(resources quota.Resources, format func(resource string, amount int64) string) string {
	var parts []string
	for _, name := range resources.Names() {
		if resources[name] > 0 && name != catalog.Network {
			parts = append(parts, format(name, resources[name]))
		}
	}
	return strings.Join(parts, " · ")
}

// Unit is what many of a resource are counted in.
func Unit(resource string) string { return quota.Unit(resource, 2) }

func Short(resources quota.Resources, name string) string {
	if resources[name] == 0 {
		return ""
	}
	return quota.Short(name, resources[name])
}

// CSVAmount is an amount as spreadsheets take it.
func CSVAmount(resource string, amount int64) string { return quota.Number(resource, amount) }
