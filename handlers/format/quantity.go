package format

import (
	"encoding/json"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

// ResourceLabel returns the heading of a resource, with its unit unless it is
// counted in pieces.
func ResourceLabel(resource string) string {
	switch resource {
	case catalog.Memory:
		return "Memory, GiB"
	case catalog.Network:
		return Capitalize(quota.Unit(resource, 2))
	}
	return quota.Unit(resource, 2)
}

// ResourceName returns the name of a resource in a filter.
func ResourceName(resource string) string {
	switch resource {
	case catalog.CPU:
		return "vCPUs"
	case catalog.Memory:
		return "Memory"
	}
	if resources.InBytes(resource) {
		return Upper(resource)
	}
	return Upper(Unit(resource))
}

// Amounts formats each resource exactly, with its unit. Network devices are left
// out: they follow from the rest.
func Amounts(resources quota.Resources) string { return joinAmounts(resources, quota.Amount) }

// ShortAmounts formats like Amounts, with memory and vCPUs rounded, for lists.
func ShortAmounts(resources quota.Resources) string { return joinAmounts(resources, quota.ShortAmount) }

func joinAmounts(resources quota.Resources, format func(resource string, amount resources.Amount) string) string {
	var parts []string
	for _, name := range resources.Names() {
		if resources[name] > 0 && name != catalog.Network {
			parts = append(parts, format(name, resources[name]))
		}
	}
	return strings.Join(parts, " · ")
}

// Unit returns the plural unit of a resource.
func Unit(resource string) string { return quota.Unit(resource, 2) }

// HourUnit returns the unit of hours of a resource, such as "GPU-hours".
func HourUnit(resource string) string {
	unit, of, _ := strings.Cut(quota.Unit(resource, 1), " of ")
	return strings.TrimSuffix(unit+"-hours of "+of, " of ")
}

func Short(resources quota.Resources, name string) string {
	if resources[name] == 0 {
		return ""
	}
	return quota.Short(name, resources[name])
}

// JSONAmount formats an amount for programs; nil for more than can be counted.
func JSONAmount(resource string, amount resources.Amount) *json.Number {
	if amount == resources.Unlimited {
		return nil
	}
	return new(json.Number(quota.Number(resource, amount)))
}
