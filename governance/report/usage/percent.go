package usage

import (
	"fmt"
	"math/bits"
)

// Percent returns part / whole with two decimals, such as "53.33 %", rounded
// half up; "–" without a whole.
func Percent[T ~int64](part, whole T) string {
	if whole <= 0 || part < 0 {
		return "–"
	}
	high, low := bits.Mul64(uint64(part), 20_000) // in half hundredths of a percent
	if high >= uint64(whole) {
		return "over 1,000,000 %"
	}
	halves, _ := bits.Div64(high, low, uint64(whole))
	hundredths := (halves + 1) / 2
	return fmt.Sprintf("%d.%02d %%", hundredths/100, hundredths%100)
}
