package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
)

// policyInputs says, for each path of the policy, which input of the form
// holds it and how it is called. They stand in the order of the page.
var policyInputs = []struct{ path, id, label string }{
	{"spec.taskPrioritization", "prioritization", "Task prioritization"},
	{"spec.priorityClasses", "classes", "Priority classes"},
	{"spec.idleCompute.strategy", "idle", "Idle compute"},
	{"spec.idleCompute.shareUnallocated", "share-unallocated", "Unallocated compute"},
	{"spec.gangScheduling.enabled", "gang", "Gang scheduling"},
	{"spec.gangScheduling.timeout", "gang-timeout", "Start within"},
	{"spec.gangScheduling.recoveryTimeout", "gang-recovery", "Recover within"},
	{"spec.gangScheduling.blockAdmission", "gang-block", "One at a time"},
	{"spec.gangScheduling.requeuing.timestamp", "requeue-order", "Position after requeuing"},
	{"spec.gangScheduling.requeuing.backoffLimitCount", "requeue-limit", "Attempts"},
	{"spec.gangScheduling.requeuing.backoffBaseSeconds", "requeue-base", "First pause"},
	{"spec.gangScheduling.requeuing.backoffMaxSeconds", "requeue-most", "Longest pause"},
	{"spec.preemptionLoops", "preemption-loops", "Preemption loops"},
	{"spec.enforcement", "enforcement", "Enforcement"},
	{"spec.pools", "pools", "Pools"},
}

var (
	classPath = regexp.MustCompile(`^spec\.priorityClasses\[([0-9]+)\]\.?([a-zA-Z]*)`)
	poolPath  = regexp.MustCompile(`^spec\.pools\[([0-9]+)\]\.?([a-zA-Z]*)`)
)

// policyInput finds the input that holds a path, and where on the page it
// stands; id is empty when none does.
func policyInput(path string) (id, label string, place int) {
	row := func(match []string, kind, word string, parts map[string]string) (string, string) {
		n, _ := strconv.Atoi(match[1])
		id, label := kind+"-"+match[1], word+" "+strconv.Itoa(n+1)
		if part, ok := parts[match[2]]; ok {
			return id + "-" + part, label + ", " + part
		}
		return id, label
	}
	if match := classPath.FindStringSubmatch(path); match != nil {
		id, label = row(match, "class", "Class", map[string]string{"name": "name", "weight": "weight", "description": "description"})
		path = "spec.priorityClasses"
	} else if match := poolPath.FindStringSubmatch(path); match != nil {
		id, label = row(match, "pool", "Pool", map[string]string{"name": "name", "match": "value"})
		path = "spec.pools"
	}
	for i, input := range policyInputs {
		if input.path == path {
			return cmp.Or(id, input.id), cmp.Or(label, input.label), i
		}
	}
	return "", path, len(policyInputs)
}

// formPaths turns the row numbers of a spec, which has no empty rows, into
// those of the form.
func (f *policyForm) formPaths(wrong []governance.FieldError) []governance.FieldError {
	renumbered := slices.Clone(wrong)
	for i := range renumbered {
		path := &renumbered[i].Path
		*path = renumber(*path, classPath, rowsTyped(f.classes))
		*path = renumber(*path, poolPath, rowsTyped(f.pools))
	}
	return renumbered
}

func renumber(path string, pattern *regexp.Regexp, rows []int) string {
	place := pattern.FindStringSubmatchIndex(path)
	if place == nil {
		return path
	}
	n, err := strconv.Atoi(path[place[2]:place[3]])
	if err != nil || n >= len(rows) {
		return path
	}
	return path[:place[2]] + strconv.Itoa(rows[n]) + path[place[3]:]
}

// policyErrors gives each input its first error.
func policyErrors(wrong []governance.FieldError) map[string]string {
	errs := map[string]string{}
	for _, w := range wrong {
		if id, _, _ := policyInput(w.Path); errs[id] == "" {
			errs[id] = policySentence(w.Message)
		}
	}
	return errs
}

// policyMessages is the summary of all that is wrong, each thing once, in the
// order of the page.
func policyMessages(wrong []governance.FieldError) []views.Message {
	ordered := slices.Clone(wrong)
	slices.SortStableFunc(ordered, func(a, b governance.FieldError) int {
		_, _, first := policyInput(a.Path)
		_, _, second := policyInput(b.Path)
		return cmp.Compare(first, second)
	})
	var all []views.Message
	for _, w := range ordered {
		id, label, _ := policyInput(w.Path)
		message := views.Message{Field: id, Label: label, Text: policySentence(w.Message)}
		if !slices.Contains(all, message) {
			all = append(all, message)
		}
	}
	return all
}

// policyWords writes the sentences of a condition as the page would: places
// are named as the form names them.
func policyWords(message string) string {
	if message == "" {
		return ""
	}
	return policySentence(forms.SpecPaths.ReplaceAllStringFunc(message, func(path string) string {
		_, label, _ := policyInput(strings.TrimSuffix(path, ": "))
		return fmt.Sprintf("%s: ", label)
	}))
}

// policySentence makes a whole sentence of what is wrong. One that begins with
// a name keeps it as it is written.
func policySentence(message string) string {
	first, _, _ := strings.Cut(message, " ")
	if !strings.ContainsAny(first, ".-0123456789") {
		return format.Sentence(message)
	}
	return strings.TrimSuffix(message, ".") + "."
}
