package resources_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"kuota.dev/kuota/governance/quota/resources"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantities that published examples, clusters and mistakes have.
func TestAmountFromQuantity(t *testing.T) {
	for _, tc := range []struct {
		name, quantity string
		want           resources.Amount
		wantQuantity   string // of the amount
	}{
		{"cpu", "1500m", 1500, "1500m"},
		{"cpu", "0.0001", 1, "1m"}, // rounded up, as in Kueue
		{"cpu", "1000000000", 1_000_000_000_000, "1G"},
		{"cpu", "1E", resources.Unlimited, "9223372036854775807m"},
		{"cpu", "10P", resources.Unlimited, "9223372036854775807m"},
		{"cpu", "1Ei", resources.Unlimited, "9223372036854775807m"},
		{"memory", "1000000000Gi", 1_000_000_000 << 30, "1000000000Gi"},
		{"memory", "999999T", 999_999_000_000_000_000, "976561523437500Ki"},
		{"memory", "8Ei", resources.Unlimited, "9223372036854775807"},
		{"ephemeral-storage", "100Gi", 100 << 30, "100Gi"},
		{"hugepages-2Mi", "512Mi", 512 << 20, "512Mi"},
		{"gpu.memory", "800Gi", 800 << 30, "858993459200"},
		{"nvidia.com/gpu", "-3", 0, "0"},
		{"pods", "110", 110, "110"},
	} {
		got := resources.AmountFromQuantity(tc.name, resource.MustParse(tc.quantity))
		if back := got.Quantity(tc.name); got != tc.want || back.String() != tc.wantQuantity {
			t.Errorf("%s %s: got %d, which is %s, want %d, which is %s", tc.name, tc.quantity, got, back.String(), tc.want, tc.wantQuantity)
		}
	}
}

// Sums, differences and products are exact, or saturate.
func TestArithmetic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	amount := func() resources.Amount {
		switch random.IntN(8) {
		case 0:
			return resources.Unlimited
		case 1:
			return -resources.Unlimited
		}
		return resources.Amount(random.Int64()>>random.IntN(63)) * resources.Amount(1-2*random.IntN(2))
	}
	saturated := func(exact *big.Int) resources.Amount {
		switch limit := big.NewInt(math.MaxInt64); {
		case exact.Cmp(limit) >= 0:
			return resources.Unlimited
		case exact.CmpAbs(limit) >= 0:
			return -resources.Unlimited
		}
		return resources.Amount(exact.Int64())
	}
	for range 100_000 {
		a, b, n := amount(), amount(), random.Int64N(1<<32)-1<<31
		x, y := big.NewInt(int64(a)), big.NewInt(int64(b))
		for op, check := range map[string]struct{ got, want resources.Amount }{
			"+": {a.Plus(b), saturated(new(big.Int).Add(x, y))},
			"-": {a.Minus(b), saturated(new(big.Int).Sub(x, y))},
			"×": {a.Times(n), saturated(new(big.Int).Mul(x, big.NewInt(n)))},
		} {
			unlimited := max(a, -a) == resources.Unlimited || max(b, -b) == resources.Unlimited // absorbs what is added
			if check.got != check.want && !(unlimited && op != "×") {
				t.Fatalf("%d %s %d (%d): got %d, want %d", a, op, b, n, check.got, check.want)
			}
		}
	}
	for _, tc := range []struct{ got, want resources.Amount }{
		{resources.Unlimited.Plus(-5), resources.Unlimited},
		{resources.Unlimited.Minus(1 << 60), resources.Unlimited},
		{resources.Unlimited.Minus(resources.Unlimited), 0},
		{resources.Amount(5).Minus(resources.Unlimited), -resources.Unlimited},
		{resources.Unlimited.Times(0), 0},
		{resources.Unlimited.Times(-1), -resources.Unlimited},
		{resources.Sum(1, 2, resources.Unlimited), resources.Unlimited},
	} {
		if tc.got != tc.want {
			t.Errorf("got %d, want %d", tc.got, tc.want)
		}
	}
}
