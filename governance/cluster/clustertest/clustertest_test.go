package clustertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

func TestConfigureRestartsKueueWithNewConfiguration(t *testing.T) {
	c := clustertest.Get(t)
	const fair = "\nfairSharing: {preemptionStrategies: [LessThanInitialShare]}\n"
	for _, on := range []bool{true, false} {
		c.Configure(t, func(text string) string {
			if on {
				return text + fair
			}
			return strings.Replace(text, fair, "", 1)
		})
		running, err := os.ReadFile(filepath.Join(c.Dir, "run", "kueue-config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(running), "LessThanInitialShare"); got != on {
			t.Errorf("fair sharing enabled: got %t, want %t", got, on)
		}
	}
}
