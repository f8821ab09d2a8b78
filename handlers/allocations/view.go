package allocations

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/gitops"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/spec/schema"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view maps the form to its page: typed values, defaults of empty inputs, errors, and what
// saving does. Missing values are errors only after a review or a save was tried. It returns
// the allocation too.
func (f *allocationForm) view(state allocations.State, seen map[string]bool, naming desired.Naming, refused *governance.Error) (allocationviews.AllocationForm, *v1alpha1.ComputeAllocation) {
	types := state.Types.With(f.newPools()...)
	wanted, wrong := f.wrong(state, types, refused == nil)
	effect := f.effect(wanted, wrong, types)
	if refused != nil {
		wrong = append(wrong, f.formPaths(refused.Fields)...)
	}
	f.offerPools(wrong, types)

	errs := f.kind.inputs().ByField(wrong, format.Sentence)
	field := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	view := allocationviews.AllocationForm{
		Fields: map[string]views.TextField{}, RequestID: f.request, Submitted: f.Submitted, Resumed: f.Resumed, Restored: forms.RestoredOf(f.Restores), Reason: f.Reason, Failure: forms.Failure(refused),
		Effect:       effect,
		Imported:     f.Imported.View("Team "+f.team, f.edits != nil),
		OfDepartment: f.kind == ofDepartment, Department: f.departmentMenu(errs["department"]), DepartmentNote: f.afterWords(wanted, types),
		Edit: f.edits != nil, Version: f.Version, Generation: f.Generation,
		Team:         field("team", f.team),
		CanAddMember: len(f.members) < f.kind.mostMembers(), MembersError: errs["add-member"],
		CanAddRow: len(f.rows) < maxPostedRows && len(slices.DeleteFunc(slices.Clone(f.rows), formRow.onlyOffered)) < v1alpha1.MaxQuotaRows, CanAddLimit: len(f.limits) < v1alpha1.MaxQuotaRows,
		Strategy: f.strategy, StrategyError: errs["strategy"],
		BorrowPercent: field("borrow-percent", f.percent), Unlimited: f.unlimited,
		BorrowEnabled:  f.strategy != string(v1alpha1.Lend) && f.strategy != string(v1alpha1.DontLend),
		PreemptionNote: preemptionNote(state),
		DefaultClass:   classChoice(state.Policy, errs["default-class"], f.typed["default-class"]),
		InstanceTypes:  instanceTypes(state.Types),
		Shares:         f.shareRows(state.Policy, errs), CanAddShare: len(f.shares) < v1alpha1.MaxShares, SharesError: errs["add-share"],
		Windows: f.windowRows(errs), CanAddWindow: len(f.windows) < v1alpha1.MaxWindows, WindowsError: errs["add-window"], Budget: f.budgetView(errs, currencyOf(state.Policy)),
		NoShares: f.edits != nil && f.edits.allocation.Spec.Adopted(),
		Batch:    f.batch, BatchNotes: f.batchNotes(state.Policy),
		UsageCounts: state.Policy != nil && state.Policy.Spec.AdmissionFairSharing != nil,
	}
	for _, one := range fields {
		switch {
		case !f.kind.has(one):
		case one.option():
			view.Options = append(view.Options, allocationviews.OptionField{ID: one.ID, Label: one.Label, Hint: one.hint, Checked: f.typed[one.ID] == "true", Error: errs[one.ID]})
		case one.read != nil:
			view.Fields[one.ID] = field(one.ID, f.typed[one.ID])
		}
	}
	view.WeightNote = f.weightNote(state)
	view.NewNamespace = f.teamNamespace(naming)
	known := knownMembers(state, seen)
	for _, d := range f.tree.Departments {
		for _, m := range d.Spec.Members {
			known[m.Name] = known[m.Name] || f.tree.Sees(d.Name)
		}
	}
	maps.DeleteFunc(known, func(_ string, is bool) bool { return !is })
	view.KnownMembers = slices.Sorted(maps.Keys(known))
	named := false
	for i, m := range f.members {
		row := allocationviews.MemberField{Index: i, Kind: m.kind, Admin: m.role == string(v1alpha1.DepartmentAdmin), Name: field(fmt.Sprintf("member-%d-name", i), m.name)}
		if named = named || m.name != ""; m.name != "" && !known[m.name] && row.Name.Error == "" {
			row.Note = "Not seen before. Check the spelling, and the prefix that sign-in adds."
		}
		view.Members = append(view.Members, row)
	}
	if !named && f.team != "" && f.kind == ofTeam {
		view.MembersNote = "Without members, nobody but cluster admins sees the team or submits its tasks."
	}
	rows := rowViews{form: f, state: state, types: types, others: f.others(state, types), errs: errs}
	if of := f.typed["department"]; f.tree.Tree.Find(of) != nil {
		rows.ofDepartment, rows.left = f.tree.Tree.Quota(of), f.left(of)
	}
	for i := range f.rows {
		view.Rows = append(view.Rows, rows.quota(i))
	}
	for i := range f.limits {
		view.Limits = append(view.Limits, rows.limit(i))
	}
	view.More, view.MoreOpen = f.moreWords(view.WeightNote != ""), f.more || slices.ContainsFunc(slices.Collect(maps.Keys(errs)), inMore)
	for _, p := range f.pools {
		view.NewPools = append(view.NewPools, newPoolView(p, types))
	}
	if f.Submitted {
		view.Errors = f.kind.inputs().Summary(wrong, func(id string) bool { return shown(view, id) }, func(message string) string { return message })
		f.namePools(view.Errors)
	}
	return view, wanted
}

