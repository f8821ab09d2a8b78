package describe_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/governance/spec/describe"

	"github.com/google/go-cmp/cmp"
)

// A removed class is no change of its time limits.
func TestTimeLimitChanges(t *testing.T) {
	limited := func(name string, byDefault, atMost int32) v1alpha1.PriorityClass {
		c := v1alpha1.PriorityClass{Name: name}
		if byDefault > 0 {
			c.DefaultTimeLimitSeconds = &byDefault
		}
		if atMost > 0 {
			c.MaximumTimeLimitSeconds = &atMost
		}
		return c
	}
	before := []v1alpha1.PriorityClass{limited("same", 60, 60), limited("raised", 3600, 5400), limited("lifted", 0, 60), limited("removed", 60, 60)}
	after := []v1alpha1.PriorityClass{limited("same", 60, 60), limited("raised", 3600, 7200), limited("lifted", 0, 0), limited("new", 90, 0), limited("unlimited", 0, 0)}
	want := []change.Field{
		{Path: "Time limit of class raised", Before: "1h by default, at most 1h30m", After: "1h by default, at most 2h"},
		{Path: "Time limit of class lifted", Before: "at most 1m", After: "none"},
		{Path: "Time limit of class new", Before: "none", After: "1m30s by default"},
	}
	if diff := cmp.Diff(want, describe.TimeLimitChanges(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
