package tasks

import (
	"strconv"
	"testing"

	"kuota.dev/kuota/governance/tasks/explain"
)

// An explanation counts when it is first given and when it changes, however often
// a page shows it.
func TestVerdictsCountOnce(t *testing.T) {
	var g given
	a, b := groupKey{"ns", "a"}, groupKey{"ns", "b"}
	for i, step := range []struct {
		of   groupKey
		says saying
		want bool
	}{
		{a, saying{explain.Quota, "WaitingForQuota"}, true},
		{a, saying{explain.Quota, "WaitingForQuota"}, false},
		{b, saying{explain.Quota, "WaitingForQuota"}, true},
		{a, saying{explain.Turn, "WaitingForQuota"}, true},
		{a, saying{explain.Turn, "Misconfigured"}, true},
		{a, saying{explain.Turn, "Misconfigured"}, false},
		{a, saying{explain.Quota, "WaitingForQuota"}, true},
		{b, saying{explain.Quota, "WaitingForQuota"}, false},
	} {
		if got := g.news(step.of, step.says); got != step.want {
			t.Errorf("step %d: %v of %s is news: %t", i, step.says, step.of.uid, got)
		}
	}
}

// However many tasks are looked at, few are remembered, and those that are
// looked at all the while stay among them.
func TestVerdictsAreBounded(t *testing.T) {
	var g given
	open := groupKey{"ns", "open"}
	says := saying{explain.Quota, "WaitingForQuota"}
	g.news(open, says)
	for i := range 5 * givenKept {
		g.news(groupKey{"ns", strconv.Itoa(i)}, says)
		if i%1000 == 0 && g.news(open, says) {
			t.Errorf("after %d others it counts again", i)
		}
	}
	if n := len(g.now) + len(g.older); n > 2*givenKept {
		t.Errorf("%d are remembered", n)
	}
}
