package allocations_test

import (
	"strconv"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/handlers/urls"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRaise opens the form with figures typed in, for a row that exists and for one
// that does not. Nothing is saved.
func TestRaise(t *testing.T) {
	a := handlerstest.FullAllocation()
	a.Spec.Sharing.Strategy, a.Spec.Sharing.BorrowLimitPercent = v1alpha1.Lend, nil
	d := handlerstest.WithAllocations(a)
	address := handlerstest.Serve(t, d)
	first := a.Spec.Quota[0].InstanceType
	rows, limits := len(a.Spec.Quota), len(a.Spec.Sharing.BorrowLimits)
	for _, tc := range []struct {
		kind   explain.ChangeKind
		pool   string
		prefix string // of the inputs of the row
	}{
		{explain.RaiseNominalQuota, first, "row-0"},
		{explain.RaiseNominalQuota, "ml.other.xlarge", "row-" + string(rune('0'+rows))},
		{explain.RaiseBorrowingLimit, "ml.other.xlarge", "limit-" + string(rune('0'+limits))},
	} {
		_, page := handlerstest.Get(t, address+urls.Raise(a.Name, "", string(tc.kind), tc.pool, map[string]resources.Amount{"nvidia.com/gpu": 6, "cpu": 56_000, "memory": 224 << 30, "example.com/license": 3}))
		values := handlerstest.ValuesIn(page, "#allocation-form")
		for input, want := range map[string]string{"type": tc.pool, "accelerators": "6", "vcpu": "56", "memory": "224", "instances": "", "other-example.com/license": "3"} {
			if got := values.Get(tc.prefix + "-" + input); got != want {
				t.Errorf("%s of %s: %s is %q, want %q", tc.kind, tc.pool, input, got, want)
			}
		}
		if got, want := page.Find("[name=strategy]:checked, [name=strategy] option[selected]").AttrOr("value", ""), string(v1alpha1.LendAndBorrow); tc.kind == explain.RaiseBorrowingLimit && got != want {
			t.Errorf("%s: the strategy is %q, want %q", tc.kind, got, want)
		}
		if page.Find("#allocation-form[data-edited]").Length() == 0 {
			t.Errorf("%s of %s: the form does not count as edited", tc.kind, tc.pool)
		}
	}
	if len(d.Updated) > 0 {
		t.Errorf("updated %v", d.Updated)
	}
}

// TestRaiseOfAShare types accelerators into the quota of a share, in place of those of the same
// pool, and leaves the team's rows and other shares as they are.
func TestRaiseOfAShare(t *testing.T) {
	a := handlerstest.FullAllocation()
	a.Spec.Shares[1].Quota = []v1alpha1.WindowQuota{{InstanceType: "ml.g6.12xlarge", Accelerators: new(int64(2))}, {InstanceType: "ml.g5.2xlarge", Accelerators: new(int64(1))}}
	address := handlerstest.Serve(t, handlerstest.WithAllocations(a))
	_, saved := handlerstest.Get(t, address+handlerstest.EditURL)
	for share, want := range map[string]string{"nightly": "ml.g5.2xlarge 1\r\nml.g6.12xlarge 6", "research": "ml.g6.12xlarge 6", "gone": ""} {
		values := handlerstest.ValuesIn(saved, "#allocation-form")
		for i, s := range a.Spec.Shares {
			if s.Name == share {
				values.Set("share-"+strconv.Itoa(i)+"-quota", want)
			}
		}
		_, page := handlerstest.Get(t, address+urls.Raise(a.Name, share, string(explain.RaiseNominalQuota), "ml.g6.12xlarge", map[string]resources.Amount{"nvidia.com/gpu": 6, "cpu": 56_000}))
		if diff := cmp.Diff(values, handlerstest.ValuesIn(page, "#allocation-form"), cmpopts.IgnoreMapEntries(func(name string, _ []string) bool { return name == "request-id" })); diff != "" {
			t.Errorf("share %s (-want +is):\n%s", share, diff)
		}
	}
}
