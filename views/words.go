package views

import "strconv"

// Plural returns n with its noun: one for 1, and many for all other numbers.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
