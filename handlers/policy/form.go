package policy

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/handlers/forms"
)

// maxPostedPolicyRows bounds what one request can make the server look at. It
// is more than a policy takes, so that too many can be told as such.
const maxPostedPolicyRows = 80

// policyForm is the form of the cluster policy as typed.
type policyForm struct {
	forms.Form

	prioritization string
	classes        []classRow
	idle           string
	share          bool

	gang, block                       bool
	timeout, recovery, order          string
	retries, backoffBase, backoffMost string

	loops, enforcement string

	pools []poolRow

	drop []string // classes that go although tasks name them
}

// classRow is one priority class as typed.
type classRow struct{ name, weight, description string }

// poolRow is one pool as typed.
type poolRow struct{ name, match, value string }

func (r *classRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "weight": &r.weight, "description": &r.description}
}

func (r *poolRow) Fields() map[string]*string {
	return map[string]*string{"name": &r.name, "match": &r.match, "value": &r.value}
}

func (r classRow) empty() bool { return r == classRow{} }

// empty tells whether nothing was typed into the row; what it matches by is
// chosen from the start.
func (r poolRow) empty() bool { return r.name == "" && r.value == "" }

// texts are the inputs that hold one line each, by name.
func (f *policyForm) texts() map[string]*string {
	return map[string]*string{
		"resource-version": &f.Version, "generation": &f.Generation,
		"prioritization": &f.prioritization, "idle": &f.idle, "preemption-loops": &f.loops, "enforcement": &f.enforcement,
		"gang-timeout": &f.timeout, "gang-recovery": &f.recovery, "requeue-order": &f.order,
		"requeue-limit": &f.retries, "requeue-base": &f.backoffBase, "requeue-most": &f.backoffMost,
	}
}

// checks are the inputs that are ticked or not, by name.
func (f *policyForm) checks() map[string]*bool {
	return map[string]*bool{"share-unallocated": &f.share, "gang": &f.gang, "gang-block": &f.block}
}

func readPolicyForm(values url.Values) policyForm {
	form := policyForm{Form: forms.ReadForm(values)}
	for name, text := range form.texts() {
		*text = strings.TrimSpace(values.Get(name))
	}
	form.loops = cmp.Or(form.loops, string(v1alpha1.BreakLoops)) // forms of earlier releases have no such input
	forms.ReadChecks(values, form.checks())
	form.classes = forms.ReadRows[classRow](values, "class-", maxPostedPolicyRows)
	form.pools = forms.ReadRows[poolRow](values, "pool-", maxPostedPolicyRows)
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
	if len(f.drop) > 0 {
		values["drop"] = f.drop
	}
	return values
}

// do carries out one of the form's smaller actions.
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
	}
}

// generationOf tells one spec of a policy from all others, also from those of a
// policy that was deleted and made anew.
func generationOf(policy *v1alpha1.ClusterPolicy) string {
	return string(policy.UID) + "/" + strconv.FormatInt(policy.Generation, 10)
}

// policyFormOf is the form as it opens: filled in with the policy that is
// there, or with what a new one has.
func policyFormOf(saved *v1alpha1.ClusterPolicy) policyForm {
	if saved == nil {
		return policyForm{
			prioritization: string(v1alpha1.FirstComeFirstServe), idle: string(v1alpha1.IdleFairShare),
			timeout: "5m", recovery: "5m", order: requeueEviction, backoffBase: "60", backoffMost: "3600",
			loops: string(v1alpha1.BreakLoops), enforcement: string(v1alpha1.RequireQueue),
		}
	}
	spec := &saved.Spec
	gang := &spec.GangScheduling
	form := policyForm{
		Form:           forms.Form{Version: saved.ResourceVersion, Generation: generationOf(saved)},
		prioritization: string(spec.TaskPrioritization), idle: string(spec.IdleCompute.Strategy), share: spec.IdleCompute.ShareUnallocated,
		gang: gang.Enabled, block: gang.BlockAdmission,
		timeout: describe.Duration(gang.Timeout), recovery: describe.Duration(gang.RecoveryTimeout), order: gang.Requeuing.Timestamp,
		retries: wholeText(gang.Requeuing.BackoffLimitCount), backoffBase: wholeText(gang.Requeuing.BackoffBaseSeconds), backoffMost: wholeText(gang.Requeuing.BackoffMaxSeconds),
		loops: string(cmp.Or(spec.PreemptionLoops, v1alpha1.BreakLoops)), enforcement: string(spec.Enforcement),
	}
	for _, class := range spec.PriorityClasses {
		form.classes = append(form.classes, classRow{class.Name, wholeText(class.Weight), class.Description})
	}
	for _, pool := range spec.Pools {
		match, value := matchText(pool.Match)
		form.pools = append(form.pools, poolRow{pool.Name, match, value})
	}
	return form
}
