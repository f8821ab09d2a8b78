package format

import (
	"math/big"
	"testing"
	"time"
)

// An amount that is not 0 never appears as 0, whatever its sign.
func TestHours(t *testing.T) {
	hour := time.Hour.Milliseconds()
	for amount, want := range map[int64]string{
		0: "0", 1: "<0.01", -1: ">-0.01", hour / 2: "0.5", -hour / 2: "-0.5", 1234 * hour: "1,234", -1234 * hour: "-1,234",
	} {
		if got := Hours(big.NewInt(amount), 1); got != want {
			t.Errorf("%d ms: got %s, want %s", amount, got, want)
		}
	}
}
