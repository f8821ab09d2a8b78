package tasks

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Kueue counts the time of all admissions. The time of an ElasticJob starts again with
// each start of its minimum, which its task does not have.
func TestTimeLimitWords(t *testing.T) {
	admitted := time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		task tasks.Task
		want string
	}{
		"waiting":          {tasks.Task{State: tasks.Pending}, "2h"},
		"running":          {tasks.Task{State: tasks.Running, AdmittedAt: admitted}, "2h, reached at 2026-03-05 12:00 (UTC)"},
		"preempted before": {tasks.Task{State: tasks.Running, AdmittedAt: admitted, RanBefore: 90 * time.Minute}, "2h, reached at 2026-03-05 10:30 (UTC)"},
		"elastic":          {tasks.Task{Kind: v1alpha1.ElasticJobKind, State: tasks.Running, AdmittedAt: admitted}, "2h after each start of its minimum"},
	} {
		t.Run(name, func(t *testing.T) {
			d := queries.Detail{Item: queries.Item{Task: &tc.task}, TimeLimit: 2 * time.Hour}
			if got := timeLimitWords(d); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := timeLimitWords(queries.Detail{Item: d.Item}); got != "" {
				t.Errorf("without a time limit: got %q", got)
			}
		})
	}
}
