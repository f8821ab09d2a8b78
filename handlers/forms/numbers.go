package forms

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/handlers/format"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	decimal = regexp.MustCompile(`^[0-9]*(\.[0-9]*)?$`)
)

// ParseWhole parses a whole number from least, which is 0 or more, to most. problem
// describes an error, of which n is least, so that no other check finds the same error;
// empty for none.
func ParseWhole(text string, least, most int64) (n int64, problem string) {
	limit := fmt.Sprintf("a whole number from %d to %s", least, format.Thousands(most))
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case digits.MatchString(text) && err == nil && n < least:
		return least, fmt.Sprintf("must be at least %d; give %s", least, limit)
	case digits.MatchString(text) && err == nil && n <= most:
		return n, ""
	case digits.MatchString(text):
		return least, "too large; give " + limit
	case strings.HasPrefix(text, "-") && decimal.MatchString(text[1:]):
		return least, "cannot be negative; give " + limit
	case decimal.MatchString(text):
		return least, "must be whole; give " + limit
	}
	return least, "not a number; give " + limit
}

// ParseVCPU reads a number of vCPU, in steps of 0.001; nil for none.
func ParseVCPU(text string) (*resource.Quantity, string) {
	thousandths, problem := parseThousandths(text, "such as 48 or 0.5, without a unit")
	if text == "" || problem != "" {
		return nil, problem
	}
	return resource.NewMilliQuantity(thousandths, resource.DecimalSI), ""
}

// ParseGiB reads an amount of memory in GiB, in steps of 0.001, rounded down
// to whole MiB; nil for none.
func ParseGiB(text string) (*resource.Quantity, string) {
	thousandths, problem := parseThousandths(text, "such as 512 or 0.5, in GiB without the unit")
	if text == "" || problem != "" {
		return nil, problem
	}
	return resource.NewQuantity(thousandths*1024/1000*int64(catalog.MiB), resource.BinarySI), ""
}

// parseThousandths parses a decimal number as thousandths, without big numbers: the
// cost is linear in the length of any text.
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
		return 0, "too large; give at most " + format.Thousands(v1alpha1.MaxAmount)
	case len(strings.TrimRight(fraction, "0")) > 3:
		return 0, "too fine; it is counted in steps of 0.001"
	}
	n, err := strconv.ParseInt(strings.TrimLeft(whole, "0")+(fraction + "000")[:3], 10, 64)
	if err != nil {
		return 0, "not a number; give one " + example
	}
	if n > v1alpha1.MaxAmount*1000 {
		return 0, "too large; give at most " + format.Thousands(v1alpha1.MaxAmount)
	}
	return n, ""
}

var days = regexp.MustCompile(`^([0-9]{1,4})d(.*)$`)

// ReadDuration is time.ParseDuration with days, each of 24 hours, such as 3d or 1d12h.
func ReadDuration(text string) (time.Duration, error) {
	m := days.FindStringSubmatch(text)
	if m == nil {
		return time.ParseDuration(text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || m[2] == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	rest, err := time.ParseDuration(m[2])
	return time.Duration(n)*24*time.Hour + rest, err
}

// ParseDuration parses a duration such as 5m, 300s, 1h30m or 3d. problem describes an
// error; empty for none. Kueue counts whole seconds.
func ParseDuration(text string) (d *metav1.Duration, problem string) {
	const example = "write a time such as 5m, 300s, 1h30m or 3d"
	parsed, err := ReadDuration(text)
	switch {
	case digits.MatchString(text) && strings.Trim(text, "0") != "":
		return nil, "has no unit; " + example
	case err != nil:
		return nil, "not a time; " + example
	case parsed < 0:
		return nil, "cannot be negative; " + example
	case parsed%time.Second != 0:
		return nil, "too fine; give whole seconds, such as 300s"
	}
	return &metav1.Duration{Duration: parsed}, ""
}

// ParseTimeLimit parses the time limit of a task or a priority class, in seconds.
func ParseTimeLimit(text string) (seconds int32, problem string) {
	d, problem := ParseDuration(text)
	switch {
	case problem != "":
		return 0, problem
	case d.Duration < time.Second || d.Duration > v1alpha1.MaxTimeLimitSeconds*time.Second:
		return 0, fmt.Sprintf("must be from 1s to %dh", v1alpha1.MaxTimeLimitSeconds/3600)
	}
	return int32(d.Duration / time.Second), ""
}

// ParseCount parses a whole number; empty is fallback.
func ParseCount(text string, fallback *int32) (*int32, string) {
	if text == "" {
		return fallback, ""
	}
	n, problem := ParseWhole(text, 0, math.MaxInt32)
	if problem != "" {
		return fallback, problem
	}
	count := int32(n)
	return &count, ""
}
