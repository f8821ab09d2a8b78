package allocations_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/handlerstest"

	"github.com/google/go-cmp/cmp"
)

func TestWindowsAreSavedAsTyped(t *testing.T) {
	d := &handlerstest.Backend{}
	typed := handlerstest.AllocationForm(
		"window-0-name", "nights", "window-0-days", "sat-mon; Wednesday", "window-0-from", "22:00", "window-0-to", "06:00", "window-0-quota", " ml.g6.12xlarge 8\r\n\r\nml.g5.2xlarge 2 instances",
		"window-1-name", "", "window-2-name", "fair", "window-2-from", "2030-12-05 08:00", "window-2-to", "2030-12-05T09:00", "window-2-zone", "Europe/Berlin", "window-2-activation", "Hold", "window-2-notice", "24h",
		"budget-amount", "1000", "budget-period", "Week", "budget-hold", "100",
	)
	if response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, typed); response.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", response.Status, page.Find("#form-errors").Text())
	}
	got := d.Created[0].Spec
	if got.Windows[1].Notice == nil || got.Windows[1].Notice.Hours() != 24 {
		t.Errorf("the notice is %v, want 24h", got.Windows[1].Notice)
	}
	got.Windows[1].Notice = nil
	want := []v1alpha1.Window{
		{Name: "nights", Days: []v1alpha1.Weekday{"Monday", "Wednesday", "Saturday", "Sunday"}, From: "22:00", To: "06:00", Quota: []v1alpha1.WindowQuota{
			{InstanceType: "ml.g6.12xlarge", Accelerators: new(int64(8))}, {InstanceType: "ml.g5.2xlarge", Instances: new(int64(2))},
		}},
		{Name: "fair", From: "2030-12-05T08:00", To: "2030-12-05T09:00", TimeZone: "Europe/Berlin", Activation: v1alpha1.Hold},
	}
	if diff := cmp.Diff(want, got.Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	budget := &v1alpha1.Budget{AcceleratorHours: new(int64(1000)), Period: v1alpha1.BudgetWeek, Steps: []v1alpha1.BudgetStep{{Percent: 100, Action: v1alpha1.BudgetHold}}}
	if diff := cmp.Diff(budget, got.Budget); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
}

// Each bad value gets a sentence at its input, and all values are kept.
func TestBadWindows(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string
		at    string
		want  string
	}{
		"no name":      {[]string{"window-0-from", "2030-12-01 08:00", "window-0-to", "2030-12-02 08:00", "window-0-activation", "Hold"}, "window-0-name", "give the window a name"},
		"no time":      {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "8", "window-0-to", "09:00", "window-0-activation", "Hold"}, "window-0-from", "such as 22:00"},
		"no day":       {[]string{"window-0-name", "a", "window-0-days", "Mo-Freitag", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-activation", "Hold"}, "window-0-days", "use days such as"},
		"no zone":      {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-zone", "Berlin", "window-0-activation", "Hold"}, "window-0-zone", "is no time zone"},
		"nothing":      {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00"}, "window-0-quota", "set quota"},
		"quota":        {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-quota", "ml.g6.12xlarge many"}, "window-0-quota", "line 1"},
		"unknown type": {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-quota", "ml.unknown 4"}, "window-0-quota", "ml.unknown"},
		"overlap":      {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "10:00", "window-0-activation", "Hold", "window-3-name", "b", "window-3-days", "Mon", "window-3-from", "09:00", "window-3-to", "11:00", "window-3-activation", "Hold"}, "window-1-from", "overlaps the window a"},
		"no steps":     {[]string{"budget-amount", "10"}, "budget-notify", "set at least one"},
		"no amount":    {[]string{"budget-hold", "100"}, "budget-amount", "give the amount"},
		"bad money":    {[]string{"budget-amount", "ten", "budget-unit", "money", "budget-hold", "100"}, "budget-amount", "such as 12500"},
		"order":        {[]string{"budget-amount", "10", "budget-hold", "90", "budget-notify", "95"}, "budget-notify", "comes after"},
		"sharing":      {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-percent", "20"}, "window-0-sharing", "choose lend and borrow"},
		"bad percent":  {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-sharing", "LendAndBorrow", "window-0-percent", "lots"}, "window-0-sharing", "percentage or unlimited"},
		"notice":       {[]string{"window-0-name", "a", "window-0-days", "Mon", "window-0-from", "08:00", "window-0-to", "09:00", "window-0-activation", "Hold", "window-0-notice", "soon"}, "window-0-notice", "such as 24h"},
	} {
		d := &handlerstest.Backend{}
		response, page := handlerstest.Post(t, handlerstest.Serve(t, d)+handlerstest.NewURL, handlerstest.AllocationForm(c.pairs...))
		if response.StatusCode != http.StatusUnprocessableEntity || len(d.Created) > 0 {
			t.Errorf("%s: got %s, want 422", name, response.Status)
			continue
		}
		if text := page.Find("#" + c.at + "-error").Text(); !strings.Contains(strings.ToLower(text), strings.ToLower(c.want)) {
			t.Errorf("%s: got %q at %s, want %q; all: %s", name, text, c.at, c.want, page.Find("#form-errors").Text())
		}
	}
}
