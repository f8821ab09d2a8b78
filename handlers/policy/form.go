package policy

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/forms"
)

// maxPostedPolicyRows limits the rows that one request can post. It is above the
// limits of a policy, so that too many rows are an error rather than cut.
const maxPostedPolicyRows = 80

// maxPostedPrices limits the prices that one request can post.
const maxPostedPrices = 300

// policyForm has the values of the form as typed.
type policyForm struct {
	forms.Form
	parts []*part // what saving changes: that of the page first

	prioritization string
	classes        []classRow
	numbers        bool
	idle           string
	share          bool

	gang, block                       bool
	timeout, recovery, order          string
	retries, backoffBase, backoffMost string

	usage                            bool
	halfLife, interval, usageWeights string

	loops, enforcement string

	pools []poolRow
	over  []overRow

	resources []resourceRow

	currency string
	prices   []priceRow

	rules     []ruleRow // all rules of package alerts in their order, then those for priority classes
	receivers []receiverRow

	drop []string // confirmed: classes to delete although tasks name them
}

type classRow struct{ name, weight, limit, longest, description string }

type poolRow struct{ name, match, value string }

// overRow is a limit of over-allocation as typed.
type overRow struct{ pool, percent string }

func (r *overRow) Fields() map[string]*string {
	return map[string]*string{"pool": &r.pool, "percent": &r.percent}
}

// resourceRow is a listed resource as typed. unit is one of the API, or unitAccelerators.
type resourceRow struct{ name, label, unit string }

const unitAccelerators = "Accelerators"

func (r *resourceRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "label": &r.label, "unit": &r.unit}
}

// empty reports whether nothing was typed; unit always has a value.
func (r resourceRow) empty() bool { return r.name == "" && r.label == "" }

// empty reports whether nothing was typed or chosen.
func (r overRow) empty() bool { return r.percent == "" && r.pool == v1alpha1.AllPools }

func (r *classRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "weight": &r.weight, "limit": &r.limit, "longest": &r.longest, "description": &r.description}
}

func (r *poolRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "match": &r.match, "value": &r.value}
}

func (r classRow) empty() bool { return r == classRow{} }

// empty reports whether nothing was typed; match always has a value.
func (r poolRow) empty() bool { return r.name == "" && r.value == "" }

// texts returns the text inputs and choices by name.
func (f *policyForm) texts() map[string]*string {
	return map[string]*string{
		"resource-version": &f.Version, "generation": &f.Generation,
		"prioritization": &f.prioritization, "idle": &f.idle, "preemption-loops": &f.loops, "enforcement": &f.enforcement,
		"gang-timeout": &f.timeout, "gang-recovery": &f.recovery, "requeue-order": &f.order,
		"requeue-limit": &f.retries, "requeue-base": &f.backoffBase, "requeue-most": &f.backoffMost,
		"price-currency":  &f.currency,
		"usage-half-life": &f.halfLife, "usage-interval": &f.interval, "usage-weights": &f.usageWeights,
	}
}

// checks returns the checkboxes by name.
func (f *policyForm) checks() map[string]*bool {
	return map[string]*bool{"numeric-priorities": &f.numbers, "share-unallocated": &f.share, "gang": &f.gang, "gang-block": &f.block, "usage": &f.usage}
}

func readPolicyForm(page *part, values url.Values) policyForm {
	form := policyForm{Form: forms.ReadForm(values), parts: readParts(page, values["part"])}
	for name, text := range form.texts() {
		*text = strings.TrimSpace(values.Get(name))
	}
	form.loops = cmp.Or(form.loops, string(v1alpha1.BreakLoops)) // forms of earlier releases have no such input
	forms.ReadChecks(values, form.checks())
	form.classes = forms.ReadRows[classRow](values, "class-", maxPostedPolicyRows)
	form.pools = forms.ReadRows[poolRow](values, "pool-", maxPostedPolicyRows)
	form.over = forms.ReadRows[overRow](values, "over-", maxPostedPolicyRows)
	form.resources = forms.ReadRows[resourceRow](values, "resource-", maxPostedPolicyRows)
	form.prices = forms.ReadRows[priceRow](values, "price-", maxPostedPrices)
	form.rules = allRules(forms.ReadRows[ruleRow](values, "rule-", maxPostedPolicyRows))
	form.receivers = forms.ReadRows[receiverRow](values, "receiver-", maxPostedPolicyRows)
	if drop := values["drop"]; len(drop) > 0 {
		form.drop = slices.Compact(slices.Sorted(slices.Values(drop[:min(len(drop), maxPostedPolicyRows)])))
	}
	return form
}

// values returns the values that readPolicyForm reads.
func (f *policyForm) values() url.Values {
	values := url.Values{}
	f.Write(values)
	forms.WriteTexts(values, f.texts())
	forms.WriteChecks(values, f.checks())
	forms.WriteRows(values, "class-", f.classes)
	forms.WriteRows(values, "pool-", f.pools)
	forms.WriteRows(values, "over-", f.over)
	forms.WriteRows(values, "resource-", f.resources)
	forms.WriteRows(values, "price-", f.prices)
	forms.WriteRows(values, "rule-", f.rules)
	forms.WriteRows(values, "receiver-", f.receivers)
	for _, p := range f.parts[1:] {
		values.Add("part", p.name)
	}
	if len(f.drop) > 0 {
		values["drop"] = f.drop
	}
	return values
}

