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
	for got, want := range map[string]string{
		Average(0): "0", Average(0.0001): "<0.01", Average(1234.5): "1,234.5", Average(10): "10",
		AverageOverTime(4.476): "4.48", AverageOverTime(31.99): "32", AverageOverTime(31.94): "31.9", AverageOverTime(1234.5): "1,235",
		Money(big.NewRat(0, 1)): "0.00", Money(big.NewRat(1, 1000)): "<0.01", Money(big.NewRat(12345, 10)): "1,234.50",
		Percent(int64(1), int64(1_000_000)): "<0.01 %", Percent(int64(0), int64(1)): "0.00 %",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
