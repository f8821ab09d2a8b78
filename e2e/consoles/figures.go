package consoles

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Figures prints the median, the 95th percentile and the maximum of samples.
func Figures(t testing.TB, name string, samples []time.Duration) {
	t.Helper()
	if len(samples) < 20 {
		t.Fatalf("%s: got %d samples, want at least 20", name, len(samples))
	}
	slices.Sort(samples)
	for _, q := range []struct {
		name string
		at   int
	}{{"p50", len(samples) / 2}, {"p95", len(samples) * 95 / 100}, {"max", len(samples) - 1}} {
		fmt.Printf("figure %s_%s %.1f ms\n", name, q.name, float64(samples[q.at].Microseconds())/1000)
	}
}
