package utilization

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A task is idle since the first of the readings in which it is, if no gap is between them.
func TestIdleTimes(t *testing.T) {
	const after = 30 * time.Minute
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var times IdleTimes
	for _, step := range []struct {
		name string
		at   time.Duration // after start
		idle []string
		want map[string]time.Duration // since when, after start
	}{
		{"first reading", 0, []string{"a"}, map[string]time.Duration{"a": -after}},
		{"same reading", 0, []string{"a"}, map[string]time.Duration{"a": -after}},
		{"another task", after, []string{"a", "b"}, map[string]time.Duration{"a": -after, "b": 0}},
		{"busy", after + time.Minute, []string{"b"}, map[string]time.Duration{"b": 0}},
		{"idle again", after + 2*time.Minute, []string{"a", "b"}, map[string]time.Duration{"a": 2 * time.Minute, "b": 0}},
		{"gap", 5 * after, []string{"a", "b"}, map[string]time.Duration{"a": 4 * after, "b": 4 * after}},
		{"none", 5 * after, nil, map[string]time.Duration{}},
	} {
		var idle []IdleTask
		for _, name := range step.idle {
			idle = append(idle, IdleTask{PodOwner: PodOwner{Task: name}})
		}
		got := map[string]time.Duration{}
		for name, since := range times.Next(start.Add(step.at), idle, after) {
			got[name] = since.Sub(start)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
