package effective_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/effective"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const day = 24 * 60 // minutes

// scan is a wall clock, read each minute of some days: the latest time that it has shown.
type scan struct {
	zone  string
	from  time.Time
	shown []int64 // minutes since 1970 on the wall clock
}

// wall returns what the clock of a place shows at a time, in minutes since 1970.
func wall(at time.Time) int64 {
	_, offset := at.Zone()
	return (at.Unix() + int64(offset)) / 60
}

func newScan(t *testing.T, zone string, from time.Time, days int) scan {
	t.Helper()
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s := scan{zone: zone, from: from}
	shown := int64(0)
	for at := from.Add(-3 * day * time.Minute); at.Before(from); at = at.Add(time.Minute) {
		shown = max(shown, wall(at.In(place)))
	}
	for n := range days * day {
		shown = max(shown, wall(from.Add(time.Duration(n)*time.Minute).In(place)))
		s.shown = append(s.shown, shown)
	}
	return s
}

// opening is a window with its times in minutes.
type opening struct {
	*v1alpha1.Window
	from, to int64
	days     [7]bool
}

func openings(windows []v1alpha1.Window) (all []opening) {
	for i := range windows {
		o := opening{Window: &windows[i]}
		if len(o.Days) == 0 {
			o.from, o.to = minutes(o.From), minutes(o.To)
		} else if o.from, o.to = clock(o.From), clock(o.To); o.to <= o.from {
			o.to += day
		}
		for _, d := range o.Days {
			o.days[slices.Index(v1alpha1.Weekdays, d)] = true
		}
		all = append(all, o)
	}
	return all
}

// isOpen decides by the wall clock alone whether a window is open at a minute of the scan.
func (s scan) isOpen(w opening, minute int) bool {
	now := s.shown[minute]
	if len(w.Days) == 0 {
		return w.from <= now && now < w.to
	}
	for date := now/day - 2; date <= now/day; date++ {
		if w.days[(date+4)%7] && date*day+w.from <= now && now < date*day+w.to { // 1970 began on a Thursday
			return true
		}
	}
	return false
}

func minutes(text string) int64 {
	at, err := time.Parse("2006-01-02T15:04", text)
	if err != nil {
		panic(err)
	}
	return at.Unix() / 60
}

func clock(text string) int64 {
	var hour, minute int64
	if _, err := fmt.Sscanf(text, "%d:%d", &hour, &minute); err != nil {
		panic(err)
	}
	return hour*60 + minute
}

// changes returns the minutes at which the open window changes, with the window from then
// on, empty for none.
func (s scan) changes(windows []opening) (at []int, names []string) {
	before := "?"
	for n := range s.shown {
		name := ""
		for i := range windows {
			if s.isOpen(windows[i], n) {
				name = windows[i].Name
				break
			}
		}
		if name != before {
			at, names, before = append(at, n), append(names, name), name
		}
	}
	return at, names
}

