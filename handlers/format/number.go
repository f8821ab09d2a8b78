package format

import (
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/report/usage"
)

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