// do applies an action that only changes the form.
func (f *policyForm) do(action string) {
	switch name, argument, _ := strings.Cut(action, ":"); name {
	case "add-class":
		f.classes = forms.Add(f.classes, classRow{}, v1alpha1.MaxPriorityClasses)
	case "remove-class":
		f.classes = forms.Remove(f.classes, argument)
	case "add-pool":
		f.pools = forms.Add(f.pools, poolRow{match: matchAccelerator}, v1alpha1.MaxPools)
	case "remove-pool":
		f.pools = forms.Remove(f.pools, argument)
	case "add-over":
		f.over = forms.Add(f.over, overRow{pool: v1alpha1.AllPools}, v1alpha1.MaxPools)
	case "remove-over":
		f.over = forms.Remove(f.over, argument)
	case "add-resource":
		f.resources = forms.Add(f.resources, resourceRow{unit: string(v1alpha1.UnitCount)}, v1alpha1.MaxListedResources)
	case "remove-resource":
		f.resources = forms.Remove(f.resources, argument)
	case "add-price":
		f.prices = forms.Add(f.prices, f.nextPrice(), v1alpha1.MaxPrices)
	case "remove-price":
		f.prices = forms.Remove(f.prices, argument)
	case "add-rule":
		f.rules = forms.Add(f.rules, classRule, v1alpha1.MaxAlertRules)
	case "remove-rule":
		if i, err := strconv.Atoi(argument); err == nil && i >= len(alerts.Rules) {
			f.rules = forms.Remove(f.rules, argument)
		}
	case "add-receiver":
		f.receivers = forms.Add(f.receivers, receiverRow{kind: string(v1alpha1.WebhookReceiver)}, v1alpha1.MaxAlertReceivers)
	case "remove-receiver":
		f.receivers = forms.Remove(f.receivers, argument)
	}
}

// has reports whether saving changes a part.
func (f *policyForm) has(p *part) bool { return slices.Contains(f.parts, p) }

// policyFormOf returns the form of the saved policy, or of a new one for nil. The parts are
// those that saving changes.
func policyFormOf(saved *v1alpha1.ClusterPolicy, of ...*part) policyForm {
	if saved == nil {
		return policyForm{
			parts: of, rules: allRules(nil),
			prioritization: string(v1alpha1.FirstComeFirstServe), idle: string(v1alpha1.IdleFairShare),
			timeout: "5m", recovery: "5m", order: requeueEviction, backoffBase: "60", backoffMost: "3600",
			halfLife: "24h", interval: "5m",
			loops: string(v1alpha1.BreakLoops), enforcement: string(v1alpha1.RequireQueue),
		}
	}
	spec := &saved.Spec
	gang := &spec.GangScheduling
	form := policyForm{
		Form:           forms.Form{Version: saved.ResourceVersion, Generation: generationOf(saved, of)},
		parts:          of,
		prioritization: string(spec.TaskPrioritization), numbers: spec.NumericPriorities, idle: string(spec.IdleCompute.Strategy), share: spec.IdleCompute.ShareUnallocated,
		gang: gang.Enabled, block: gang.BlockAdmission,
		timeout: describe.Duration(gang.Timeout), recovery: describe.Duration(gang.RecoveryTimeout), order: gang.Requeuing.Timestamp,
		retries: wholeText(gang.Requeuing.BackoffLimitCount), backoffBase: wholeText(gang.Requeuing.BackoffBaseSeconds), backoffMost: wholeText(gang.Requeuing.BackoffMaxSeconds),
		loops: string(cmp.Or(spec.PreemptionLoops, v1alpha1.BreakLoops)), enforcement: string(spec.Enforcement),
	}
	form.halfLife, form.interval = "24h", "5m"
	if usage := spec.AdmissionFairSharing; usage != nil {
		form.usage, form.usageWeights = true, describe.ResourceWeights(usage.ResourceWeights)
		form.halfLife, form.interval = cmp.Or(describe.Duration(usage.UsageHalfLifeTime), form.halfLife), cmp.Or(describe.Duration(usage.UsageSamplingInterval), form.interval)
	}
	if spec.Prices != nil {
		form.currency, form.prices = spec.Prices.Currency, priceRows(spec.Prices.Hourly)
	}
	form.rules, form.receivers = alertRows(spec.Alerts)
	for _, class := range spec.PriorityClasses {
		form.classes = append(form.classes, classRow{
			name: class.Name, weight: wholeText(class.Weight), description: class.Description,
			limit: describe.Seconds(class.DefaultTimeLimitSeconds), longest: describe.Seconds(class.MaximumTimeLimitSeconds),
		})
	}
	for _, pool := range spec.Pools {
		match, value := matchText(pool.Match)
		form.pools = append(form.pools, poolRow{pool.Name, match, value})
	}
	for _, r := range spec.Resources {
		row := resourceRow{r.Name, r.Label, string(cmp.Or(r.Unit, v1alpha1.UnitCount))}
		if r.Accelerator {
			row.unit = unitAccelerators
		}
		form.resources = append(form.resources, row)
	}
	for _, limit := range spec.OverAllocationLimits {
		form.over = append(form.over, overRow{limit.Pool, wholeText(limit.Percent)})
	}
	return form
}
