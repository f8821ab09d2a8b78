package allocations

import (
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
)

// All errors of all windows are reported at once, without those that follow from another.
func TestWindowErrorsAtOnce(t *testing.T) {
	var form allocationForm
	form.Submitted = true
	form.windows = []formWindow{
		{name: "Night", days: "Mon–Fri", from: "late", to: "early", zone: "Mars/Base", activation: "Hold"},
		{name: "weekend", days: "Sometimes", from: "08:00", to: "20:00", zone: "Moon", activation: "Hold"},
	}
	_, wrong := form.wrong(allocations.State{}, catalog.Catalog{}, false)
	var got []string
	for _, e := range wrong {
		if len(e.Path) > len(windowsPath) && e.Path[:len(windowsPath)] == windowsPath {
			got = append(got, e.Path)
		}
	}
	slices.Sort(got)
	want := []string{"spec.windows[0].from", "spec.windows[0].name", "spec.windows[0].timeZone", "spec.windows[0].to", "spec.windows[1].days", "spec.windows[1].timeZone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// The name of a window is validated while the window is typed, and what is missing is not.
func TestWindowNameAtOnce(t *testing.T) {
	form := emptyForm()
	form.windows = []formWindow{{name: "Fair week"}, {days: "Mon"}}
	_, wrong := form.wrong(allocations.State{}, catalog.Catalog{}, false)
	if len(wrong) != 1 || wrong[0].Path != "spec.windows[0].name" {
		t.Errorf("errors %v, want one of the name", wrong)
	}
}

// The calendar of a review has the times in the time zone of the window.
func TestCalendarInZone(t *testing.T) {
	at := time.Date(2026, 11, 27, 21, 0, 0, 0, time.UTC)
	lines := calendarLines([]allocations.CalendarLine{
		{At: at, Begins: &v1alpha1.Window{Name: "night", TimeZone: "Europe/Berlin"}}, {At: at, Ends: &v1alpha1.Window{Name: "day"}}, {At: at},
	})
	var got []string
	for _, l := range lines {
		got = append(got, l.Clock)
	}
	if diff := cmp.Diff([]string{"Fri 27 Nov 2026, 22:00 Europe/Berlin", "Fri 27 Nov 2026, 21:00 UTC", ""}, got); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
}
