package describe_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A queue that admits no tasks is described with the cause and the end, whether an admin, a
// window, the budget or a department holds it.
func TestHeld(t *testing.T) {
	until := metav1.NewTime(time.Date(2026, 11, 27, 21, 0, 0, 0, time.UTC))
	window := v1alpha1.Window{Name: "night", TimeZone: "Europe/Berlin", Activation: v1alpha1.Hold}
	for name, c := range map[string]struct {
		spec      v1alpha1.ComputeAllocationSpec
		active    *v1alpha1.ActiveStatus
		wantLabel string
		wantText  string
	}{
		"active":           {wantLabel: ""},
		"held by an admin": {spec: v1alpha1.ComputeAllocationSpec{Activation: v1alpha1.Hold}, wantLabel: "Held", wantText: "until an admin resumes it"},
		"drained":          {spec: v1alpha1.ComputeAllocationSpec{Activation: v1alpha1.Drain}, wantLabel: "Drained", wantText: "until an admin resumes it"},
		"held by a window": {v1alpha1.ComputeAllocationSpec{Windows: []v1alpha1.Window{window}}, &v1alpha1.ActiveStatus{Window: "night", To: &until}, "Held", "The window night holds the team's queue until Fri 27 Nov 22:00 CET."},
		"held by the budget": {
			v1alpha1.ComputeAllocationSpec{Budget: &v1alpha1.Budget{}}, &v1alpha1.ActiveStatus{BudgetAction: v1alpha1.BudgetDrain, BudgetUntil: &until}, "Drained", "The team has used its budget, so no task is admitted until Fri 27 Nov 21:00 UTC",
		},
	} {
		a := &v1alpha1.ComputeAllocation{Spec: c.spec}
		a.Status.Active = c.active
		if label, text := describe.Held(a); label != c.wantLabel || !strings.Contains(text, c.wantText) || label == "" && text != "" {
			t.Errorf("%s: got %q, %q, want %q, %q", name, label, text, c.wantLabel, c.wantText)
		}
		// The same of a department above another one, for a team that is not held.
		if c.wantLabel != "" {
			c.wantText = strings.NewReplacer("until an admin resumes it", "Department Robots is held", "the team's queue", "the queues of department Robots", "The team has", "Department Robots has").Replace(c.wantText)
		}
		robots := &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: "robots"}, Spec: v1alpha1.DepartmentSpec{DisplayName: "Robots", Activation: c.spec.Activation, Windows: c.spec.Windows, Budget: c.spec.Budget}}
		robots.Status.Active = c.active
		if label, text := describe.Held(&v1alpha1.ComputeAllocation{}, &v1alpha1.Department{}, robots); label != c.wantLabel || !strings.Contains(text, c.wantText) || label == "" && text != "" {
			t.Errorf("%s, department: got %q, %q, want %q, %q", name, label, text, c.wantLabel, c.wantText)
		}
	}
}
