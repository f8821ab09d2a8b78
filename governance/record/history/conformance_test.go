package history

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/record/history/historytest"
)

// start is when history begins in tests: within an hour and a day.
var start = time.Date(2026, 3, 1, 17, 41, 12, 345e6, time.UTC)

func TestMain(m *testing.M) {
	if url := os.Getenv(writerURL); url != "" {
		writeUntilKilled(url)
	}
	os.Exit(m.Run())
}

// Every database passes the same tests.
func TestConformance(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		conform(t, func(t testing.TB) string { return filepath.Join(t.TempDir(), "a %41?#history.db") })
		t.Run("FullDisk", testFullDisk)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := historytest.Start(t)
		conform(t, func(t testing.TB) string {
			return server.Database(t) + historytest.Patient
		})
		t.Run("PausedWriter", func(t *testing.T) { testPausedWriter(t, server) })
		t.Run("ServerStopped", func(t *testing.T) { testServerStopped(t, server) })
		t.Run("NetworkLost", func(t *testing.T) { testNetworkLost(t, server) })
	})
}

// conform runs the suite on databases that newURL creates.
func conform(t *testing.T, newURL func(testing.TB) string) {
	for name, test := range map[string]func(*testing.T, string){
		"RecordAgain":      testRecordAgain,
		"MigrateNames":     testMigrateNames,
		"Tasks":            testTasks,
		"KeptTasks":        testKeptTasks,
		"ClassStats":       testClassStats,
		"Trends":           testTrends,
		"Loops":            testLoops,
		"Above":            testAbove,
		"MergePreemptions": testMergePreemptions,
		"Estimates":        testEstimates,
		"ScaleEvents":      testScaleEvents,
		"ForgetScales":     testForgetScaleEvents,
		"TrainingStarts":   testTrainingStarts,
		"Activity":         testActivity,
		"OutsideChanges":   testOutsideChanges,
		"Pseudonyms":       testPseudonyms,
		"AuditedChanges":   testAuditedChanges,
		"Manifests":        testManifests,
		"Alerts":           testAlerts,
		"Deliveries":       testDeliveries,
		"TaskEvents":       testTaskEvents,
		"Amounts":          testAmounts,
		"TaskUsage":        testTaskUsage,
		"FirstGrowth":      testFirstGrowth,
		"LongRuns":         testLongRuns,
		"Samples":          testSamples,
		"Gaps":             testGaps,
		"Forget":           testForget,
		"SetAside":         testSetAside,
		"OldDetail":        testOldDetail,
		"TwoOpens":         testTwoOpens,
		"Terms":            testTerms,
		"Killed":           testKilled,
		"Closed":           testClosed,
		"Cancelled":        testCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, newURL(t)) })
	}
	t.Run("NewerSchema", func(t *testing.T) { testNewerSchema(t, newURL) })
}

func open(t testing.TB, url string, options Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.limit = time.Minute // which calls may need while other tests run
	return s
}

// impatient limits the calls of a store as the console does.
func impatient(s *Store) *Store {
	s.limit = callTimeout
	return s
}

// must returns value, or ends the test if err is set.
func must[T any](t testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// between returns a random time, half of the time at a whole hour or day.
func between(r *rand.Rand, from, to time.Time) time.Time {
	at := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)/time.Millisecond)+1)) * time.Millisecond)
	switch r.IntN(4) {
	case 0:
		return at.Truncate(time.Hour)
	case 1:
		return at.Truncate(24 * time.Hour)
	}
	return at
}

// ordered returns a and b in the order of time.
func ordered(a, b time.Time) (time.Time, time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}