// knownMembers adds the names of members of teams to those that were seen.
func knownMembers(state allocations.State, known map[string]bool) map[string]bool {
	for i := range state.Allocations {
		for _, m := range state.Allocations[i].Spec.Members {
			known[m.Name] = true
		}
	}
	return known
}

// namePools replaces the numbers of rows in labels by their pools, where the page shows no
// numbers.
func (f *allocationForm) namePools(errors []views.Message) {
	for i := range errors {
		list, rest, _ := strings.Cut(errors[i].Field, "-")
		number, _, _ := strings.Cut(rest, "-")
		if row := f.row(list + "-" + number); list == "row" && row != nil && row.offered != "" {
			_, input, _ := strings.Cut(errors[i].Label, ",")
			errors[i].Label = strings.TrimSuffix(row.instanceType+","+input, ",")
		}
	}
}

// inMore reports whether an input is under More settings.
func inMore(id string) bool {
	switch kind, _, _ := strings.Cut(id, "-"); kind {
	case "team", "department", "member", "row", "strategy", "preemption":
		return false
	}
	return id != "borrow-percent" && id != "add-member" && id != "add-row"
}

// moreWords names what is set under More settings; empty for nothing. others reports whether
// other teams have weights.
func (f *allocationForm) moreWords(others bool) string {
	var set []string
	add := func(is bool, words string) {
		if is {
			set = append(set, words)
		}
	}
	count := func(n int, of string) { add(n > 0, format.Count(n, of)) }
	add(f.typed["display-name"] != "", "display name")
	add(f.typed["description"] != "", "description")
	add(f.edits == nil && f.typed["namespace"] != "", "namespace")
	add(f.typed["activation"] == string(v1alpha1.Hold), "on hold")
	add(f.typed["activation"] == string(v1alpha1.Drain), "drained")
	add(others, "weight 0, less than other teams")
	add(f.typed["weight"] != "" && f.typed["weight"] != "0", "weight "+f.typed["weight"])
	count(len(forms.Filled(f.limits, formRow.empty)), "absolute limit")
	count(len(forms.Filled(f.shares, formShare.empty)), "share")
	count(len(forms.Filled(f.windows, formWindow.empty)), "window")
	add(f.budget.amount != "", "budget")
	for _, one := range fields {
		add(one.option() && f.typed[one.ID] == "true", strings.ToLower(one.Label))
	}
	return strings.Join(set, ", ")
}

// weightNote warns of weight 0 where other teams have more. Weights have no effect
// if idle compute is first come, first served.
func (f *allocationForm) weightNote(state allocations.State) string {
	if f.kind == ofDepartment {
		return ""
	}
	if weight, err := strconv.Atoi(cmp.Or(f.typed["weight"], "0")); err != nil || weight != 0 {
		return ""
	}
	if state.Policy != nil && state.Policy.Spec.IdleCompute.Strategy == v1alpha1.IdleFirstComeFirstServe {
		return ""
	}
	least, most := int32(math.MaxInt32), int32(0)
	for _, a := range state.Allocations {
		if a.Name != f.team && a.Spec.FairShareWeight > 0 {
			least, most = min(least, a.Spec.FairShareWeight), max(most, a.Spec.FairShareWeight)
		}
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return fmt.Sprintf("Other teams have weight %d: with 0, this team borrows only what they leave.", most)
	}
	return fmt.Sprintf("Other teams have weights from %d to %d: with 0, this team borrows only what they leave.", least, most)
}

