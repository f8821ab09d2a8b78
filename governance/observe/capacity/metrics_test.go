package capacity

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The metrics have the figures of the snapshot by team, and are absent without one.
func TestTeamMetrics(t *testing.T) {
	w := newWorld()
	w.node("one", true, 16)
	w.team("speech", 8, 2)
	w.team("vision", 4, 10)
	w.in.occupied.Places[tasks.Place{Namespace: "ns-vision"}] = index.TaskCount{Running: 3, Waiting: 2}
	snapshot, now := w.sum(), time.Unix(1_800_000_000, 0)
	var failure error
	m := &TeamMetrics{
		Snapshot: func(context.Context) (*Snapshot, error) { return snapshot, failure },
		Waiting: func(func(index.QueueKey) bool) map[index.QueueKey][]*tasks.Task {
			return map[index.QueueKey][]*tasks.Task{
				{Namespace: "ns-vision", Queue: "a"}: {{WaitingSince: now.Add(-time.Minute)}, {WaitingSince: now.Add(-time.Hour)}},
				{Namespace: "ns-vision", Queue: "b"}: {{WaitingSince: now.Add(-time.Second)}},
			}
		},
		Now: func() time.Time { return now },
	}
	want := `
# HELP kuota_team_borrowed Quota that a team borrows. In cores, bytes and devices.
# TYPE kuota_team_borrowed gauge
kuota_team_borrowed{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="speech"} 0
kuota_team_borrowed{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="vision"} 6
# HELP kuota_team_lent Idle quota of a team that other teams borrow. In cores, bytes and devices.
# TYPE kuota_team_lent gauge
kuota_team_lent{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="speech"} 6
kuota_team_lent{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="vision"} 0
# HELP kuota_team_oldest_wait_seconds How long the task of a team waits that has waited longest; 0 without one.
# TYPE kuota_team_oldest_wait_seconds gauge
kuota_team_oldest_wait_seconds{team="speech"} 0
kuota_team_oldest_wait_seconds{team="vision"} 3600
# HELP kuota_team_quota Nominal quota of a team. In cores, bytes and devices.
# TYPE kuota_team_quota gauge
kuota_team_quota{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="speech"} 8
kuota_team_quota{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="vision"} 4
# HELP kuota_team_running_tasks Running tasks of a team.
# TYPE kuota_team_running_tasks gauge
kuota_team_running_tasks{team="speech"} 0
kuota_team_running_tasks{team="vision"} 3
# HELP kuota_team_used Quota that the admitted tasks of a team use, own and borrowed. In cores, bytes and devices.
# TYPE kuota_team_used gauge
kuota_team_used{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="speech"} 2
kuota_team_used{pool="ml.g5.12xlarge",resource="nvidia.com/gpu",team="vision"} 10
# HELP kuota_team_waiting_tasks Waiting tasks of a team.
# TYPE kuota_team_waiting_tasks gauge
kuota_team_waiting_tasks{team="speech"} 0
kuota_team_waiting_tasks{team="vision"} 2
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if failure = errors.New("unreachable"); testutil.CollectAndCount(m) != 0 {
		t.Error("got metrics without a snapshot, want none")
	}
	if got := BaseUnits("cpu", 1500); got != 1.5 {
		t.Errorf("1,500 millicores are %v cores, want 1.5", got)
	}
}
