package tasks_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate/worker"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/estimate"
	"kuota.dev/kuota/governance/tasks/estimate/live"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/views/htmlcheck"
	taskviews "kuota.dev/kuota/views/tasks"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// known are estimates that are computed already; nil for none.
type known struct{ *live.Estimates }

func (k known) Latest(types.UID) *live.Estimates { return k.Estimates }

// TestEstimate shows when a task starts, or why that is not known.
func TestEstimate(t *testing.T) {
	now := time.Date(2026, 11, 23, 14, 2, 0, 0, time.UTC)
	with := func(s live.Start, r estimate.Record) taskpages.Starts {
		return known{&live.Estimates{At: now.Add(-30 * time.Second), Runs: 100, Record: r, Starts: map[types.UID]live.Start{"w": s}}}
	}
	between := func(low, high time.Duration) live.Start {
		return live.Start{Range: estimate.Range{Low: low, High: high}}
	}
	for name, tc := range map[string]struct {
		state      tasks.State
		constraint explain.Constraint
		starts     taskpages.Starts
		wantState  string
		wantText   []string
		wantFrom   string
	}{
		"range": {tasks.Pending, explain.Quota, with(between(12*time.Minute, 86*time.Minute), estimate.Record{Held: 173, Of: 214}), "range",
			[]string{"Probably between 23 Nov 2026, 14:10:00 UTC and 23 Nov 2026, 15:30:00 UTC (in 8 m to 1 h 28 m).", "Of 214 past estimates, 81 % held."}, "2026-11-23T14:10:00Z"},
		"soon":       {tasks.Preempted, explain.Quota, with(between(0, 4*time.Minute), estimate.Record{}), "range", []string{"Probably by 23 Nov 2026, 14:10:00 UTC (within 8 m).", "Simulated with Kueue's scheduler"}, ""},
		"late":       {tasks.Pending, explain.Quota, with(live.Start{Late: true}, estimate.Record{}), "unknown", []string{"Unknown: probably not within 5 days."}, ""},
		"too many":   {tasks.Pending, explain.Quota, with(live.Start{Unknown: true}, estimate.Record{}), "unknown", []string{"Unknown: so many tasks wait before it"}, ""},
		"exceeds":    {tasks.Pending, explain.Quota, with(live.Start{Exceeds: true}, estimate.Record{}), "never", []string{"Never: it requests more"}, ""},
		"verdict":    {tasks.Pending, explain.ExceedsMax, with(between(0, time.Hour), estimate.Record{}), "never", []string{"Never: team vision can never have that much."}, ""},
		"on hold":    {tasks.Pending, explain.QueueStopped, with(between(0, time.Hour), estimate.Record{}), "unknown", []string{"Unknown: its queue is on hold."}, ""},
		"first":      {tasks.Pending, explain.Quota, known{}, "computing", []string{"Estimating"}, ""},
		"new":        {tasks.Pending, explain.Quota, known{&live.Estimates{At: now, Runs: 100}}, "computing", []string{"Estimating"}, ""},
		"few runs":   {tasks.Pending, explain.Quota, known{&live.Estimates{At: now, Runs: 12}}, "unknown", []string{"Unknown: only 12 runs are recorded, and 30 are needed."}, ""},
		"one run":    {tasks.Pending, explain.Quota, known{&live.Estimates{At: now, Runs: 1}}, "unknown", []string{"Unknown: only 1 run is recorded"}, ""},
		"no runs":    {tasks.Pending, explain.Quota, known{&live.Estimates{At: now}}, "unknown", []string{"Unknown: no runs are recorded, and 30 are needed."}, ""},
		"timeout":    {tasks.Pending, explain.Quota, known{&live.Estimates{At: now, Failed: worker.ErrTimeout}}, "unknown", []string{"Unknown: the simulation took too long."}, ""},
		"no history": {tasks.Pending, explain.Quota, nil, "unknown", []string{"Unknown:", "history is disabled"}, ""},
		"runs":       {tasks.Running, "", with(between(0, time.Hour), estimate.Record{}), "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			task := &tasks.Task{State: tc.state, Main: &kueue.Workload{ObjectMeta: metav1.ObjectMeta{UID: "w"}}}
			d := queries.Detail{Item: queries.Item{Task: task, Team: "vision"}, Verdict: &explain.Verdict{Constraint: tc.constraint, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5", Resource: "nvidia.com/gpu"}}}}
			e := taskpages.EstimateOf(d, tc.starts, now)
			if tc.wantState == "" {
				if e != nil {
					t.Errorf("got %+v for a task that does not wait", e)
				}
				return
			}
			page := htmlcheck.Render(t, taskviews.TaskLive(taskviews.TaskPage{Name: "train", Estimate: e}))
			p := page.Find("#estimate")
			if got := p.AttrOr("data-state", ""); got != tc.wantState {
				t.Errorf("the state is %q, want %q", got, tc.wantState)
			}
			if got := p.AttrOr("data-from", ""); got != tc.wantFrom {
				t.Errorf("from %q, want %q", got, tc.wantFrom)
			}
			text := strings.Join(strings.Fields(page.Find("#task-estimate").Text()), " ")
			for _, want := range tc.wantText {
				if !strings.Contains(text, want) {
					t.Errorf("the page shows %q, want %q", text, want)
				}
			}
		})
	}
}