// shown reports whether an input is on the page.
func shown(view allocationviews.AllocationForm, id string) bool {
	switch id {
	case "team", "namespace":
		return !view.Edit
	case "department":
		return len(view.Department.Options) > 0
	case "activation":
		return view.Edit || view.Fields["activation"].Value != ""
	case "add-row":
		return view.CanAddRow
	case "add-limit":
		return view.CanAddLimit
	case "add-member":
		return view.CanAddMember
	case "add-share":
		return view.CanAddShare && !view.NoShares
	case "add-window":
		return view.CanAddWindow
	}
	return true
}

// teamNamespace returns the namespace of the team; empty while its name is invalid.
func (f *allocationForm) teamNamespace(naming desired.Naming) string {
	switch {
	case f.edits != nil && f.typed["namespace"] != "":
		return f.typed["namespace"]
	case f.edits == nil && quota.CheckTeamName(f.team) != "", f.kind == ofDepartment:
		return ""
	}
	return naming.Namespace(f.team)
}

// wrong returns the allocation, and the errors of the typed values, with paths by the rows of
// the form. With taken, a team name that is in use is one of them.
func (f *allocationForm) wrong(state allocations.State, types catalog.Catalog, taken bool) (allocation *v1alpha1.ComputeAllocation, wrong []governance.FieldError) {
	allocation, wrong = f.parse(types)
	for _, w := range f.resolveErrors(allocation, types) {
		if !slices.ContainsFunc(wrong, func(e governance.FieldError) bool { return strings.HasPrefix(e.Path, w.Path) }) {
			wrong = append(wrong, w)
		}
	}
	if f.Submitted {
		wrong = append(wrong, f.missing()...)
	} else if problem := f.checkName(); f.team != "" && problem != "" {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: problem})
	}
	if taken && f.edits == nil && f.kind == ofDepartment && f.tree.Tree.Find(f.team) != nil && !allocations.CreatedBy(f.tree.Tree.Find(f.team), f.request) {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("department %s exists already; choose another name", f.team)})
	}
	if taken && f.edits == nil && f.kind == ofTeam && slices.ContainsFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool {
		return a.Name == f.team && !allocations.CreatedBy(&a, f.request)
	}) {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("team %s has an allocation already; choose another name", f.team)})
	}
	if len(wrong) > 0 {
		return allocation, wrong
	}
	return allocation, f.formPaths(f.refused(state, allocation, types))
}

// byCRD returns what the CRD rejects, but for what missing and windowErrors report: values
// that are empty, and windows that are not complete yet.
func (f *allocationForm) byCRD(allocation *v1alpha1.ComputeAllocation) []governance.FieldError {
	skipped := map[string]bool{"metadata.name": true}
	wrong := f.validate(allocation)
	for _, e := range wrong {
		skipped[e.Path] = skipped[e.Path] || e.Message == schema.Empty || !f.Submitted && strings.HasPrefix(e.Path, windowsPath) && !strings.HasSuffix(e.Path, ".name")
	}
	return slices.DeleteFunc(wrong, func(e governance.FieldError) bool { return skipped[e.Path] })
}

// resolveErrors returns the errors of resolving the quota and of the CRD, with paths by
// the rows of the form.
func (f *allocationForm) resolveErrors(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog) []governance.FieldError {
	_, wrong := quota.Resolve(&allocation.Spec, types)
	wrong = f.formPaths(append(wrong, f.byCRD(allocation)...))
	if f.Submitted {
		return wrong
	}
	// Before a save was tried, a row without figures, and an incomplete type or one
	// that a pool can be created from, are no errors.
	return slices.DeleteFunc(wrong, func(w governance.FieldError) bool {
		list, i, field, ok := forms.SplitRowPath(w.Path)
		if !ok || list == "spec.members" || list == sharesPath || list == windowsPath {
			return false
		}
		row := f.rowAt(list, i)
		if row == nil || !row.hasAmounts() || field == "" && !row.complete() {
			return true
		}
		_, offered := f.suggest(row.instanceType, types)
		return offered
	})
}

