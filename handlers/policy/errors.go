package policy

import (
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
)

const (
	classesPath = "spec.priorityClasses"
	poolsPath   = "spec.pools"
	overPath    = "spec.overAllocationLimits"

	resourcesPath = "spec.resources"
)

var inputs = forms.Inputs{
	{Path: "spec.taskPrioritization", ID: "prioritization", Label: "Task prioritization"},
	{Path: classesPath, ID: "classes", Label: "Priority classes", Rows: &forms.Rows{ID: "class", Label: "Class", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "weight": {ID: "weight", Label: "weight"}, "description": {ID: "description", Label: "description"},
		"defaultTimeLimitSeconds": {ID: "limit", Label: "default time limit"}, "maximumTimeLimitSeconds": {ID: "longest", Label: "longest time limit"},
	}}},
	{Path: "spec.numericPriorities", ID: "numeric-priorities", Label: "Priority by number"},
	{Path: "spec.idleCompute.strategy", ID: "idle", Label: "Idle compute"},
	{Path: "spec.idleCompute.shareUnallocated", ID: "share-unallocated", Label: "Unallocated compute"},
	{Path: "spec.gangScheduling.enabled", ID: "gang", Label: "Gang scheduling"},
	{Path: "spec.gangScheduling.timeout", ID: "gang-timeout", Label: "Start within"},
	{Path: "spec.gangScheduling.recoveryTimeout", ID: "gang-recovery", Label: "Recover within"},
	{Path: "spec.gangScheduling.blockAdmission", ID: "gang-block", Label: "One at a time"},
	{Path: "spec.gangScheduling.requeuing.timestamp", ID: "requeue-order", Label: "Position after requeuing"},
	{Path: "spec.gangScheduling.requeuing.backoffLimitCount", ID: "requeue-limit", Label: "Attempts"},
	{Path: "spec.gangScheduling.requeuing.backoffBaseSeconds", ID: "requeue-base", Label: "First pause"},
	{Path: "spec.gangScheduling.requeuing.backoffMaxSeconds", ID: "requeue-most", Label: "Longest pause"},
	{Path: "spec.admissionFairSharing.usageHalfLifeTime", ID: "usage-half-life", Label: "Half-life of usage"},
	{Path: "spec.admissionFairSharing.usageSamplingInterval", ID: "usage-interval", Label: "Sampling interval"},
	{Path: "spec.admissionFairSharing.resourceWeights", ID: "usage-weights", Label: "Resource weights"},
	{Path: "spec.preemptionLoops", ID: "preemption-loops", Label: "Preemption loops"},
	{Path: "spec.enforcement", ID: "enforcement", Label: "Enforcement"},
	{Path: poolsPath, ID: "pools", Label: "Pools", Rows: &forms.Rows{ID: "pool", Label: "Pool", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "match": {ID: "value", Label: "value"},
	}}},
	{Path: overPath, ID: "overs", Label: "Most quota", Rows: &forms.Rows{ID: "over", Label: "Limit", Fields: map[string]forms.RowField{
		"pool": {ID: "pool", Label: "pool"}, "percent": {ID: "percent", Label: "percent"},
	}}},
	{Path: resourcesPath, ID: "resources", Label: "Resources", Rows: &forms.Rows{ID: "resource", Label: "Resource", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "label": {ID: "label", Label: "label"}, "unit": {ID: "unit", Label: "counted as"}, "accelerator": {ID: "unit", Label: "counted as"},
	}}},
	{Path: "spec.prices.currency", ID: "price-currency", Label: "Currency"},
	{Path: pricesPath, ID: "prices", Label: "Prices", Rows: &forms.Rows{ID: "price", Label: "Price", Fields: map[string]forms.RowField{
		"pool": {ID: "pool", Label: "pool"}, "resource": {ID: "resource", Label: "resource"}, "from": {ID: "from", Label: "from"},
		"own": {ID: "own", Label: "price of an hour"}, "borrowed": {ID: "borrowed", Label: "price of a borrowed hour"},
	}}},
	{Path: rulesPath, ID: "rules", Label: "Alert rules", Rows: &forms.Rows{ID: "rule", Label: "Rule", Fields: map[string]forms.RowField{
		"priorityClass": {ID: "class", Label: "priority class"}, "after": {ID: "limit", Label: "limit"}, "count": {ID: "limit", Label: "limit"},
	}, Default: forms.RowField{ID: "limit", Label: "limit"}}},
	{Path: receiversPath, ID: "receivers", Label: "Receivers", Rows: &forms.Rows{ID: "receiver", Label: "Receiver", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "type": {ID: "type", Label: "type"}, "secretName": {ID: "secret", Label: "Secret"},
		"to": {ID: "to", Label: "addresses"}, "team": {ID: "team", Label: "team"}, "severity": {ID: "severity", Label: "severity"}, "notices": {ID: "notices", Label: "notices"},
	}}},
}

// formPaths replaces the rows of the spec in paths by the rows of the form.
func (f *policyForm) formPaths(wrong []governance.FieldError) []governance.FieldError {
	wrong = slices.Clone(wrong)
	for i := range wrong {
		if of, ok := strings.CutSuffix(wrong[i].Path, ".department"); ok && strings.HasPrefix(of, receiversPath) {
			wrong[i].Path = of + ".team" // one menu has both
		}
	}
	return forms.Renumber(wrong, map[string][]int{
		classesPath:   forms.Filled(f.classes, classRow.empty),
		poolsPath:     forms.Filled(f.pools, poolRow.empty),
		overPath:      forms.Filled(f.over, overRow.empty),
		resourcesPath: forms.Filled(f.resources, resourceRow.empty),
		pricesPath:    forms.Filled(f.prices, priceRow.empty),
		rulesPath:     f.setRules(),
		receiversPath: forms.Filled(f.receivers, receiverRow.empty),
	})
}

// conditionText returns the message of a condition with the labels of the form.
func conditionText(message string) string {
	if message == "" {
		return ""
	}
	return policySentence(inputs.Relabel(message))
}

// policySentence returns a message as a sentence. It does not capitalize a name at
// the start.
func policySentence(message string) string {
	first, _, _ := strings.Cut(message, " ")
	if !strings.ContainsAny(first, ".-0123456789") {
		return format.Sentence(message)
	}
	return strings.TrimSuffix(message, ".") + "."
}
