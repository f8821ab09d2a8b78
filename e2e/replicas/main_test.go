package replicas_test

import (
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// plan is how much the test disturbs the leader.
type plan struct {
	kills   int           // by SIGKILL
	pauses  int           // by SIGSTOP, continued after pause
	stops   int           // by SIGTERM
	pause   time.Duration //
	changes int           // of specs of allocations, each of which becomes a version, per second
	tasks   int           // changes of waiting tasks, per second
}

// planOf returns the short plan, or the one of make verify.
func planOf() plan {
	if !clustertest.Verify {
		return plan{kills: 1, pauses: 1, stops: 1, pause: 12 * time.Second, changes: 5, tasks: 5}
	}
	return plan{kills: 20, pauses: 5, stops: 5, pause: time.Minute, changes: 10, tasks: 40}
}

const (
	maxGap       = 15 * time.Second // between two samples in history
	takeoverTime = 14 * time.Second // until another replica leads after a kill
	handoverTime = 4 * time.Second  // until another replica leads after a clean stop
	endTime      = 15 * time.Second // until a leader that was paused ends, because another one leads
	patience     = consoles.Patience
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
