package format

import (
	"math/big"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"
)

// Hours formats an amount × ms, in units of which one is displayed, as hours with at most
// two decimals.
func Hours(amountMillis *big.Int, unit int64) string {
	hours := new(big.Rat).SetFrac(amountMillis, big.NewInt(unit*time.Hour.Milliseconds()))
	text := trimZeros(hours.FloatString(2))
	switch {
	case text == "0" && amountMillis.Sign() > 0:
		return lessThanShown
	case text == "-0":
		return ">-0.01"
	}
	return quota.Thousands(text)
}

// ExactSeconds formats the same as seconds, with all decimals.
func ExactSeconds(amountMillis *big.Int, unit int64) string {
	return trimZeros(new(big.Rat).SetFrac(amountMillis, big.NewInt(unit*1000)).FloatString(13)) // 1 / 1,024,000 has 13
}

// Money formats a cost with two decimals, and "–" without one.
func Money(cost *big.Rat) string {
	if cost == nil {
		return "–"
	}
	text := cost.FloatString(2)
	if text == "0.00" && cost.Sign() > 0 {
		return lessThanShown
	}
	return quota.Thousands(text)
}

// trimZeros removes decimals that are zero.
func trimZeros(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}
