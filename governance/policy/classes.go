package policy

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// classChanges returns the classes that are created or removed or whose weight
// changes: those of the new policy in its order, then the removed ones.
func classChanges(before, after []v1alpha1.PriorityClass, tasks map[string]int) []ClassChange {
	find := func(in []v1alpha1.PriorityClass, name string) *int32 {
		for _, class := range in {
			if class.Name == name {
				weight := int32(0)
				if class.Weight != nil {
					weight = *class.Weight
				}
				return &weight
			}
		}
		return nil
	}
	var changes []ClassChange
	for _, class := range after {
		change := ClassChange{Name: class.Name, Before: find(before, class.Name), After: find(after, class.Name), Tasks: tasks[class.Name]}
		if change.Before == nil || *change.Before != *change.After {
			changes = append(changes, change)
		}
	}
	for _, class := range before {
		if find(after, class.Name) == nil {
			changes = append(changes, ClassChange{Name: class.Name, Before: find(before, class.Name), Tasks: tasks[class.Name]})
		}
	}
	return changes
}
