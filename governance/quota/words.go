package quota

import (
	"cmp"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
)

// unlimited is the text of an amount that is more than can be counted.
const unlimited = "no limit"

// Number returns an amount without unit and thousands separators, as forms and
// files take it: vCPU and GiB with up to three decimals, rounded down; "no limit" for
// more than can be counted.
func Number(resource string, amount resources.Amount) string {
	switch {
	case amount == resources.Unlimited:
		return unlimited
	case resource == catalog.CPU:
		return decimal(amount, 1000)
	case resources.InBytes(resource):
		return decimal(amount, catalog.GiB)
	}
	return strconv.FormatInt(int64(amount), 10)
}

// Grouped returns Number with thousands separators, such as "1,024.5", for pages
// that show quota in detail.
func Grouped(resource string, amount resources.Amount) string {
	return Thousands(Number(resource, amount))
}

// Amount returns Grouped with its unit, such as "2 GPUs".
func Amount(resource string, amount resources.Amount) string {
	return withUnit(Grouped(resource, amount), resource, amount)
}

func withUnit(number, resource string, amount resources.Amount) string {
	if number == unlimited {
		return number
	}
	return number + " " + Unit(resource, amount)
}

// beyondClusters is an amount, in the units of pages, that no cluster has.
const beyondClusters = 100_000_000

// ExceedsAnyCluster reports whether an amount is meant as no limit: it is more than any
// cluster has, or than can be counted.
func ExceedsAnyCluster(resource string, amount resources.Amount) bool {
	most := resources.Unlimited
	switch {
	case resource == catalog.CPU:
		most = beyondClusters * 1000
	case resources.InBytes(resource):
		most = beyondClusters * catalog.GiB
	case catalog.IsQuotaResource(resource):
		most = beyondClusters
	}
	return amount >= most
}

// Short returns an amount for lists and cards, with thousands separators and
// three significant digits. It keeps all digits of the whole number and rounds
// down, so that parts never exceed their sum. Zero is "0", an amount too small to show
// is "<0.01", and one that no cluster has is "over 100,000,000".
func Short(resource string, amount resources.Amount) string {
	if amount < 0 {
		return Grouped(resource, amount)
	}
	whole, decimals, _ := strings.Cut(Number(resource, amount), ".")
	if whole != unlimited && ExceedsAnyCluster(resource, amount) {
		return "over " + Thousands(strconv.Itoa(beyondClusters))
	}
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
func ShortAmount(resource string, amount resources.Amount) string {
	return withUnit(Short(resource, amount), resource, amount)
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
func Unit(resource string, amount resources.Amount) string {
	unit, plural := "", true
	switch resource {
	case catalog.CPU:
		return "vCPU"
	case catalog.Memory:
		return "GiB"
	case "pods":
		unit = "pod"
	case catalog.GPU:
		unit = "GPU"
	case catalog.Neuron:
		unit = "Neuron device"
	case catalog.Network:
		unit = "network device"
	default:
		listed, ok := resources.Listed(resource)
		switch {
		case resources.InBytes(resource):
			return "GiB of " + cmp.Or(listed.Label, resource)
		case ok && amount == 1 && strings.HasSuffix(listed.Label, "s") && !strings.HasSuffix(listed.Label, "ss"):
			return listed.Label[:len(listed.Label)-1]
		case ok:
			return listed.Label
		}
		unit, plural = strings.TrimPrefix(resource, "nvidia.com/"), false
	}
	if plural && amount != 1 {
		unit += "s"
	}
	return unit
}

// decimal returns amount / unit with up to three decimals, rounded down.
func decimal(amount, unit resources.Amount) string {
	whole, rest := amount/unit, amount%unit
	thousandths, _ := rest.Fraction(1000, unit)
	if thousandths == 0 {
		return strconv.FormatInt(int64(whole), 10)
	}
	text := strconv.FormatInt(1000+int64(thousandths), 10)[1:]
	return strconv.FormatInt(int64(whole), 10) + "." + strings.TrimRight(text, "0")
}
