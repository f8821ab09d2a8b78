package handlers

import (
	"regexp"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	decimal = regexp.MustCompile(`^[0-9]*(\.[0-9]*)?$`)
)

// parseWhole reads a whole number from 0 to most. problem says what is wrong
// with the text, as a sentence; empty when it is right.
func parseWhole(text string, most int64) (n int64, problem string) {
	limit := "a whole number from 0 to " + thousands(most)
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case digits.MatchString(text) && err == nil && n <= most:
		return n, ""
	case digits.MatchString(text):
		return 0, "too large; give " + limit
	case strings.HasPrefix(text, "-") && decimal.MatchString(text[1:]):
		return 0, "cannot be negative; give " + limit
	case decimal.MatchString(text):
		return 0, "must be whole; give " + limit
	}
	return 0, "not a number; give " + limit
}

// parseVCPU reads a number of vCPU, in steps of 0.001; nil for none.
func parseVCPU(text string) (*resource.Quantity, string) {
	thousandths, problem := parseThousandths(text, "such as 48 or 0.5, without a unit")
	if text == "" || problem != "" {
		return nil, problem
	}
	return resource.NewMilliQuantity(thousandths, resource.DecimalSI), ""
}

// parseGiB reads an amount of memory in GiB, in steps of 0.001, rounded down
// to whole MiB; nil for none.
func parseGiB(text string) (*resource.Quantity, string) {
	thousandths, problem := parseThousandths(text, "such as 512 or 0.5, in GiB without the unit")
	if text == "" || problem != "" {
		return nil, problem
	}
	return resource.NewQuantity(thousandths*1024/1000*catalog.MiB, resource.BinarySI), ""
}

// parseThousandths reads a decimal number as thousandths. It is read by hand:
// no text, however long or large, costs more than its length.
func parseThousandths(text, example string) (int64, string) {
	whole, fraction, _ := strings.Cut(text, ".")
	switch {
	case text == "":
		return 0, ""
	case strings.HasPrefix(text, "-") && len(text) > 1 && decimal.MatchString(text[1:]):
		return 0, "cannot be negative; give a number " + example
	case !decimal.MatchString(text) || text == ".":
		return 0, "not a number; give one " + example
	case len(strings.TrimLeft(whole, "0")) > 8:
		return 0, "too large; give at most " + thousands(quota.MaxAmount)
	case len(strings.TrimRight(fraction, "0")) > 3:
		return 0, "too fine; it is counted in steps of 0.001"
	}
	n, err := strconv.ParseInt(strings.TrimLeft(whole, "0")+(fraction + "000")[:3], 10, 64)
	if err != nil {
		return 0, "not a number; give one " + example
	}
	if n > quota.MaxAmount*1000 {
		return 0, "too large; give at most " + thousands(quota.MaxAmount)
	}
	return n, ""
}

// thousands formats a number with separators.
func thousands(n int64) string { return quota.Thousands(strconv.FormatInt(n, 10)) }
