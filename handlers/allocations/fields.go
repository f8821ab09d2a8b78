package allocations

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"

	"k8s.io/apimachinery/pkg/api/resource"
)

type allocationSpec = v1alpha1.ComputeAllocationSpec

// field is an input of the form, declared once. A row of quota, a member or another element
// of a list is read and written by its own code: then read and write are nil.
type field struct {
	forms.Input
	hint     string // of an option
	teamOnly bool   // whether departments do not have it
	read     func(*allocationSpec) string
	write    func(spec *allocationSpec, typed string) (problem string)
}

// option reports whether the field is a checkbox in the section of options, which need no
// place in a template.
func (f field) option() bool { return f.hint != "" }

// textField is a field with any text; what the CRD rejects is an error.
func textField[T ~string](path, id, label string, of func(*allocationSpec) *T) field {
	return choiceField(path, id, label, "", of)
}

// choiceField is a field with one of some values, initial for none.
func choiceField[T ~string](path, id, label string, initial T, of func(*allocationSpec) *T) field {
	return field{
		Input: forms.Input{Path: path, ID: id, Label: label},
		read:  func(spec *allocationSpec) string { return string(cmp.Or(*of(spec), initial)) },
		write: func(spec *allocationSpec, typed string) string {
			*of(spec) = T(typed)
			return ""
		},
	}
}

// wholeField is a field with a whole number up to most; empty is 0.
func wholeField(path, id, label string, most int64, of func(*allocationSpec) *int32) field {
	return field{
		Input: forms.Input{Path: path, ID: id, Label: label},
		read:  func(spec *allocationSpec) string { return strconv.Itoa(int(*of(spec))) },
		write: func(spec *allocationSpec, typed string) (problem string) {
			n := int64(0)
			if typed != "" {
				n, problem = forms.ParseWhole(typed, 0, most)
			}
			*of(spec) = int32(n)
			return problem
		},
	}
}

// optionField is a checkbox in the section of options, with a hint below its label.
func optionField(path, id, label, hint string, of func(*allocationSpec) *bool) field {
	return field{
		Input: forms.Input{Path: path, ID: id, Label: label}, hint: hint,
		read: func(spec *allocationSpec) string {
			if *of(spec) {
				return "true"
			}
			return ""
		},
		write: func(spec *allocationSpec, typed string) string {
			*of(spec) = typed == "true"
			return ""
		},
	}
}

// strictOrder is the checkbox of the queueing strategy.
var strictOrder = field{
	Input: forms.Input{Path: "spec.queueingStrategy", ID: "strict-order", Label: "Strict order"},
	hint:  "The first task of the queue that cannot start blocks those behind it. Without it, they start when they fit.",
	read: func(spec *allocationSpec) string {
		if spec.QueueingStrategy == v1alpha1.StrictFIFO {
			return "true"
		}
		return ""
	},
	write: func(spec *allocationSpec, typed string) string {
		spec.QueueingStrategy = ""
		if typed == "true" {
			spec.QueueingStrategy = v1alpha1.StrictFIFO
		}
		return ""
	},
}

// ceilings is the input of upper bounds of single resources, such as "nvidia.com/gpu 64, pods 200".
var ceilings = field{
	Input: forms.Input{Path: "spec.ceiling", ID: "ceilings", Label: "Ceiling apart from quota"},
	read:  func(spec *allocationSpec) string { return describe.Ceiling(spec.Ceiling) },
	write: func(spec *allocationSpec, typed string) string {
		spec.Ceiling = nil
		for part := range strings.FieldsFuncSeq(typed, func(c rune) bool { return c == ',' || c == '\n' }) {
			words := strings.FieldsFunc(part, func(c rune) bool { return c == '=' || unicode.IsSpace(c) })
			if len(words) == 0 {
				continue
			}
			if len(words) != 2 {
				return "write each resource with one amount, such as nvidia.com/gpu 64, pods 200"
			}
			amount, err := resource.ParseQuantity(words[1])
			if err != nil {
				return fmt.Sprintf("%s is no amount: write one such as 64 or 512Gi", words[1])
			}
			if slices.ContainsFunc(spec.Ceiling, func(bound v1alpha1.ResourceQuantity) bool { return bound.Name == words[0] }) {
				return words[0] + " is listed twice"
			}
			spec.Ceiling = append(spec.Ceiling, v1alpha1.ResourceQuantity{Name: words[0], Quantity: amount})
		}
		return ""
	},
}

