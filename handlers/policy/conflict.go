package policy

import (
	"cmp"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
)

// conflictOf compares the form with the saved policy. Keeping the form changes the
// version that is saved now.
func conflictOf(mine policyForm, saved *v1alpha1.ClusterPolicy) views.PolicyConflict {
	view := views.PolicyConflict{Deleted: saved == nil}
	var theirs []savedValue
	mine.Version, mine.Generation = "", ""
	if saved != nil {
		mine.Version, mine.Generation = saved.ResourceVersion, generationOf(saved)
		form := policyFormOf(saved)
		theirs = form.settings()
	}
	mine.Submitted, mine.Resumed = true, false
	view.Fields = forms.HiddenFields(mine.values())
	view.Lines = sideBySide(theirs, mine.settings())
	for _, line := range view.Lines {
		if line.Differs {
			view.Differ++
		}
	}
	return view
}

// savedValue is one value of the policy as text.
type savedValue struct{ label, text string }

// settings returns the form as text, in the order of the page.
func (f *policyForm) settings() []savedValue {
	onOff := map[bool]string{true: "yes", false: "no"}
	all := []savedValue{{"Task prioritization", describe.Prioritization(v1alpha1.TaskPrioritization(f.prioritization))}}
	for _, class := range f.classes {
		if text := "weight " + class.weight; !class.empty() {
			if class.limit != "" {
				text += ", time limit " + class.limit + " by default"
			}
			if class.longest != "" {
				text += ", time limit at most " + class.longest
			}
			if class.description != "" {
				text += ": " + class.description
			}
			all = append(all, savedValue{"Priority class " + class.name, text})
		}
	}
	all = append(all,
		savedValue{"Idle compute", describe.IdleCompute(v1alpha1.IdleComputeStrategy(f.idle))},
		savedValue{"Lend unallocated compute", onOff[f.share]},
		savedValue{"Gang scheduling", onOff[f.gang]},
		savedValue{"One task at a time", onOff[f.block]},
		savedValue{"Start within", f.timeout},
		savedValue{"Recover within", f.recovery},
		savedValue{"Position after requeuing", describe.RequeuingOrder(f.order)},
		savedValue{"Attempts", cmp.Or(f.retries, "no limit")},
		savedValue{"First pause in seconds", f.backoffBase},
		savedValue{"Longest pause in seconds", f.backoffMost},
		savedValue{"Preemption loops", describe.PreemptionLoops(v1alpha1.PreemptionLoops(f.loops))},
		savedValue{"Enforcement", describe.Enforcement(v1alpha1.Enforcement(f.enforcement))},
		savedValue{"Currency", f.currency},
		savedValue{"Prices", f.prices},
		savedValue{"Alert rules", f.alertRules},
		savedValue{"Alert receivers", f.alertReceivers},
	)
	for _, pool := range f.pools {
		if !pool.empty() {
			text := pool.value
			if match, problem := parseMatch(pool.match, pool.value); problem == "" {
				text = describe.PoolMatch(match)
			}
			all = append(all, savedValue{"Pool " + pool.name, text})
		}
	}
	return all
}

// sideBySide joins two lists by label, in the order of mine. Values that only theirs
// has keep their predecessor.
func sideBySide(theirs, mine []savedValue) []views.PolicyConflictLine {
	find := func(values []savedValue, label string) (string, bool) {
		for _, v := range values {
			if v.label == label {
				return v.text, true
			}
		}
		return "", false
	}
	var lines []views.PolicyConflictLine
	next := 0
	only := func(until int) { // of theirs, up to that index
		for ; next < until; next++ {
			if _, both := find(mine, theirs[next].label); !both {
				lines = append(lines, views.PolicyConflictLine{Label: theirs[next].label, Theirs: theirs[next].text, Differs: true})
			}
		}
	}
	for _, value := range mine {
		for i := next; i < len(theirs); i++ {
			if theirs[i].label == value.label {
				only(i)
				next = i + 1
				break
			}
		}
		text, found := find(theirs, value.label)
		lines = append(lines, views.PolicyConflictLine{Label: value.label, Theirs: text, Mine: value.text, Differs: !found || text != value.text})
	}
	only(len(theirs))
	return lines
}
