package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	policyviews "kuota.dev/kuota/views/policy"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policy returns the saved policy with the typed values of the form's parts. It keeps all
// others.
func (f *policyForm) policy(state policy.State) *v1alpha1.ClusterPolicy {
	wanted := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	if state.Policy != nil {
		wanted = state.Policy.DeepCopy()
	}
	wanted.ResourceVersion = f.Version
	if f.Version == "" {
		wanted.UID = "" // of a policy that was created meanwhile
	}
	spec, _ := f.parse()
	for _, p := range f.parts {
		p.copy(&wanted.Spec, &spec)
	}
	wanted.Annotations = dropClasses(wanted, f.drop)
	return wanted
}

// dropClasses returns the policy's annotations with the classes that may be deleted
// although tasks name them: those confirmed now, and those confirmed before that the
// policy still lacks. A class that is added again must be confirmed again.
func dropClasses(wanted *v1alpha1.ClusterPolicy, confirmed []string) map[string]string {
	names := map[string]bool{}
	for name := range strings.SplitSeq(wanted.Annotations[v1alpha1.AnnotationDropClasses], ",") {
		names[name] = true
	}
	for _, name := range confirmed {
		names[name] = true
	}
	delete(names, "")
	for _, class := range wanted.Spec.PriorityClasses {
		delete(names, class.Name)
	}
	annotations := maps.Clone(wanted.Annotations)
	delete(annotations, v1alpha1.AnnotationDropClasses)
	if len(names) == 0 {
		return annotations
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationDropClasses] = strings.Join(slices.Sorted(maps.Keys(names)), ",")
	return annotations
}

// wrong returns all errors of the form: invalid values, missing ones once a review
// was tried, and the errors of policy.Validate for the other inputs. Before a review
// was tried, empty inputs are no errors.
func (f *policyForm) wrong(state policy.State) []governance.FieldError {
	_, wrong := f.parse()
	if f.Submitted {
		wrong = append(wrong, f.missing()...)
	}
	reported := map[string]bool{}
	for _, w := range wrong {
		id, _ := inputs.Find(w.Path)
		reported[id] = true
	}
	for _, w := range f.formPaths(policy.Validate(f.policy(state), state)) {
		if id, _ := inputs.Find(w.Path); !reported[id] && (f.Submitted || !f.isEmpty(id)) {
			wrong = append(wrong, w)
		}
	}
	return wrong
}

// isEmpty reports whether id is an empty input of a row.
func (f *policyForm) isEmpty(id string) bool {
	values := f.values()
	return values.Has(id) && values.Get(id) == ""
}

// view maps the form to its page.
func (f *policyForm) view(state policy.State, refused *governance.Error, now present) policyviews.PolicyForm {
	wrong := f.wrong(state)
	if refused != nil {
		wrong = append(wrong, f.formPaths(refused.Fields)...)
	}
	errs := inputs.ByField(wrong, policySentence)
	text := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	choice := func(id, value string) policyviews.Choice { return policyviews.Choice{Value: value, Error: errs[id]} }
	page := f.parts[0]
	view := policyviews.PolicyForm{
		Lead: page.lead, UpLabel: page.upLabel, Action: page.path, CancelURL: page.up, NoPolicy: state.Policy == nil && !f.has(clusterPart), CreateURL: urls.EditPolicy,
		Version: f.Version, Generation: f.Generation, Submitted: f.Submitted, Resumed: f.Resumed, Failure: forms.Failure(refused), Drop: f.drop,
		Restored: forms.RestoredOf(f.Restores), Reason: f.Reason, Imported: f.Imported.View("The cluster policy", f.Version != ""),
		Unchanged: len(wrong) == 0 && unchanged(state, f.policy(state)),
		Cluster:   f.has(clusterPart), More: f.moreWords(),
		Prioritization: choice("prioritization", f.prioritization),
		Numbers:        f.numbers, NumbersError: errs["numeric-priorities"],
		Idle: choice("idle", f.idle), Share: f.share,
		Gang: f.gang, Block: f.block,
		Timeout: text("gang-timeout", f.timeout), Recovery: text("gang-recovery", f.recovery),
		RequeueOrder: choice("requeue-order", f.order),
		RequeueLimit: text("requeue-limit", f.retries), RequeueBase: text("requeue-base", f.backoffBase), RequeueMax: text("requeue-most", f.backoffMost),
		Usage: f.usage, HalfLife: text("usage-half-life", f.halfLife), Interval: text("usage-interval", f.interval), UsageWeights: text("usage-weights", f.usageWeights),
		PreemptionLoops: choice("preemption-loops", f.loops),
		Enforcement:     choice("enforcement", f.enforcement),
	}
	for _, p := range f.parts[1:] {
		view.Parts = append(view.Parts, p.name)
	}
	view.SaveText, view.Simulated = "Save "+page.name, f.simulated()
	if page == clusterPart {
		view.SaveText = "Save policy"
	}
	if n := state.Tasks[""]; n > 0 {
		view.Classless = "Now: " + format.Tasks(n) + "."
	}
	rows := rowsOf{form: f, state: state, errs: errs, present: now, notes: f.notes(state, now.secrets)}
	if f.has(clusterPart) {
		view.Classes = rows.classes()
	}
	if f.has(poolsPart) {
		view.Pools, view.Over, view.Resources = rows.pools(), rows.over(), rows.resources()
		view.Suggestions = append(view.Suggestions, poolSuggestions(state.Types)...)
		view.Suggestions = append(view.Suggestions, policyviews.Suggestions{ID: "reported-resources", Values: state.Types.Unlisted()})
	}
	if f.has(pricesPart) {
		view.Currency, view.Prices = text("price-currency", f.currency), rows.prices()
	}
	if f.has(alertsPart) {
		view.Rules, view.ClassRules, view.Receivers = rows.rules(), rows.classRules(), rows.receivers()
		view.Suggestions = append(view.Suggestions, policyviews.Suggestions{ID: "secret-names", Values: now.secrets})
	}
	for id, problem := range errs {
		view.MoreOpen = view.MoreOpen || problem != "" && inMore(id)
	}
	if f.Submitted {
		view.Errors = inputs.Summary(wrong, func(id string) bool { return id != "" && f.shows(id) }, policySentence)
		nameRules(view.Errors)
	}
	return view
}

