package quota

import (
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/catalog"
)

// Number writes an amount for people, without its unit: vCPU and GiB with up
// to three decimals.
func Number(resource string, amount int64) string {
	switch resource {
	case catalog.CPU:
		return decimal(amount, 1000)
	case catalog.Memory:
		return decimal(amount, catalog.GiB)
	}
	return strconv.FormatInt(amount, 10)
}

// Amount writes an amount for people, with its unit, such as "2 GPUs".
func Amount(resource string, amount int64) string {
	return Number(resource, amount) + " " + Unit(resource, amount)
}

// Unit is what people count a resource in, such as "GPUs" or "GiB".
func Unit(resource string, amount int64) string {
	unit, plural := "", true
	switch resource {
	case catalog.CPU:
		return "vCPU"
	case catalog.Memory:
		return "GiB"
	case catalog.GPU:
		unit = "GPU"
	case catalog.Neuron:
		unit = "Neuron device"
	case catalog.Network:
		unit = "network device"
	default:
		unit, plural = strings.TrimPrefix(resource, "nvidia.com/"), false
	}
	if plural && amount != 1 {
		unit += "s"
	}
	return unit
}

// decimal writes amount / unit with up to three decimals, rounded down.
func decimal(amount, unit int64) string {
	whole, rest := amount/unit, amount%unit
	thousandths, _ := mulDiv(rest, 1000, unit)
	if thousandths == 0 {
		return strconv.FormatInt(whole, 10)
	}
	text := strconv.FormatInt(1000+thousandths, 10)[1:]
	return strconv.FormatInt(whole, 10) + "." + strings.TrimRight(text, "0")
}
