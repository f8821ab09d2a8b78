package quota

import (
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/catalog"
)

// Number returns an amount without unit and thousands separators, as forms and
// files take it: vCPU and GiB with up to three decimals, rounded down.
func Number(resource string, amount int64) string {
	switch resource {
	case catalog.CPU:
		return decimal(amount, 1000)
	case catalog.Memory:
		return decimal(amount, catalog.GiB)
	}
	return strconv.FormatInt(amount, 10)
}

// Grouped returns Number with thousands separators, such as "1,024.5", for pages
// that show quota in detail.
func Grouped(resource string, amount int64) string { return Thousands(Number(resource, amount)) }

// Amount returns Grouped with its unit, such as "2 GPUs".
func Amount(resource string, amount int64) string {
	return Grouped(resource, amount) + " " + Unit(resource, amount)
}

// Short returns an amount for lists and cards, with thousands separators and
// three significant digits. It keeps all digits of the whole number and rounds
// down, so that parts never exceed their sum. Zero is "0", and an amount too
// small to show is "<0.01".
func Short(resource string, amount int64) string {
	if amount < 0 {
		return Grouped(resource, amount)
	}
	whole, decimals, _ := strings.Cut(Number(resource, amount), ".")
	if keep := 3 - len(whole); keep < len(decimals) {
		decimals = decimals[:max(keep, 0)]
	}
	decimals = strings.TrimRight(decimals, "0")
	switch {
	case decimals != "":
		return Thousands(whole) + "." + decimals
	case whole == "0" && amount > 0:
		return "<0.01"
	}
	return Thousands(whole)
}

// ShortAmount returns Short with its unit, such as "866 GiB".
func ShortAmount(resource string, amount int64) string {
	return Short(resource, amount) + " " + Unit(resource, amount)
}

// Thousands adds thousands separators to a number, such as "1,024.5". Decimals,
// and texts that are no number, stay unchanged.
func Thousands(number string) string {
	whole, decimals, found := strings.Cut(number, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if strings.Trim(whole, "0123456789") != "" {
		return number
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		return sign + whole + "." + decimals
	}
	return sign + whole
}

// Unit returns the unit that pages use for a resource, such as "GPUs" or "GiB".
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

// decimal returns amount / unit with up to three decimals, rounded down.
func decimal(amount, unit int64) string {
	whole, rest := amount/unit, amount%unit
	thousandths, _ := mulDiv(rest, 1000, unit)
	if thousandths == 0 {
		return strconv.FormatInt(whole, 10)
	}
	text := strconv.FormatInt(1000+thousandths, 10)[1:]
	return strconv.FormatInt(whole, 10) + "." + strings.TrimRight(text, "0")
}
