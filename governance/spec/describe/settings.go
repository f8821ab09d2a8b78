package describe

import "kuota.dev/kuota/governance/spec/change"

// setting is one value of a spec, with its label on the pages.
type setting[Spec any] struct {
	label string
	value func(*Spec) string
}

// differences returns the settings that differ between two specs. before is nil
// for a new object.
func differences[Spec any](before, after *Spec, settings []setting[Spec]) []change.Field {
	var changes []change.Field
	for _, s := range settings {
		c := change.Field{Path: s.label, After: s.value(after)}
		if before != nil {
			c.Before = s.value(before)
		}
		if c.Before != c.After {
			changes = append(changes, c)
		}
	}
	return changes
}

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