// TestCalendars compares random calendars around changes of summer time with a scan of the
// wall clock, minute by minute.
func TestCalendars(t *testing.T) {
	const days = 5
	var scans []scan
	for zone, dates := range map[string][]string{
		"Europe/Berlin":       {"2026-03-27", "2026-10-23", "2026-06-10"},
		"America/New_York":    {"2026-03-06", "2026-10-30"},
		"Australia/Lord_Howe": {"2026-04-03", "2026-10-02"}, // half an hour
		"America/Santiago":    {"2026-04-03", "2026-09-04"}, // at midnight
		"Asia/Kathmandu":      {"2026-05-01"},
		"Africa/Casablanca":   {"2026-02-13", "2026-03-20"}, // back during Ramadan
		"Pacific/Apia":        {"2011-12-28"},               // skips a day
		"":                    {"2026-12-30"},
	} {
		for _, date := range dates {
			from, err := time.Parse(time.DateOnly, date)
			if err != nil {
				t.Fatal(err)
			}
			scans = append(scans, newScan(t, zone, from, days))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	overlapping := 0
	for n := range 10_000 {
		s := scans[r.IntN(len(scans))]
		windows := randomWindows(r, s)
		spec := &v1alpha1.ComputeAllocationSpec{Windows: windows}
		wrong := effective.Problems(spec, s.from)
		at, names := s.changes(openings(windows))
		if overlaps(s, openings(windows)) {
			overlapping++
			if len(wrong) == 0 || !strings.Contains(wrong[0].Message, "overlaps") {
				t.Fatalf("calendar %d: %+v overlap, and no problem is reported: %v", n, windows, wrong)
			}
			continue
		}
		allocation := &v1alpha1.ComputeAllocation{Spec: *spec}
		check := func(minute int) {
			t.Helper()
			i, found := slices.BinarySearch(at, minute)
			if !found {
				i--
			}
			now := s.from.Add(time.Duration(minute) * time.Minute)
			in, next := effective.At(allocation, now)
			name := ""
			if in != nil {
				name = in.Window
			}
			if name != names[i] {
				t.Fatalf("calendar %d: at %s window %q is open, want %q: %+v", n, now, name, names[i], windows)
			}
			if i+1 == len(at) {
				return
			}
			want := s.from.Add(time.Duration(at[i+1]) * time.Minute)
			for !next.IsZero() && next.Before(want) { // a window can follow itself at once
				if in, next = effective.At(allocation, next); (in == nil) != (name == "") || in != nil && in.Window != name {
					break
				}
			}
			if !next.Equal(want) {
				t.Fatalf("calendar %d: at %s the next change is %s, want %s: %+v", n, now, next, want, windows)
			}
		}
		for _, minute := range at {
			check(minute)
			if minute > 0 {
				check(minute - 1)
			}
		}
		for range 3 {
			check(r.IntN(len(s.shown)))
		}
	}
	t.Logf("%d of 10,000 calendars overlap", overlapping)
}

// overlaps reports whether two windows are open at once in the scan.
func overlaps(s scan, windows []opening) bool {
	for n := range s.shown {
		open := 0
		for i := range windows {
			if s.isOpen(windows[i], n) {
				open++
			}
		}
		if open > 1 {
			return true
		}
	}
	return false
}

// randomWindows returns up to three windows in the zone of a scan. Their hours are mostly
// those at which clocks change.
func randomWindows(r *rand.Rand, s scan) (windows []v1alpha1.Window) {
	hours := func() string {
		if r.IntN(2) == 0 {
			return fmt.Sprintf("%02d:%02d", r.IntN(24), r.IntN(60))
		}
		return fmt.Sprintf("%02d:%02d", []int{0, 1, 2, 3, 23}[r.IntN(5)], []int{0, 15, 30, 59}[r.IntN(4)])
	}
	for i := range 1 + r.IntN(3) {
		w := v1alpha1.Window{Name: fmt.Sprintf("w%d", i), TimeZone: s.zone, From: hours(), To: hours(), Activation: v1alpha1.Hold}
		if r.IntN(3) > 0 {
			for _, d := range v1alpha1.Weekdays {
				if r.IntN(3) == 0 || d == "Sunday" && r.IntN(2) == 0 {
					w.Days = append(w.Days, d)
				}
			}
		}
		if len(w.Days) == 0 {
			from, to := s.from.AddDate(0, 0, r.IntN(4)), s.from.AddDate(0, 0, r.IntN(5))
			w.From, w.To = from.Format("2006-01-02T")+w.From, to.Format("2006-01-02T")+w.To
			if w.From >= w.To {
				w.To = s.from.AddDate(0, 0, 5).Format("2006-01-02T00:00")
			}
		}
		windows = append(windows, w)
	}
	return windows
}

func TestProblems(t *testing.T) {
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	nights := v1alpha1.Window{Name: "nights", Days: []v1alpha1.Weekday{"Monday", "Friday"}, From: "22:00", To: "06:00", TimeZone: "Europe/Berlin"}
	for name, c := range map[string]struct {
		windows []v1alpha1.Window
		budget  *v1alpha1.Budget
		want    string
	}{
		"no zone":    {windows: []v1alpha1.Window{{Name: "a", From: "2026-12-01T00:00", To: "2026-12-02T00:00", TimeZone: "Mars"}}, want: "spec.windows[0].timeZone: is no time zone"},
		"local zone": {windows: []v1alpha1.Window{{Name: "a", From: "2026-12-01T00:00", To: "2026-12-02T00:00", TimeZone: "Local"}}, want: "spec.windows[0].timeZone"},
		"no date":    {windows: []v1alpha1.Window{{Name: "a", From: "2026-02-30T00:00", To: "2026-12-02T00:00"}}, want: "spec.windows[0].from: use a time"},
		"backwards":  {windows: []v1alpha1.Window{{Name: "a", From: "2026-12-02T00:00", To: "2026-12-02T00:00"}}, want: "spec.windows[0].to"},
		"other zone": {windows: []v1alpha1.Window{nights, {Name: "tokyo", Days: []v1alpha1.Weekday{"Tuesday"}, From: "13:00", To: "14:00", TimeZone: "Asia/Tokyo"}}, want: "spec.windows[1].from: overlaps the window nights on"},
		"far once":   {windows: []v1alpha1.Window{nights, {Name: "fair", From: "2028-01-03T23:00", To: "2028-01-03T23:30", TimeZone: "Europe/Berlin"}}, want: "overlaps the window"},
		"in a row":   {windows: []v1alpha1.Window{nights, {Name: "mornings", Days: []v1alpha1.Weekday{"Tuesday"}, From: "06:00", To: "08:00", TimeZone: "Europe/Berlin"}}},
		"order":      {budget: &v1alpha1.Budget{Steps: []v1alpha1.BudgetStep{{Percent: 90, Action: v1alpha1.BudgetDrain}, {Percent: 95, Action: v1alpha1.BudgetHold}}}, want: "spec.budget.steps: Hold at 95 % comes after Drain at 90 %"},
		"steps":      {budget: &v1alpha1.Budget{Steps: []v1alpha1.BudgetStep{{Percent: 100, Action: v1alpha1.BudgetDrain}, {Percent: 80, Action: v1alpha1.BudgetNotify}}}},
	} {
		wrong := effective.Problems(&v1alpha1.ComputeAllocationSpec{Windows: c.windows, Budget: c.budget}, now)
		got := ""
		if len(wrong) > 0 {
			got = wrong[0].Path + ": " + wrong[0].Message
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestActive checks what windows and budgets replace, and that a budget ends by itself.
func TestActive(t *testing.T) {
	four, percent := int64(4), int32(25)
	now := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	a := &v1alpha1.ComputeAllocation{Spec: v1alpha1.ComputeAllocationSpec{
		Activation: v1alpha1.Active, Sharing: v1alpha1.Sharing{Strategy: v1alpha1.LendAndBorrow},
		Windows: []v1alpha1.Window{{
			Name: "event", From: "2026-11-26T12:00", To: "2026-11-26T14:00", Notice: &metav1.Duration{Duration: time.Hour},
			Quota: []v1alpha1.WindowQuota{{Pool: "a100", Accelerators: &four}}, Sharing: &v1alpha1.WindowSharing{Strategy: v1alpha1.LendAndBorrow, BorrowLimitPercent: &percent},
		}},
	}}
	at := func(after time.Duration) (*v1alpha1.ActiveStatus, v1alpha1.ComputeAllocationSpec, time.Duration) {
		in, next := effective.At(a, now.Add(after))
		a.Status.Active = in
		return in, effective.Spec(a), next.Sub(now)
	}
	if in, _, next := at(0); in != nil || next != time.Hour {
		t.Errorf("before the notice: got %+v until %s, want nothing for an hour", in, next)
	}
	if in, spec, next := at(time.Hour); in == nil || in.Announced == nil || in.Window != "" || len(spec.Quota) != 0 || next != 2*time.Hour {
		t.Errorf("after the notice: got %+v until %s, want an announced window", in, next)
	}
	if in, spec, next := at(2 * time.Hour); in == nil || in.Window != "event" || len(spec.Quota) != 1 || *spec.Sharing.BorrowLimitPercent != 25 || next != 4*time.Hour {
		t.Errorf("in the window: got %+v until %s", in, next)
	}
	a.Spec.Quota = []v1alpha1.QuotaRow{{Pool: "a100", Quantities: v1alpha1.Quantities{Resources: []v1alpha1.ResourceQuantity{{Name: "example.com/license"}}}}}
	if _, spec, _ := at(2 * time.Hour); len(spec.Quota) != 1 || spec.Quota[0].Accelerators != &four || len(spec.Quota[0].Resources) != 1 {
		t.Errorf("in the window, a row with licenses became %+v", spec.Quota)
	}
	a.Spec.Quota = nil
	a.Spec.Budget = &v1alpha1.Budget{AcceleratorHours: &four, Period: v1alpha1.BudgetMonth, Steps: []v1alpha1.BudgetStep{{Percent: 90, Action: v1alpha1.BudgetBorrowNothing}, {Percent: 100, Action: v1alpha1.BudgetHold}}}
	a.Status.Budget = &v1alpha1.BudgetStatus{To: metav1.Time{Time: now.Add(3 * time.Hour)}, Action: v1alpha1.BudgetBorrowNothing}
	if in, spec, _ := at(2 * time.Hour); in.BudgetAction != v1alpha1.BudgetBorrowNothing || spec.Sharing.Strategy != v1alpha1.Lend || len(spec.Quota) != 1 {
		t.Errorf("a budget in a window: got %+v with %+v", in, spec.Sharing)
	}
	a.Status.Budget.Action = v1alpha1.BudgetHold
	if in, spec, next := at(2 * time.Hour); in.BudgetAction != v1alpha1.BudgetHold || spec.Activation != v1alpha1.Hold || next != 3*time.Hour {
		t.Errorf("a budget that is used: got %+v with %s until %s", in, spec.Activation, next)
	}
	if in, spec, _ := at(3 * time.Hour); in.BudgetAction != "" || spec.Activation != v1alpha1.Active {
		t.Errorf("in the next period: got %+v with %s", in, spec.Activation)
	}
	a.Spec.Budget.Steps = a.Spec.Budget.Steps[:1]
	if in, _, _ := at(2 * time.Hour); in.BudgetAction != "" {
		t.Errorf("a step that was removed: got %+v", in)
	}
	if a.Spec.Quota != nil || a.Spec.Activation != v1alpha1.Active {
		t.Errorf("the spec was changed: %+v", a.Spec)
	}
}
