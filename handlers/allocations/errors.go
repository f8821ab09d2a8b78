package allocations

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
)

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
}

const (
	quotaPath  = "spec.quota"
	limitsPath = "spec.sharing.borrowLimits"
)

var inputs = forms.Inputs{
	{Path: "metadata.name", ID: "team", Label: "Team name"},
	{Path: "spec.displayName", ID: "display-name", Label: "Display name"},
	{Path: "spec.description", ID: "description", Label: "Description"},
	{Path: "spec.activation", ID: "activation", Label: "Activation"},
	{Path: "spec.namespace", ID: "namespace", Label: "Namespace"},
	{Path: "spec.fairShareWeight", ID: "weight", Label: "Fair-share weight"},
	{Path: "spec.members", Rows: &forms.Rows{ID: "member", Label: "Member", Default: forms.RowField{ID: "name"}}},
	{Path: "spec.members", ID: "add-member", Label: "Members"},
	{Path: quotaPath, Rows: &forms.Rows{ID: "row", Label: "Row", Fields: rowFields}},
	{Path: quotaPath, ID: "add-row", Label: "Allocations"},
	{Path: "spec.sharing.strategy", ID: "strategy", Label: "Lending and borrowing"},
	{Path: "spec.sharing.borrowLimitPercent", ID: "borrow-percent", Label: "Borrow limit"},
	{Path: "spec.sharing.unlimited", ID: "borrow-percent", Label: "Borrow limit"},
	{Path: limitsPath, Rows: &forms.Rows{ID: "limit", Label: "Borrow limit", Fields: rowFields}},
	{Path: limitsPath, ID: "add-limit", Label: "Absolute limits"},
	{Path: sharesPath, Rows: &forms.Rows{ID: "share", Label: "Share", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "weight": {ID: "weight", Label: "weight"}, "members": {ID: "members", Label: "members"},
	}}},
	{Path: sharesPath, ID: "add-share", Label: "Shares"},
	{Path: windowsPath, Rows: &forms.Rows{ID: "window", Label: "Window", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "days": {ID: "days", Label: "days"}, "from": {ID: "from", Label: "from"}, "to": {ID: "to", Label: "to"}, "timeZone": {ID: "zone", Label: "time zone"},
		"quota": {ID: "quota", Label: "quota"}, "sharing": {ID: "sharing", Label: "lending and borrowing"}, "activation": {ID: "activation", Label: "queue"}, "notice": {ID: "notice", Label: "notice"},
	}}},
	{Path: windowsPath, ID: "add-window", Label: "Windows"},
	{Path: "spec.budget.timeZone", ID: "budget-zone", Label: "Budget, time zone"},
	{Path: "spec.budget.period", ID: "budget-period", Label: "Budget, period"},
	{Path: "spec.budget.Notify", ID: budgetInput(v1alpha1.BudgetNotify), Label: "Budget, notify"},
	{Path: "spec.budget.BorrowNothing", ID: budgetInput(v1alpha1.BudgetBorrowNothing), Label: "Budget, borrow nothing"},
	{Path: "spec.budget.Hold", ID: budgetInput(v1alpha1.BudgetHold), Label: "Budget, hold"},
	{Path: "spec.budget.Drain", ID: budgetInput(v1alpha1.BudgetDrain), Label: "Budget, drain"},
	{Path: "spec.budget.steps", ID: budgetInput(v1alpha1.BudgetNotify), Label: "Budget, steps"},
	{Path: "spec.budget.amount", ID: "budget-amount", Label: "Budget"},
	{Path: "spec.preemption.withinTeam", ID: "preemption", Label: "Preemption"},
	{Path: "spec.namespaceCeiling", ID: "ceiling", Label: "Namespace ceiling"},
	{Path: "spec.defaultQueue", ID: "default-queue", Label: "Default queue"},
}

// conditionText returns the message of a condition with the labels of the form. A
// team's own name and namespace need no label.
func conditionText(message string) string {
	return format.Capitalize(inputs.Relabel(message, "team", "namespace"))
}
