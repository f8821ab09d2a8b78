package lab_test

import "testing"

// The modes of the loop guard.
const (
	warn    = "Warn"  // it reports loops
	breakUp = "Break" // it deactivates the preempted Workload while the preemptor is let in
)

// startGuard runs the loop guard in a mode until the test ends. It is nil while
// there is no guard.
var startGuard func(t testing.TB, mode string)

// guard starts the loop guard, where there is one.
func guard(t testing.TB, mode string) {
	t.Helper()
	if startGuard != nil {
		startGuard(t, mode)
	}
}

// needGuard starts the loop guard, and skips the test where there is none.
func needGuard(t testing.TB, mode string) {
	t.Helper()
	if startGuard == nil {
		t.Skip("there is no loop guard")
	}
	startGuard(t, mode)
}
