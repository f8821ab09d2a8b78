package desired_test

import (
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
)

// Numbers have classes of their own beside those of the policy, and no other name is a number.
func TestNumbers(t *testing.T) {
	policy := v1alpha1.ClusterPolicySpec{TaskPrioritization: v1alpha1.TaskRanking, NumericPriorities: true, PriorityClasses: []v1alpha1.PriorityClass{{Name: "kuota-priority-42", Weight: new(int32(7))}}}
	values := map[string]int32{}
	for _, object := range desired.PriorityClasses(&policy) {
		values[*object.Name] = *object.Value
	}
	if len(values) != 101 || values["kuota-priority-42-priority"] != 7 {
		t.Errorf("got %d classes, and %v", len(values), values)
	}
	for number := range 100 {
		name := desired.NumberClass(number)
		if got, ok := desired.NumberOf(name); !ok || got != number || values[name] != int32(number) {
			t.Errorf("%s is the number %d, %v, with value %d", name, got, ok, values[name])
		}
	}
	for _, name := range []string{"", "42", "kuota-priority-", "kuota-priority-100", "kuota-priority-042", "kuota-priority--1", "kuota-priority-42-priority", "kuota-growth"} {
		if desired.IsNumber(name) {
			t.Errorf("%q is a number", name)
		}
	}
}
