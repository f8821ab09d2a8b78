package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	policyviews "kuota.dev/kuota/views/policy"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policy returns the saved policy with the typed values. It keeps everything that
// the form does not show.
func (f *policyForm) policy(state policy.State) *v1alpha1.ClusterPolicy {
	wanted := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	if state.Policy != nil {
		wanted = state.Policy.DeepCopy()
	}
	wanted.ResourceVersion = f.Version
	if f.Version == "" {
		wanted.UID = "" // of a policy that was created meanwhile
	}
	wanted.Spec, _ = f.parse()
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
	for i, row := range f.classes {
		if text := row.Fields()[strings.TrimPrefix(id, fmt.Sprintf("class-%d-", i))]; text != nil {
			return *text == ""
		}
	}
	for i, row := range f.pools {
		if text := row.Fields()[strings.TrimPrefix(id, fmt.Sprintf("pool-%d-", i))]; text != nil {
			return *text == ""
		}
	}
	return false
}

// view maps the form to its page.
func (f *policyForm) view(state policy.State, refused *governance.Error) policyviews.PolicyForm {
	wrong := f.wrong(state)
	if refused != nil {
		wrong = append(wrong, f.formPaths(refused.Fields)...)
	}
	errs := inputs.ByField(wrong, policySentence)
	text := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	choice := func(id, value string) policyviews.Choice { return policyviews.Choice{Value: value, Error: errs[id]} }
	view := policyviews.PolicyForm{
		New: f.Version == "", Version: f.Version, Generation: f.Generation, Submitted: f.Submitted, Resumed: f.Resumed, Failure: forms.Failure(refused), Drop: f.drop,
		Restored: forms.RestoredOf(f.Restores), Reason: f.Reason, Imported: f.Imported.View("The cluster policy", f.Version != ""),
		Prioritization: choice("prioritization", f.prioritization),
		CanAddClass:    len(f.classes) < v1alpha1.MaxPriorityClasses, ClassesError: errs["classes"],
		Idle: choice("idle", f.idle), Share: f.share,
		Gang: f.gang, Block: f.block,
		Timeout: text("gang-timeout", f.timeout), Recovery: text("gang-recovery", f.recovery),
		RequeueOrder: choice("requeue-order", f.order),
		RequeueLimit: text("requeue-limit", f.retries), RequeueBase: text("requeue-base", f.backoffBase), RequeueMax: text("requeue-most", f.backoffMost),
		Usage: f.usage, HalfLife: text("usage-half-life", f.halfLife), Interval: text("usage-interval", f.interval), UsageWeights: text("usage-weights", f.usageWeights),
		Currency: text("price-currency", f.currency), Prices: text("prices", f.prices),
		AlertRules: text("alert-rules", f.alertRules), AlertReceivers: text("alert-receivers", f.alertReceivers),
		PreemptionLoops: choice("preemption-loops", f.loops),
		Enforcement:     choice("enforcement", f.enforcement),
		CanAddPool:      len(f.pools) < v1alpha1.MaxPools, PoolsError: errs["pools"],
		Suggestions: poolSuggestions(state.Types),
	}
	if n := state.Tasks[""]; n > 0 {
		view.Classless = "Now: " + format.Tasks(n) + "."
	}
	for i, row := range f.classes {
		id := "class-" + strconv.Itoa(i)
		class := policyviews.PolicyClassRow{
			Name: text(id+"-name", row.name), Weight: text(id+"-weight", row.weight),
			Limit: text(id+"-limit", row.limit), Longest: text(id+"-longest", row.longest),
			Description: text(id+"-description", row.description), Error: errs[id],
		}
		if n := state.Tasks[row.name]; n > 0 && row.name != "" {
			class.Tasks = format.Tasks(n) + " with this class now."
		}
		view.Classes = append(view.Classes, class)
	}
	for i, row := range f.pools {
		id := "pool-" + strconv.Itoa(i)
		view.Pools = append(view.Pools, policyviews.PolicyPoolRow{
			Name: text(id+"-name", row.name), Match: row.match, Value: text(id+"-value", row.value), Error: errs[id],
		})
	}
	if f.Submitted {
		view.Errors = inputs.Summary(wrong, func(string) bool { return true }, policySentence)
	}
	return view
}

// poolNodes returns how many nodes each pool of the form matches now, by its row.
// It omits invalid pools, and all pools if nodes cannot be read.
func (h *Pages) poolNodes(c echo.Context, form policyForm) map[int]string {
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
		return nil
	}
	nodes, err := h.Policy.Nodes(c.Request().Context(), pools)
	if err != nil || len(nodes) != len(pools) {
		return nil
	}
	words := map[int]string{}
	for i, row := range rows {
		words[row] = nodesNow(nodes[i])
	}
	return words
}

func nodesNow(n int64) string {
	if n == 0 {
		return "No node now."
	}
	return format.Count(int(n), "node") + " now."
}

// poolSuggestions returns the values that pools can match the cluster's nodes by.
func poolSuggestions(types catalog.Catalog) policyviews.PoolSuggestions {
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
	return policyviews.PoolSuggestions{Accelerators: sorted(accelerators), Families: sorted(families), Types: sorted(names)}
}

// managedPolicy returns the page in place of the form for a policy that a GitOps tool
// manages.
func managedPolicy(state policy.State) (page views.Managed, managed bool) {
	if state.Policy == nil {
		return page, false
	}
	m, managed := gitops.ManagerOf(state.Policy)
	if managed {
		page = views.Managed{UpLabel: "Policies", UpURL: urls.Policies, Sentence: m.Message("The cluster policy"), Text: manifest.PolicyYAML(state.Policy)}
		page.Title = "Edit cluster policy"
	}
	return page, managed
}

// written returns the typed values as YAML; empty if they are invalid.
func (f *policyForm) written() string {
	spec, wrong := f.parse()
	if f.Version == "" || len(wrong) > 0 {
		return ""
	}
	return manifest.PolicyYAML(&v1alpha1.ClusterPolicy{Spec: spec})
}