// ofTeams returns a field that departments do not have.
func ofTeams(f field) field {
	f.teamOnly = true
	return f
}

// typedOf returns the values of the fields of a spec, by the ids of their inputs.
func typedOf(spec *allocationSpec) map[string]string {
	typed := map[string]string{}
	for _, f := range fields {
		if f.read != nil {
			typed[f.ID] = f.read(spec)
		}
	}
	return typed
}

// rowFields are the inputs of a row of quota, and of a borrow limit.
var rowFields = map[string]forms.RowField{
	"instanceType":      {ID: "type", Label: "instance type"},
	"pool":              {ID: "type", Label: "instance type"},
	"instances":         {ID: "instances", Label: "instances"},
	"accelerators":      {ID: "accelerators", Label: "accelerators"},
	"vCPU":              {ID: "vcpu", Label: "vCPU"},
	"memory":            {ID: "memory", Label: "memory"},
	"partition":         {ID: "count", Label: "parts of GPUs"},
	"partition.profile": {ID: "profile", Label: "profile"},
	"partition.count":   {ID: "count", Label: "how many parts"},
	"resources":         {ID: "others", Label: "more resources"},
}

const (
	quotaPath  = "spec.quota"
	limitsPath = "spec.sharing.borrowLimits"
)

// fields are the inputs of the form, in the order of the page.
var fields = []field{
	{Input: forms.Input{Path: "metadata.name", ID: "team", Label: "Team name"}},
	textField("spec.displayName", "display-name", "Display name", func(s *allocationSpec) *string { return &s.DisplayName }),
	textField("spec.description", "description", "Description", func(s *allocationSpec) *string { return &s.Description }),
	choiceField("spec.activation", "activation", "Activation", v1alpha1.Active, func(s *allocationSpec) *v1alpha1.Activation { return &s.Activation }),
	textField(departmentPath, "department", "Department", func(s *allocationSpec) *string { return &s.Department }),
	ofTeams(textField("spec.namespace", "namespace", "Namespace", func(s *allocationSpec) *string { return &s.Namespace })),
	wholeField("spec.fairShareWeight", "weight", "Fair-share weight", v1alpha1.MaxWeight, func(s *allocationSpec) *int32 { return &s.FairShareWeight }),
	{Input: forms.Input{Path: "spec.members", Rows: &forms.Rows{ID: "member", Label: "Member", Default: forms.RowField{ID: "name"}}}},
	{Input: forms.Input{Path: "spec.members", ID: "add-member", Label: "Members"}},
	{Input: forms.Input{Path: quotaPath, Rows: &forms.Rows{ID: "row", Label: "Row", Fields: rowFields}}},
	{Input: forms.Input{Path: quotaPath, ID: "add-row", Label: "Quota"}},
	{Input: forms.Input{Path: "spec.sharing.strategy", ID: "strategy", Label: "Lending and borrowing"}},
	{Input: forms.Input{Path: "spec.sharing.borrowLimitPercent", ID: "borrow-percent", Label: "Borrow limit"}},
	{Input: forms.Input{Path: "spec.sharing.unlimited", ID: "borrow-percent", Label: "Borrow limit"}},
	{Input: forms.Input{Path: limitsPath, Rows: &forms.Rows{ID: "limit", Label: "Borrow limit", Fields: rowFields}}},
	{Input: forms.Input{Path: limitsPath, ID: "add-limit", Label: "Absolute limits"}},
	{Input: forms.Input{Path: sharesPath, Rows: &forms.Rows{ID: "share", Label: "Share", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "weight": {ID: "weight", Label: "weight"}, "members": {ID: "members", Label: "members"},
		"quota": {ID: "quota", Label: "quota"}, "borrowLimitPercent": {ID: "percent", Label: "borrow limit"}, "queueingStrategy": {ID: "order", Label: "order"},
		"defaultPriorityClass": {ID: "class", Label: "priority class"}, "kinds": {ID: "kinds", Label: "kinds"},
	}}}},
	{Input: forms.Input{Path: sharesPath, ID: "add-share", Label: "Shares"}},
	{Input: forms.Input{Path: windowsPath, Rows: &forms.Rows{ID: "window", Label: "Window", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "days": {ID: "days", Label: "days"}, "from": {ID: "from", Label: "from"}, "to": {ID: "to", Label: "to"}, "timeZone": {ID: "zone", Label: "time zone"},
		"quota": {ID: "quota", Label: "quota"}, "sharing": {ID: "sharing", Label: "lending and borrowing"}, "activation": {ID: "activation", Label: "queue"}, "notice": {ID: "notice", Label: "notice"},
	}}}},
	{Input: forms.Input{Path: windowsPath, ID: "add-window", Label: "Windows"}},
	{Input: forms.Input{Path: "spec.budget.timeZone", ID: "budget-zone", Label: "Budget, time zone"}},
	{Input: forms.Input{Path: "spec.budget.period", ID: "budget-period", Label: "Budget, period"}},
	{Input: forms.Input{Path: "spec.budget.Notify", ID: budgetInput(v1alpha1.BudgetNotify), Label: "Budget, notify"}},
	{Input: forms.Input{Path: "spec.budget.BorrowNothing", ID: budgetInput(v1alpha1.BudgetBorrowNothing), Label: "Budget, borrow nothing"}},
	{Input: forms.Input{Path: "spec.budget.Hold", ID: budgetInput(v1alpha1.BudgetHold), Label: "Budget, hold"}},
	{Input: forms.Input{Path: "spec.budget.Drain", ID: budgetInput(v1alpha1.BudgetDrain), Label: "Budget, drain"}},
	{Input: forms.Input{Path: "spec.budget.steps", ID: budgetInput(v1alpha1.BudgetNotify), Label: "Budget, steps"}},
	{Input: forms.Input{Path: "spec.budget.amount", ID: "budget-amount", Label: "Budget"}},
	ofTeams(choiceField("spec.preemption.withinTeam", "preemption", "Preemption", v1alpha1.PreemptLowerPriority, func(s *allocationSpec) *v1alpha1.WithinTeam { return &s.Preemption.WithinTeam })),
	ofTeams(optionField("spec.namespaceCeiling", "ceiling", "Namespace ceiling", "Limits all pods of the namespace to quota plus borrow limit. Needs a borrow limit.", func(s *allocationSpec) *bool { return &s.NamespaceCeiling })),
	ofTeams(ceilings),
	ofTeams(optionField("spec.defaultQueue", "default-queue", "Default queue", "Adds a LocalQueue named default, so that jobs without a queue label use the team's queue.", func(s *allocationSpec) *bool { return &s.DefaultQueue })),
	ofTeams(strictOrder),
	ofTeams(textField("spec.defaultPriorityClass", "default-class", "Default priority class", func(s *allocationSpec) *string { return &s.DefaultPriorityClass })),
}

// inputs are the fields by the paths of their errors.
var inputs = func() (all forms.Inputs) {
	for _, f := range fields {
		all = append(all, f.Input)
	}
	return all
}()

// conditionText returns the message of a condition with the labels of the form. A
// team's own name and namespace need no label.
func conditionText(message string) string {
	return format.Capitalize(inputs.Relabel(message, "team", "namespace"))
}
