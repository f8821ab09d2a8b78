package document

import (
	"math/big"
	"regexp"
	"strconv"
)

// decimal matches a number of JSON or YAML. Its bounds limit the cost of
// arithmetic.
var decimal = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$`)

// ParseRat returns the exact value of a number. ok is false if text is no number,
// or a very long or large one.
func ParseRat(text string) (r *big.Rat, ok bool) {
	if !decimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// ParseInt returns the value of a whole number, which may be written as 10.0.
func ParseInt(text string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	r, ok := ParseRat(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
