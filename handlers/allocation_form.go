package handlers

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPostedRows bounds what one request can make the server look at. It is
// more than an allocation takes, so that too many rows can be told as such.
const maxPostedRows = 50

// allocationForm is the form as typed.
type allocationForm struct {
	request   string // id of the form
	submitted bool   // whether it was tried to save: then all that is wrong is told
	resumed   bool   // whether it comes back after signing in again

	team, displayName, description, weight string

	rows                          []formRow
	strategy, percent, preemption string
}

// formRow is one row as typed.
type formRow struct {
	instanceType, instances, accelerators, vcpu, memory string
}

// fields are the inputs of a row by the last part of their names.
func (r *formRow) fields() map[string]*string {
	return map[string]*string{
		"type": &r.instanceType, "instances": &r.instances, "accelerators": &r.accelerators,
		"vcpu": &r.vcpu, "memory": &r.memory,
	}
}

// empty tells whether nothing was typed into the row.
func (r formRow) empty() bool { return r == formRow{} }

// given tells whether any figure was typed.
func (r formRow) given() bool {
	r.instanceType = ""
	return !r.empty()
}

func readAllocationForm(values url.Values) allocationForm {
	form := allocationForm{
		request: values.Get("request-id"), submitted: values.Get("submitted") == "true",
		team:        strings.TrimSpace(values.Get("team")),
		displayName: values.Get("display-name"), description: values.Get("description"), weight: values.Get("weight"),
		strategy: values.Get("strategy"), percent: values.Get("borrow-percent"), preemption: values.Get("preemption"),
	}
	posted := map[int]formRow{}
	for name := range values {
		rest, ok := strings.CutPrefix(name, "row-")
		number, part, ok2 := strings.Cut(rest, "-")
		index, err := strconv.Atoi(number)
		if !ok || !ok2 || err != nil || index < 0 {
			continue
		}
		row := posted[index]
		if field := row.fields()[part]; field != nil {
			*field = strings.TrimSpace(values.Get(name))
			posted[index] = row
		}
	}
	indices := make([]int, 0, len(posted))
	for index := range posted {
		indices = append(indices, index)
	}
	slices.Sort(indices)
	for _, index := range indices[:min(len(indices), maxPostedRows)] {
		form.rows = append(form.rows, posted[index])
	}
	return form
}

// do carries out one of the form's smaller actions.
func (f *allocationForm) do(action string) {
	name, argument, _ := strings.Cut(action, ":")
	switch name {
	case "add-row":
		if len(f.rows) < quota.MaxRows {
			f.rows = append(f.rows, formRow{})
		}
	case "remove-row":
		if i, err := strconv.Atoi(argument); err == nil && i >= 0 && i < len(f.rows) {
			f.rows = slices.Delete(f.rows, i, i+1)
		}
	case "reset":
		number, part, _ := strings.Cut(strings.TrimPrefix(argument, "row-"), "-")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(f.rows) {
			if field := f.rows[i].fields()[part]; field != nil {
				*field = ""
			}
		}
	}
}

// parse makes the allocation that was typed. What cannot be read as what it
// should be is told, with its path in the resource, and left out.
func (f *allocationForm) parse() (*v1alpha1.ComputeAllocation, []governance.FieldError) {
	var wrong []governance.FieldError
	tell := func(path string, problem string) {
		if problem != "" {
			wrong = append(wrong, governance.FieldError{Path: path, Message: problem})
		}
	}
	allocation := &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: f.team},
		Spec: v1alpha1.ComputeAllocationSpec{
			DisplayName: f.displayName, Description: f.description,
			Sharing:    v1alpha1.Sharing{Strategy: v1alpha1.SharingStrategy(f.strategy)},
			Preemption: v1alpha1.Preemption{WithinTeam: v1alpha1.WithinTeam(f.preemption)},
		},
	}
	spec := &allocation.Spec
	tell("spec.displayName", checkText(f.displayName, 128))
	tell("spec.description", checkText(f.description, 1024))
	if f.weight != "" {
		weight, problem := parseWhole(f.weight, 100)
		tell("spec.fairShareWeight", problem)
		spec.FairShareWeight = int32(weight)
	}
	switch spec.Sharing.Strategy {
	case v1alpha1.LendAndBorrow:
		if f.percent != "" {
			percent, problem := parseWhole(f.percent, 10_000)
			tell("spec.sharing.borrowLimitPercent", problem)
			p := int32(percent)
			spec.Sharing.BorrowLimitPercent = &p
		}
	case v1alpha1.Lend, v1alpha1.DontLend:
	default:
		tell("spec.sharing.strategy", "choose one of lend and borrow, lend, and do not lend")
		spec.Sharing.Strategy = v1alpha1.LendAndBorrow
	}
	if w := spec.Preemption.WithinTeam; w != v1alpha1.PreemptLowerPriority && w != v1alpha1.PreemptNever {
		tell("spec.preemption.withinTeam", "choose whether the team's tasks pre-empt its own lower-priority ones")
		spec.Preemption.WithinTeam = ""
	}
	for i, row := range f.rows {
		if row.empty() {
			continue
		}
		parsed, problems := row.parse()
		for _, p := range problems {
			tell(fmt.Sprintf("spec.quota[%d].%s", i, p.Path), p.Message)
		}
		spec.Quota = append(spec.Quota, parsed)
	}
	return allocation, wrong
}

// checkText says what is wrong with a line of text; empty when it is right.
func checkText(text string, most int) string {
	switch n := utf8.RuneCountInString(text); {
	case n > most:
		return fmt.Sprintf("has %s characters; at most %s fit", thousands(int64(n)), thousands(int64(most)))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "has line breaks or other characters that are no text"
	}
	return ""
}

// missing tells what a save needs and the form does not have.
func (f *allocationForm) missing() []governance.FieldError {
	var wrong []governance.FieldError
	if problem := quota.CheckTeam(f.team); problem != "" {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: problem})
	}
	if !slices.ContainsFunc(f.rows, func(r formRow) bool { return !r.empty() }) {
		wrong = append(wrong, governance.FieldError{Path: "spec.quota", Message: "give the team at least one instance type"})
	}
	return wrong
}

// specRows lists, for each row of the spec, the row of the form it came from.
func (f *allocationForm) specRows() []int {
	var rows []int
	for i, row := range f.rows {
		if !row.empty() {
			rows = append(rows, i)
		}
	}
	return rows
}

// parse reads the figures of a row. Paths are relative to the row.
func (r formRow) parse() (v1alpha1.QuotaRow, []governance.FieldError) {
	row := v1alpha1.QuotaRow{InstanceType: r.instanceType}
	var wrong []governance.FieldError
	whole := func(path, text string) *int64 {
		if text == "" {
			return nil
		}
		n, problem := parseWhole(text, quota.MaxAmount)
		if problem != "" {
			wrong = append(wrong, governance.FieldError{Path: path, Message: problem})
			return nil
		}
		return &n
	}
	row.Instances = whole("instances", r.instances)
	row.Accelerators = whole("accelerators", r.accelerators)
	var problem string
	if row.VCPU, problem = parseVCPU(r.vcpu); problem != "" {
		wrong = append(wrong, governance.FieldError{Path: "vCPU", Message: problem})
	}
	if row.Memory, problem = parseGiB(r.memory); problem != "" {
		wrong = append(wrong, governance.FieldError{Path: "memory", Message: problem})
	}
	return row, wrong
}