// nameRules replaces the numbers of rules in labels by their titles, since the page shows no numbers.
func nameRules(errors []views.Message) {
	for i := range errors {
		number, isRule := strings.CutPrefix(errors[i].Field, "rule-")
		number, _, _ = strings.Cut(number, "-")
		if n, err := strconv.Atoi(number); isRule && err == nil && n < len(alerts.Rules) {
			errors[i].Label = alerts.Rules[n].Title
		} else if isRule && err == nil {
			errors[i].Label = fmt.Sprintf("Class %d", n-len(alerts.Rules)+1)
		}
	}
}

// shows reports whether the form has an input.
func (f *policyForm) shows(id string) bool {
	kind, _, _ := strings.Cut(id, "-")
	switch kind {
	case "pools", "pool", "overs", "over", "resources", "resource":
		return f.has(poolsPart)
	case "prices", "price":
		return f.has(pricesPart)
	case "rules", "rule", "receivers", "receiver":
		return f.has(alertsPart)
	}
	return f.has(clusterPart)
}

// inMore reports whether an input is under More settings.
func inMore(id string) bool {
	switch kind, _, _ := strings.Cut(id, "-"); kind {
	case "numeric", "gang", "requeue", "usage", "preemption", "enforcement":
		return true
	}
	return false
}

// moreWords names what differs from the default under More settings; empty for nothing.
func (f *policyForm) moreWords() string {
	usual := policyFormOf(nil)
	var set []string
	add := func(is bool, words string) {
		if is {
			set = append(set, words)
		}
	}
	add(f.numbers, "priority by number")
	add(f.gang, "gang scheduling")
	add(f.usage, "usage of shares")
	add(f.loops != usual.loops, "preemption loops are only reported")
	add(f.enforcement != usual.enforcement, "no queue required")
	return strings.Join(set, ", ")
}

// present is what the cluster has now for the rows of a form.
type present struct {
	nodes   map[int]string // of pools, by their row
	secrets []string       // in the namespace of the console; nil where they are not known
}

// present reads what the rows of the form are about. What cannot be read is left out.
func (h *Pages) present(c echo.Context, form policyForm) (now present) {
	ctx := c.Request().Context()
	if form.has(alertsPart) {
		now.secrets, _ = h.Policy.SecretNames(ctx, console.UserOf(c))
	}
	if !form.has(poolsPart) {
		return now
	}
	var pools []v1alpha1.Pool
	var rows []int
	for i, row := range form.pools {
		if row.value == "" {
			continue
		}
		if match, problem := parseMatch(row.match, row.value); problem == "" {
			pools, rows = append(pools, v1alpha1.Pool{Name: row.name, Match: match}), append(rows, i)
		}
	}
	if len(pools) == 0 {
		return now
	}
	nodes, err := h.Policy.Nodes(ctx, pools)
	if err != nil || len(nodes) != len(pools) {
		return now
	}
	now.nodes = map[int]string{}
	for i, row := range rows {
		now.nodes[row] = nodesNow(nodes[i])
	}
	return now
}

func nodesNow(n int64) string {
	if n == 0 {
		return "No node now."
	}
	return format.Count(int(n), "node") + " now."
}

// poolSuggestions returns the values that pools can match the cluster's nodes by.
func poolSuggestions(types catalog.Catalog) []policyviews.Suggestions {
	accelerators, families, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, pool := range types.Pools() {
		name := pool.Instance.Type
		if name == "" {
			continue
		}
		names[name] = true
		if i := strings.LastIndex(name, "."); i > 0 {
			families[name[:i]] = true
		}
		if pool.Instance.AcceleratorModel != "" {
			accelerators[pool.Instance.AcceleratorModel] = true
		}
	}
	sorted := func(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
	return []policyviews.Suggestions{{ID: "pool-accelerator", Values: sorted(accelerators)}, {ID: "pool-family", Values: sorted(families)}, {ID: "pool-types", Values: sorted(names)}}
}

// managedPolicy returns the page in place of the form for a policy that a GitOps tool
// manages.
func managedPolicy(of *part, state policy.State) (page views.Managed, managed bool) {
	if state.Policy == nil {
		return page, false
	}
	m, managed := gitops.ManagerOf(state.Policy)
	if managed {
		page = views.Managed{UpLabel: of.upLabel, UpURL: of.up, Sentence: m.Message("The cluster policy"), Text: manifest.PolicyYAML(state.Policy)}
		page.Title = of.title
	}
	return page, managed
}

// written returns the policy with the typed values as YAML; empty if they are invalid.
func (f *policyForm) written(state policy.State) string {
	if _, wrong := f.parse(); f.Version == "" || len(wrong) > 0 {
		return ""
	}
	return manifest.PolicyYAML(&v1alpha1.ClusterPolicy{Spec: f.policy(state).Spec})
}
