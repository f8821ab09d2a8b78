package policy

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/describe"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
)

// maxPostedPolicyRows bounds what one request can make the server look at. It
// is more than a policy takes, so that too many can be told as such.
const maxPostedPolicyRows = 80

// policyForm is the form of the cluster policy as typed.
type policyForm struct {
	version    string            // resourceVersion that it was opened with; empty for a policy that is not there yet
	generation string            // which spec that version has, for when the API server has forgotten the version
	submitted  bool              // whether a review was tried: then all that is wrong is told
	resumed    bool              // whether it comes back after signing in again
	typed      bool              // whether its values were typed, rather than read from what is saved
	lost       bool              // whether the address has values that cannot be shown
	tried      bool              // whether the address says that it was invalid just now
	refused    *governance.Error // why it was not saved, where the address says so
	imported   forms.Imported

	prioritization string
	classes        []classRow
	idle           string
	share          bool

	gang, block                       bool
	timeout, recovery, order          string
	retries, backoffBase, backoffMost string

	loops, enforcement string

	pools []poolRow

	restores, reason string // the version that it was filled in with, and why it is saved

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
		"restores": &f.restores, "reason": &f.reason,
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
	form := policyForm{
		version: values.Get("resource-version"), generation: values.Get("generation"), submitted: values.Get("submitted") == "true",
		resumed: values.Get("resumed") == "true", typed: true, tried: values.Get(forms.TriedField) == "true", refused: forms.RefusalOf(values),
	}
	for name, text := range form.texts() {
		*text = strings.TrimSpace(values.Get(name))
	}
	form.reason = forms.ReasonText(form.reason)
	form.loops = cmp.Or(form.loops, string(v1alpha1.BreakLoops)) // forms of earlier releases have no such input
	for name, ticked := range form.checks() {
		*ticked = values.Get(name) == "true"
	}
	for _, posted := range postedRows(values, "class-") {
		var row classRow
		for part, text := range row.Fields() {
			*text = posted[part]
		}
		form.classes = append(form.classes, row)
	}
	for _, posted := range postedRows(values, "pool-") {
		var row poolRow
		for part, text := range row.Fields() {
			*text = posted[part]
		}
		form.pools = append(form.pools, row)
	}
	form.imported.Read(values)
	if drop := values["drop"]; len(drop) > 0 {
		form.drop = slices.Compact(slices.Sorted(slices.Values(drop[:min(len(drop), maxPostedPolicyRows)])))
	}
	return form
}

// postedRows collects inputs named prefix, number, hyphen, part into rows, in
// the order of the numbers.
func postedRows(values url.Values, prefix string) []map[string]string {
	byNumber := map[int]map[string]string{}
	for name := range values {
		rest, ok := strings.CutPrefix(name, prefix)
		number, part, ok2 := strings.Cut(rest, "-")
		n, err := strconv.Atoi(number)
		if !ok || !ok2 || err != nil || n < 0 {
			continue
		}
		if byNumber[n] == nil {
			byNumber[n] = map[string]string{}
		}
		byNumber[n][part] = strings.TrimSpace(values.Get(name))
	}
	var rows []map[string]string
	for n, row := range byNumber {
		row["#"] = strconv.Itoa(n)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b map[string]string) int {
		return cmp.Or(cmp.Compare(len(a["#"]), len(b["#"])), cmp.Compare(a["#"], b["#"]))
	})
	return rows[:min(len(rows), maxPostedPolicyRows)]
}

// fields is the form as the hidden inputs of a page that leads back to it.
// readPolicyForm of them is the form again.
func (f *policyForm) fields() []views.HiddenField {
	var fields []views.HiddenField
	add := func(name, value string) { fields = append(fields, views.HiddenField{Name: name, Value: value}) }
	add("resource-version", f.version)
	add("generation", f.generation)
	texts, checks := f.texts(), f.checks()
	for _, name := range []string{
		"prioritization", "idle", "gang-timeout", "gang-recovery", "requeue-order",
		"requeue-limit", "requeue-base", "requeue-most", "preemption-loops", "enforcement", "restores", "reason",
	} {
		add(name, *texts[name])
	}
	for _, name := range []string{"share-unallocated", "gang", "gang-block"} {
		if *checks[name] {
			add(name, "true")
		}
	}
	for i, row := range f.classes {
		for _, part := range []string{"name", "weight", "description"} {
			add("class-"+strconv.Itoa(i)+"-"+part, *row.Fields()[part])
		}
	}
	for i, row := range f.pools {
		for _, part := range []string{"name", "match", "value"} {
			add("pool-"+strconv.Itoa(i)+"-"+part, *row.Fields()[part])
		}
	}
	for _, name := range f.drop {
		add("drop", name)
	}
	return append(fields, f.imported.Fields()...)
}

// encoded is the form as readPolicyForm reads it, with what its pages only say.
func (f *policyForm) encoded() url.Values {
	values := url.Values{}
	for _, field := range f.fields() {
		values.Add(field.Name, field.Value)
	}
	for name, on := range map[string]bool{"submitted": f.submitted, "resumed": f.resumed} {
		if on {
			values.Set(name, "true")
		}
	}
	return values
}

// do carries out one of the form's smaller actions.
func (f *policyForm) do(action string) {
	name, argument, _ := strings.Cut(action, ":")
	i, err := strconv.Atoi(argument)
	switch {
	case name == "add-class" && len(f.classes) < v1alpha1.MaxPriorityClasses:
		f.classes = append(f.classes, classRow{})
	case name == "remove-class" && err == nil && i >= 0 && i < len(f.classes):
		f.classes = slices.Delete(f.classes, i, i+1)
	case name == "add-pool" && len(f.pools) < v1alpha1.MaxPools:
		f.pools = append(f.pools, poolRow{match: matchAccelerator})
	case name == "remove-pool" && err == nil && i >= 0 && i < len(f.pools):
		f.pools = slices.Delete(f.pools, i, i+1)
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
		version:        saved.ResourceVersion,
		generation:     generationOf(saved),
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
