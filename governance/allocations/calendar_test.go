package allocations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The calendar has what windows of the team change, and those of others where more than the
// capacity is allocated.
func TestCalendar(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) // a Monday
	types := catalog.Catalog{}.With(v1alpha1.Pool{Name: "h100", Match: v1alpha1.PoolMatch{InstanceTypes: []string{"ml.p5.48xlarge"}}})
	amount := func(n int64) v1alpha1.Quantities { return v1alpha1.Quantities{Accelerators: &n} }
	team := func(name string, own int64, windows ...v1alpha1.Window) *v1alpha1.ComputeAllocation {
		return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{
			Quota: []v1alpha1.QuotaRow{{Pool: "h100", Quantities: amount(own)}}, Windows: windows,
		}}
	}
	window := func(name, from, to string, n int64) v1alpha1.Window {
		return v1alpha1.Window{Name: name, From: from, To: to, Quota: []v1alpha1.WindowQuota{{Pool: "h100", Accelerators: &n}}}
	}
	open := window("open", "2026-11-30T08:00", "2026-11-30T14:00", 4)
	saved := team("vision", 8, open, window("fair", "2026-12-02T08:00", "2026-12-03T08:00", 32), window("later", "2027-02-01T08:00", "2027-02-02T08:00", 99))
	nightly := window("nights", "22:00", "06:00", 16)
	nightly.Days = []v1alpha1.Weekday{"Wednesday"}
	others := []v1alpha1.ComputeAllocation{*team("vision", 1), *team("nlp", 8, nightly), *team("none", 0)}
	lines, complete := calendar(others, saved, types, now)
	var got []string
	for _, l := range lines {
		text := l.At.Format("2 Jan 15:04")
		if l.Ends != nil {
			text += " -" + l.Ends.Name
		}
		if l.Begins != nil {
			text += " +" + l.Begins.Name
		}
		for _, over := range l.Over {
			if over.Resource == catalog.GPU {
				text += fmt.Sprintf(" %d of %d", over.Allocated, over.Physical)
			}
		}
		got = append(got, text)
	}
	want := []string{
		"30 Nov 14:00 -open 16 of 0", "2 Dec 08:00 +fair 40 of 0", "2 Dec 22:00 48 of 0", "3 Dec 06:00 40 of 0", "3 Dec 08:00 -fair 16 of 0", "9 Dec 22:00 24 of 0", "10 Dec 06:00 16 of 0",
	}
	if diff := cmp.Diff(want, got); diff != "" || !complete {
		t.Errorf("calendar, complete %t (-want +got):\n%s", complete, diff)
	}
	if text := quota.DescribeExcess(lines[1].Over); !strings.Contains(text, "40 of 0 GPUs") {
		t.Errorf("the excess is %q", text)
	}
	if lines, _ := calendar(others, team("vision", 8), types, now); lines != nil {
		t.Errorf("a team without windows has a calendar: %v", lines)
	}
}
