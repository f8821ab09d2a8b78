package format

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
)

// ResourceLabel returns the heading of a resource, with its unit unless it is
// counted in pieces.
func ResourceLabel(resource string) string {
	switch {
	case resource == catalog.CPU:
		return quota.Unit(resource, 2)
	case resources.InBytes(resource):
		return ResourceName(resource) + ", GiB"
	}
	return Capitalize(quota.Unit(resource, 2))
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
		listed, _ := resources.Listed(resource)
		return Capitalize(cmp.Or(listed.Label, resource))
	}
	return Capitalize(Unit(resource))
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

// JSONAmounts formats each resource for programs.
func JSONAmounts(resources quota.Resources) map[string]*json.Number {
	amounts := map[string]*json.Number{}
	for name, amount := range resources {
		amounts[name] = JSONAmount(name, amount)
	}
	return amounts
}

// Thousands formats a number with separators.
func Thousands[T ~int | ~int64](n T) string { return quota.Thousands(strconv.FormatInt(int64(n), 10)) }

func Pools(n int) string { return Count(n, "pool") }

// Tasks formats a number of tasks with separators.
func Tasks(tasks int) string {
	return Count(tasks, "task")
}

// lessThanShown is an amount that would round to 0.
const lessThanShown = "<0.01"

// Average formats an average with at most two decimals.
func Average(v float64) string {
	text := trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	if text == "0" && v > 0 {
		return lessThanShown
	}
	return quota.Thousands(text)
}

// AverageOverTime formats an average with at most two decimals, with one from 10 on, and with
// none from 100 on: 31.99 GPUs over an hour are 32.
func AverageOverTime(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		v = math.Round(v)
	case math.Abs(v) >= 10:
		v = math.Round(v*10) / 10
	}
	return Average(v)
}

func Pods[N int32 | int64](n N) string { return Count(int(n), "pod") }

func Ordinal(n int) string {
	ending := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return Thousands(int64(n)) + ending
}

func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(int64(n)) + " " + noun + "s"
}

// Percent formats part of whole as a percentage, with separators; "–" if whole is 0.
func Percent[T ~int64](part, whole T) string {
	number, unit, _ := strings.Cut(usage.Percent(part, whole), " ")
	if number == "0.00" && part > 0 {
		number = lessThanShown
	}
	return strings.TrimSpace(quota.Thousands(number) + " " + unit)
}
