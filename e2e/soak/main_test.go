package soak_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// durationVariable is the environment variable with the duration of TestSoak.
const durationVariable = "KUOTA_SOAK"

func TestMain(m *testing.M) {
	if os.Getenv(durationVariable) == "" {
		os.Exit(m.Run()) // the other tests need no cluster
	}
	clustertest.Main(m)
}

// The load.
const (
	changesPerSecond = 50
	changedTasks     = 100
	streamCount      = 50
)

// The bounds, each with the reason for its value.
const (
	// Every second the console calls the API server, whose last response may be four
	// seconds old, and sends its age to the pages.
	staleBound = 6 * time.Second
	// From the first response of the API server until no page says that it is old. The
	// console calls it every second, and waits up to two seconds for a response.
	freshBound = 5 * time.Second
	// From a change until an open page shows it, while the API server answers. A page
	// whose replica was killed has reconnected after three seconds.
	changeBound = 5 * time.Second
	// Prometheus is queried every 15 seconds, with a timeout of five.
	prometheusBound = 25 * time.Second
	// After a crash of the leader, or when the API server answers again, another replica
	// leads within 14 seconds; it records from then on.
	historyBound = 20 * time.Second
)

// memoryGrowth and so on are how much the trend of a figure may rise from the end of
// the warm-up to the end of the run: a part of its median, and an amount for noise.
var (
	memoryGrowth    = allowance{part: 0.10, amount: 4 << 20}
	residentGrowth  = allowance{part: 0.10, amount: 16 << 20}
	goroutineGrowth = allowance{part: 0.05, amount: 10}
)

// plan is how long the parts of the run take.
type plan struct {
	warmUp time.Duration
	until  time.Duration // since the start: no round of faults begins later
	calm   time.Duration // between two faults
	outage time.Duration // of the API server and the database
}

// planOf returns the plan of a run. Tasks are deleted a minute after their end, so
// that their number is constant after a minute and a half.
func planOf(total time.Duration) plan {
	p := plan{warmUp: max(90*time.Second, total/6), calm: 10 * time.Second, outage: 12 * time.Second}
	const round = 150 * time.Second
	p.until = max(p.warmUp, total-round)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// figure prints a line of make soak.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure soak_%s %.4g %s\n", name, value, unit)
}