// formPaths replaces the rows of the spec in paths by the rows of the form.
func (f *allocationForm) formPaths(wrong []governance.FieldError) []governance.FieldError {
	return forms.Renumber(wrong, map[string][]int{
		quotaPath:      forms.Filled(f.rows, formRow.empty),
		limitsPath:     forms.Filled(f.limits, formRow.empty),
		sharesPath:     forms.Filled(f.shares, formShare.empty),
		windowsPath:    forms.Filled(f.windows, formWindow.empty),
		"spec.members": forms.Filled(f.members, formMember.empty),
	})
}

// others returns the nominal quota of all teams but the team of the form.
func (f *allocationForm) others(state allocations.State, types catalog.Catalog) quota.PoolResources {
	switch {
	case f.kind == ofDepartment:
		return f.tree.Tree.Taken("", "", f.team)
	case f.tree.Tree.Len() > 0 && f.typed["department"] == "":
		return f.tree.Tree.Taken("", f.team, "")
	case f.edits == nil || !state.All:
		return state.Allocated
	}
	return quota.Allocated(state.Allocations, types, f.team)
}

// instanceTypes returns the suggestions for a row: the policy's pools, then the
// instance types of nodes, then all other known types.
func instanceTypes(types catalog.Catalog) []allocationviews.InstanceTypeOption {
	var named, present, rest []allocationviews.InstanceTypeOption
	listed := map[string]bool{}
	for _, pool := range types.Pools() {
		option := allocationviews.InstanceTypeOption{Name: pool.Name, Label: typeLabel(pool.Instance) + " · " + format.Count(int(pool.Nodes), "node") + " here"}
		switch {
		case pool.Named:
			option.Label = "Pool of " + format.Count(int(pool.Nodes), "node")
			if pool.Nodes > 0 {
				option.Label += ": " + strings.Join(pool.Types, ", ")
			}
			named = append(named, option)
		case len(pool.Types) == 1:
			option.Name = pool.Types[0]
			listed[option.Name] = true
			present = append(present, option)
		}
	}
	for _, name := range catalog.KnownTypes() {
		if instance, _ := catalog.Known(name); !listed[name] {
			rest = append(rest, allocationviews.InstanceTypeOption{Name: name, Label: typeLabel(instance)})
		}
	}
	return slices.Concat(named, present, rest)
}

func typeLabel(instance catalog.Instance) string {
	label := format.Amounts(quota.WholeInstance(instance))
	if instance.AcceleratorModel != "" {
		label = instance.AcceleratorModel + " · " + label
	}
	return label
}

// preemptionNote returns a note if preemption within a team has no effect.
func preemptionNote(state allocations.State) string {
	if p := state.Policy; p == nil || p.Spec.TaskPrioritization == v1alpha1.TaskRanking {
		return ""
	}
	return "The cluster policy says first come, first served: tasks have no ranks, so nothing is preempted within a team, whatever is chosen here. The choice is kept for when the policy ranks tasks."
}

// manager is who changes an allocation instead of its pages.
type manager struct {
	short    string // such as "Managed by Flux"
	sentence string // and where to change it
}

// managerOf returns the manager of an allocation that its pages show and do not change:
// a GitOps tool manages it, or Kuota only observes its ClusterQueue.
func managerOf(a *v1alpha1.ComputeAllocation) (manager, bool) {
	if m, ok := gitops.ManagerOf(a); ok {
		return manager{"Managed by " + m.String(), m.Message("Team " + a.Name)}, true
	}
	if !a.Spec.Observed() {
		return manager{}, false
	}
	sentence := fmt.Sprintf("Kuota shows ClusterQueue %s and does not change it", a.Spec.ClusterQueueName)
	if ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		sentence = ready.Message // with the reason
	}
	return manager{"Observed", fmt.Sprintf("%s. To remove the team from Kuota and keep its queue, run kuota release %s.", sentence, a.Name)}, true
}

// managedAllocation returns the page in place of a form for an allocation that its
// pages do not change.
func managedAllocation(m manager, a *v1alpha1.ComputeAllocation, title string) views.Managed {
	page := views.Managed{UpLabel: a.Name, UpURL: urls.Allocation(a.Name), Sentence: m.sentence, Text: manifest.AllocationYAML(a)}
	page.Title = title
	return page
}

// written returns the typed values as YAML; empty if they are invalid.
func (f *allocationForm) written(types catalog.Catalog) string {
	if f.Version == "" {
		return "" // nothing was typed
	}
	wanted, wrong := f.parse(types.With(f.newPools()...))
	if len(wrong) > 0 {
		return ""
	}
	return manifest.AllocationYAML(wanted)
}
