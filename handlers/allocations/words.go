package allocations

import (
	"fmt"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/handlers/format"
)

// words are the values of an allocation as text, by their labels.
type words struct {
	names  []string // in the order of the form
	values map[string]string
}

func (w *words) add(name, value string) {
	w.names = append(w.names, name)
	w.values[name] = value
}

// wordsOf describes all fields of a spec.
func wordsOf(spec *v1alpha1.ComputeAllocationSpec) words {
	w := words{values: map[string]string{}}
	w.add("Display name", spec.DisplayName)
	w.add("Description", spec.Description)
	if spec.Observed() { // no other field has an effect
		w.add("Management", "Observed, not changed")
		w.add("Existing ClusterQueue", spec.ClusterQueueName)
		return w
	}
	w.add("Activation", activation(spec.Activation))
	w.add("Members", strings.Join(format.Members(spec.Members), ", "))
	w.add("Fair-share weight", strconv.Itoa(int(spec.FairShareWeight)))
	var order []string
	for _, row := range spec.Quota {
		name := row.InstanceType + row.Pool
		order = append(order, name)
		w.add("Quota, "+name, describe.Amounts(row.Quantities))
	}
	if len(order) > 1 {
		w.add("Order of preference", strings.Join(order, ", "))
	}
	w.add("Lending and borrowing", sharing(spec.Sharing))
	for _, row := range spec.Sharing.BorrowLimits {
		w.add("Borrow limit, "+row.InstanceType+row.Pool, describe.Amounts(row.Quantities))
	}
	w.add("Preemption within the team", preemption(spec.Preemption))
	w.add("Namespace ceiling", onOff(spec.NamespaceCeiling))
	w.add("Default queue", onOff(spec.DefaultQueue))
	if len(spec.Shares) > 0 {
		w.add("Shares", describe.Shares(spec.Shares))
	}
	for i := range spec.Windows {
		w.add("Window "+spec.Windows[i].Name, describe.Window(&spec.Windows[i]))
	}
	if spec.Budget != nil {
		w.add("Budget", describe.Budget(spec.Budget))
	}
	return w
}

func activation(a v1alpha1.Activation) string {
	if a == "" {
		return string(v1alpha1.Active)
	}
	return string(a)
}

func sharing(s v1alpha1.Sharing) string {
	switch {
	case s.Strategy == v1alpha1.Lend:
		return "Lends"
	case s.Strategy == v1alpha1.DontLend:
		return "Does not lend"
	}
	text := fmt.Sprintf("Lends and borrows up to %d %%", v1alpha1.DefaultBorrowLimitPercent)
	switch {
	case s.Unlimited:
		text = "Lends and borrows without limit"
	case s.BorrowLimitPercent != nil:
		text = fmt.Sprintf("Lends and borrows up to %d %%", *s.BorrowLimitPercent)
	}
	if n := len(s.BorrowLimits); n > 0 {
		text += ", other limits in " + format.Count(n, "pool")
	}
	return text
}

func preemption(p v1alpha1.Preemption) string {
	if p.WithinTeam == v1alpha1.PreemptNever {
		return "Never"
	}
	return "Lower priority"
}

func onOff(on bool) string {
	if on {
		return "On"
	}
	return "Off"
}

// preemptionNote returns a note if preemption within a team has no effect.
func preemptionNote(state allocations.State) string {
	if p := state.Policy; p == nil || p.Spec.TaskPrioritization == v1alpha1.TaskRanking {
		return ""
	}
	return "The cluster policy says first come, first served: tasks have no ranks, so nothing is preempted within a team, whatever is chosen here. The choice is kept for when the policy ranks tasks."
}
