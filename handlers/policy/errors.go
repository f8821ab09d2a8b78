package policy

import (
	"regexp"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
)

const (
	classesPath = "spec.priorityClasses"
	poolsPath   = "spec.pools"
)

var inputs = forms.Inputs{
	{Path: "spec.taskPrioritization", ID: "prioritization", Label: "Task prioritization"},
	{Path: classesPath, ID: "classes", Label: "Priority classes", Rows: &forms.Rows{ID: "class", Label: "Class", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "weight": {ID: "weight", Label: "weight"}, "description": {ID: "description", Label: "description"},
		"defaultTimeLimitSeconds": {ID: "limit", Label: "default time limit"}, "maximumTimeLimitSeconds": {ID: "longest", Label: "longest time limit"},
	}}},
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
	{Path: "spec.prices.currency", ID: "price-currency", Label: "Currency"},
	{Path: "spec.prices.hourly", ID: "prices", Label: "Prices"},
	{Path: "spec.alerts.rules", ID: "alert-rules", Label: "Alert rules"},
	{Path: "spec.alerts.receivers", ID: "alert-receivers", Label: "Alert receivers"},
	{Path: "spec.preemptionLoops", ID: "preemption-loops", Label: "Preemption loops"},
	{Path: "spec.enforcement", ID: "enforcement", Label: "Enforcement"},
	{Path: poolsPath, ID: "pools", Label: "Pools", Rows: &forms.Rows{ID: "pool", Label: "Pool", Fields: map[string]forms.RowField{
		"name": {ID: "name", Label: "name"}, "match": {ID: "value", Label: "value"},
	}}},
}

// formPaths replaces the rows of the spec in paths by the rows of the form, and the entries
// of lists by lines.
func (f *policyForm) formPaths(wrong []governance.FieldError) []governance.FieldError {
	wrong = forms.Renumber(wrong, map[string][]int{
		classesPath: forms.Filled(f.classes, classRow.empty),
		poolsPath:   forms.Filled(f.pools, poolRow.empty),
	})
	texts := map[string]string{"spec.prices.hourly": f.prices, "spec.alerts.rules": f.alertRules, "spec.alerts.receivers": f.alertReceivers}
	for i := range wrong {
		w := &wrong[i]
		lines := forms.Filled(strings.Split(texts[w.Path], "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
		w.Message = entry.ReplaceAllStringFunc(w.Message, func(text string) string {
			n, _ := strconv.Atoi(strings.TrimPrefix(text, "number "))
			if n < 1 || n > len(lines) {
				return text
			}
			return "line " + strconv.Itoa(lines[n-1]+1)
		})
	}
	return wrong
}

// entry is how policy.Validate names an entry of a list.
var entry = regexp.MustCompile(`^number [0-9]+`)

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
