package budgets_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/governance/report/budgets"

	"github.com/google/go-cmp/cmp"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// oddStore cannot read what is used since a time.
type oddStore struct {
	*history.Store
	odd time.Time
}

func (s oddStore) Usage(ctx context.Context, q history.UsageQuery, bounds []time.Time) ([]map[history.SeriesKey]history.Total, error) {
	if bounds[0].Equal(s.odd) {
		return nil, errors.New("odd")
	}
	return s.Store.Usage(ctx, q, bounds)
}

// Teams of other periods are counted beside one that cannot be read.
func TestOddPeriod(t *testing.T) {
	store, err := history.New(filepath.Join(t.TempDir(), "history.db"), history.Options{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer store.Close()
	now := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	must(t, store.AppendSamples(t.Context(), []history.Sample{{At: now}}))
	var holders []budgets.Holder
	for _, period := range []v1alpha1.BudgetPeriod{v1alpha1.BudgetWeek, v1alpha1.BudgetMonth, v1alpha1.BudgetQuarter} {
		holders = append(holders, budgets.Holder{Budget: &v1alpha1.Budget{Money: "1", Period: period, TimeZone: "UTC"}, Teams: []string{string(period)}})
	}
	odd := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	counted, err := budgets.Count(t.Context(), oddStore{store, odd}, holders, accounting.Prices{}, now)
	if err == nil || counted[0] == nil || counted[1] != nil || counted[2] == nil {
		t.Errorf("got %v and error %v, want the other two periods and an error", counted, err)
	}
}

// TestCount counts a team with 8 accelerators across the end of a month in Berlin and a gap,
// which counts nothing.
func TestCount(t *testing.T) {
	store, err := history.New(filepath.Join(t.TempDir(), "history.db"), history.Options{Retention: 365 * 24 * time.Hour, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer store.Close()
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, berlin) // 23:00 in UTC, the day before
	sample := func(at time.Time, own, borrowed, parts int64) {
		t.Helper()
		key := func(resource string, m history.Measure) history.SeriesKey {
			return history.SeriesKey{Team: "vision", Pool: "h100", Resource: resource, Measure: m}
		}
		must(t, store.AppendSamples(t.Context(), []history.Sample{{At: at, Amounts: []history.Amount{
			{SeriesKey: key(catalog.GPU, history.OwnBound), Amount: own}, {SeriesKey: key(catalog.GPU, history.BorrowedBound), Amount: borrowed},
			{SeriesKey: key("nvidia.com/mig-1g.10gb", history.OwnBound), Amount: parts},
		}}}))
	}
	sample(month.Add(-10*time.Hour), 6, 2, 7)
	sample(month.Add(2*time.Hour), 6, 2, 7) // 16 hours in November
	must(t, store.AppendSamples(t.Context(), []history.Sample{{At: month.Add(2 * time.Hour)}}))
	must(t, store.RecordGap(t.Context(), history.Gap{From: month.Add(2 * time.Hour), To: month.Add(5 * time.Hour), Reason: "The console was not running."}))
	sample(month.Add(5*time.Hour), 6, 2, 7)
	sample(month.Add(6*time.Hour), 0, 0, 0) // 8 more

	hours, prices := int64(20), accounting.PricesOf(&v1alpha1.Prices{Currency: "EUR", Hourly: []v1alpha1.HourlyPrice{
		{Pool: "h100", Resource: catalog.GPU, From: "2026-01-01", Own: "2", Borrowed: "1"}, {Pool: "h100", Resource: "nvidia.com/mig-1g.10gb", From: "2026-01-01", Own: "0.5"},
	}})
	steps := []v1alpha1.BudgetStep{{Percent: 100, Action: v1alpha1.BudgetHold}, {Percent: 80, Action: v1alpha1.BudgetNotify}, {Percent: 130, Action: v1alpha1.BudgetDrain}}
	// One team, and a department with a second one that used nothing.
	team := func(b v1alpha1.Budget, created time.Time) []budgets.Holder {
		b.TimeZone, b.Steps = "Europe/Berlin", steps
		return []budgets.Holder{{Budget: &b, Created: created, Teams: []string{"vision"}}, {Budget: &b, Created: created, Teams: []string{"idle", "vision"}}, {Budget: &b, Created: created}}
	}
	for name, tc := range map[string]struct {
		budget    v1alpha1.Budget
		after     time.Duration
		used      string
		percent   int64
		action    v1alpha1.BudgetAction
		projected string
		unknown   time.Duration
		created   time.Duration // of the team, after the month began
	}{
		"before the month ends": {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, -time.Hour, "72.00", 360, v1alpha1.BudgetDrain, "80.00", 735 * time.Hour, -10_000 * time.Hour},
		"the month begins":      {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 0, "0.00", 0, "", "", 0, -10_000 * time.Hour},
		"within it":             {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 2 * time.Hour, "16.00", 80, v1alpha1.BudgetNotify, "5760.00", 0, -10_000 * time.Hour},
		"in the gap":            {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 4 * time.Hour, "16.00", 80, v1alpha1.BudgetNotify, "", 2 * time.Hour, -10_000 * time.Hour},
		"after the gap":         {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 6 * time.Hour, "24.00", 120, v1alpha1.BudgetHold, "5736.00", 3 * time.Hour, -10_000 * time.Hour},
		"a week":                {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetWeek}, 6 * time.Hour, "104.00", 520, v1alpha1.BudgetDrain, "", 0, -10_000 * time.Hour},
		"a quarter":             {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetQuarter}, 6 * time.Hour, "104.00", 520, v1alpha1.BudgetDrain, "", 0, -10_000 * time.Hour},
		"created in the gap":    {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 6 * time.Hour, "24.00", 120, v1alpha1.BudgetHold, "5736.00", time.Hour, 4 * time.Hour},
		"created after the gap": {v1alpha1.Budget{AcceleratorHours: &hours, Period: v1alpha1.BudgetMonth}, 6 * time.Hour, "24.00", 120, v1alpha1.BudgetHold, "5736.00", 0, 5 * time.Hour},
		// 3 hours of 6 own at 2, 2 borrowed at 1, and 7 parts at 0.50.
		"money": {v1alpha1.Budget{Money: "60", Period: v1alpha1.BudgetMonth}, 6 * time.Hour, "52.50", 87, v1alpha1.BudgetNotify, "", 3 * time.Hour, -10_000 * time.Hour},
	} {
		counted, err := budgets.Count(t.Context(), store, team(tc.budget, month.Add(tc.created)), prices, month.Add(tc.after))
		must(t, err)
		got := counted[0]
		if diff := cmp.Diff(got, counted[1]); diff != "" {
			t.Errorf("%s: the department differs from its team: %s", name, diff)
		}
		if counted[2].Used != "0.00" {
			t.Errorf("%s: a department without teams used %s", name, counted[2].Used)
		}
		if got.Used != tc.used || got.Percent != tc.percent || got.Action != tc.action {
			t.Errorf("%s: got %s, %d %%, %q, want %s, %d %%, %q", name, got.Used, got.Percent, got.Action, tc.used, tc.percent, tc.action)
		}
		if tc.projected != "" && got.Projected != tc.projected {
			t.Errorf("%s: got a projection of %s, want %s", name, got.Projected, tc.projected)
		}
		unknown := time.Duration(0)
		if got.Unknown != nil {
			unknown = got.Unknown.Duration
		}
		if tc.unknown != 0 && unknown != tc.unknown || tc.budget.Period == v1alpha1.BudgetMonth && tc.unknown == 0 && unknown != 0 {
			t.Errorf("%s: got %s unknown, want %s", name, unknown, tc.unknown)
		}
		if !got.From.Before(&got.To) || got.Counted.After(month.Add(tc.after)) {
			t.Errorf("%s: got the period %s to %s, counted until %s", name, got.From, got.To, got.Counted)
		}
	}
}
