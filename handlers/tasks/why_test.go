package tasks_test

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	taskpages "kuota.dev/kuota/handlers/tasks"
)

// A reason that Kuota does not know is shown, and so is that it does not know it.
func TestKueuesOwnReason(t *testing.T) {
	for agreement, want := range map[explain.Agreement]string{
		explain.Agrees: "", explain.Disagrees: "can be older than this verdict", explain.UnknownReason: "does not know that reason, so this verdict may be wrong",
	} {
		task := &tasks.Task{State: tasks.Pending, Reason: "SomethingNew"}
		d := queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task, Message: "new."}, Verdict: &explain.Verdict{Constraint: explain.PendingEvaluation}, Agreement: agreement}
		got := taskpages.WhyOf(d).Differs
		if (want == "") != (got == "") || !strings.Contains(got, want) || want != "" && !strings.Contains(got, "SomethingNew: “new”") {
			t.Errorf("%s: %q, want %q", agreement, got, want)
		}
	}
}

// A PreemptionConfig may preempt tasks that no explanation names.
func TestPreemptionRulesAreShown(t *testing.T) {
	task := &tasks.Task{State: tasks.Pending}
	for _, rules := range []bool{false, true} {
		verdict := explain.Verdict{Constraint: explain.Quota, RulesMayPreempt: rules, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}, Needed: 2}}
		text := taskpages.WhyOf(queries.Detail{Item: queries.Item{Task: task}, About: queries.Item{Task: task}, Verdict: &verdict}).Text
		if strings.Contains(text, "A PreemptionConfig of its queue") != rules {
			t.Errorf("rules %t: %q", rules, text)
		}
	}
}
