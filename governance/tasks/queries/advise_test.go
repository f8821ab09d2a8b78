package queries

import (
	"testing"

	"kuota.dev/kuota/governance/tasks"
)

// TestAdviceForOne computes advice for two tasks of a user at a time, and for those of
// another user beside them.
func TestAdviceForOne(t *testing.T) {
	a := &advisor{tasks: map[tasks.Key]*advised{}}
	for i, test := range []struct {
		user string
		want bool
	}{{"ada", true}, {"ada", true}, {"ada", false}, {"bob", true}} {
		got := a.mayRun(test.user)
		if got != test.want {
			t.Errorf("computation %d, of %s, may run: %v, want %v", i, test.user, got, test.want)
		}
		if got {
			a.tasks[tasks.Key{Namespace: test.user, UID: string(rune('a' + i))}] = &advised{running: true, user: test.user}
		}
	}
	for _, one := range a.tasks {
		one.running = false
	}
	if !a.mayRun("ada") {
		t.Error("none may run after all ended")
	}
}
