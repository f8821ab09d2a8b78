package budgets

import (
	"math"
	"math/big"
	"testing"
)

// A budget of next to nothing is used up, however much is used.
func TestPercent(t *testing.T) {
	for _, tc := range []struct {
		sum, limit string
		want       int64
	}{{"1", "3", 33}, {"0", "0.0001", 0}, {"99999999999999999999", "0.0001", math.MaxInt64}} {
		sum, _ := new(big.Rat).SetString(tc.sum)
		limit, _ := new(big.Rat).SetString(tc.limit)
		if got := percentOf(sum, limit); got != tc.want {
			t.Errorf("%s of %s: got %d percent, want %d", tc.sum, tc.limit, got, tc.want)
		}
	}
}
