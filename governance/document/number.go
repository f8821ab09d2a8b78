package document

import (
	"math/big"
	"regexp"
	"strconv"
)

// decimal is a number as JSON and YAML write it. Its length bounds what it
// costs to compute with.
var decimal = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$`)

// Rational is a number exactly as written; ok is false for one of absurd
// length or size, and for what is no number.
func ParseRat(text string) (r *big.Rat, ok bool) {
	if !decimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// Whole is a whole number, also one that is written as 10.0.
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
