package handlers

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/views"
)

// view maps the form to what its page shows: what was typed, the defaults of
// what was not, and what is wrong. Before a save was tried, only what was typed
// can be wrong; after, also what is missing.
func (f *allocationForm) view(state allocations.State, naming desired.Naming, refused *governance.Error) views.AllocationForm {
	allocation, wrong := f.parse()
	resolvedWrong := f.resolveErrors(allocation, state.Types)
	for _, w := range resolvedWrong {
		if !slices.ContainsFunc(wrong, func(e governance.FieldError) bool { return strings.HasPrefix(e.Path, w.Path) }) {
			wrong = append(wrong, w)
		}
	}
	if f.submitted {
		wrong = append(wrong, f.missing()...)
	} else if problem := quota.CheckTeam(f.team); f.team != "" && problem != "" {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: problem})
	}
	if refused == nil && slices.ContainsFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool {
		return a.Name == f.team && !allocations.MadeBy(&a, f.request)
	}) {
		wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: fmt.Sprintf("team %s has an allocation already; choose another name", f.team)})
	}
	failure := ""
	if refused != nil {
		if len(refused.Fields) == 0 {
			failure = refused.Message
		}
		wrong = append(wrong, f.formPaths(refused.Fields)...)
	}

	errs := byField(wrong)
	field := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	view := views.AllocationForm{
		RequestID: f.request, Submitted: f.submitted, Resumed: f.resumed, Failure: failure,
		Team: field("team", f.team), DisplayName: field("display-name", f.displayName),
		Description: field("description", f.description), Weight: field("weight", f.weight),
		Strategy: f.strategy, StrategyError: errs["strategy"],
		BorrowPercent: field("borrow-percent", f.percent),
		BorrowEnabled: f.strategy != string(v1alpha1.Lend) && f.strategy != string(v1alpha1.DontLend),
		Preemption:    f.preemption, PreemptionError: errs["preemption"],
		CanAddRow: len(f.rows) < quota.MaxRows,
	}
	if quota.CheckTeam(f.team) == "" {
		view.Namespace = naming.Namespace(f.team)
	}
	for i := range f.rows {
		view.Rows = append(view.Rows, f.rowView(i, allocation.Spec.Sharing, state, errs))
	}
	view.InstanceTypes = instanceTypes(state.Types)
	if f.submitted {
		view.Errors = messages(wrong)
	}
	return view
}

// resolveErrors says what the arithmetic has against the form, with paths by
// the form's rows.
func (f *allocationForm) resolveErrors(allocation *v1alpha1.ComputeAllocation, types catalog.Catalog) []governance.FieldError {
	_, wrong := quota.Resolve(&allocation.Spec, types)
	wrong = f.formPaths(wrong)
	if f.submitted {
		return wrong
	}
	// While somebody still types, a row that has no figures, or a type that is
	// half written, is not wrong yet.
	return slices.DeleteFunc(wrong, func(w governance.FieldError) bool {
		match := rowPath.FindStringSubmatch(w.Path)
		if match == nil {
			return false
		}
		i, _ := strconv.Atoi(match[1])
		return !f.rows[i].given() || match[2] == "" && !f.rows[i].complete()
	})
}

// complete tells whether a row has a type and a figure.
func (r formRow) complete() bool { return r.instanceType != "" && r.given() }

var rowPath = regexp.MustCompile(`^spec\.quota\[([0-9]+)\]\.?(.*)$`)

// formPaths turns the row numbers of a spec, which has no empty rows, into
// those of the form.
func (f *allocationForm) formPaths(wrong []governance.FieldError) []governance.FieldError {
	rows := f.specRows()
	renumbered := slices.Clone(wrong)
	for i := range renumbered {
		match := rowPath.FindStringSubmatch(renumbered[i].Path)
		if match == nil {
			continue
		}
		if n, err := strconv.Atoi(match[1]); err == nil && n < len(rows) {
			renumbered[i].Path = strings.TrimSuffix(fmt.Sprintf("spec.quota[%d].%s", rows[n], match[2]), ".")
		}
	}
	return renumbered
}

// rowView is one row with its defaults, and what may be borrowed.
func (f *allocationForm) rowView(i int, sharing v1alpha1.Sharing, state allocations.State, errs map[string]string) views.AllocationFormRow {
	row := f.rows[i]
	id := func(part string) string { return fmt.Sprintf("row-%d-%s", i, part) }
	text := func(part, value string) views.TextField { return views.TextField{Value: value, Error: errs[id(part)]} }
	view := views.AllocationFormRow{
		Index: i, Error: errs[fmt.Sprintf("row-%d", i)],
		Type:         text("type", row.instanceType),
		Instances:    views.AmountField{TextField: text("instances", row.instances)},
		Accelerators: views.AmountField{TextField: text("accelerators", row.accelerators)},
		VCPU:         views.AmountField{TextField: text("vcpu", row.vcpu)},
		Memory:       views.AmountField{TextField: text("memory", row.memory)},
	}
	pool, known := state.Types.Pool(row.instanceType)
	if !known {
		return view
	}
	view.There = there(pool, state.Given)
	parsed, problems := row.parse()
	resolved, wrong := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{parsed}, Sharing: sharing}, state.Types)
	if len(problems) > 0 || len(wrong) > 0 {
		return view
	}
	own := resolved.Pools[0]
	if row.accelerators == "" {
		view.Accelerators.Default = strconv.FormatInt(accelerators(pool.Instance, own.Nominal), 10)
	}
	view.VCPU.Default = row.without("vcpu").amount(state.Types, catalog.CPU)
	view.Memory.Default = row.without("memory").amount(state.Types, catalog.Memory)

	given := allocations.Given{pool.Name: quota.Resources{}}
	given[pool.Name].Add(state.Given[pool.Name])
	given.Add(resolved)
	view.Over = over(given.Over(resolved.Pools, state.Types))
	if errs["borrow-percent"] == "" {
		view.Borrow, view.BorrowNone = borrowing(own, sharing)
	}
	return view
}

// over warns that more is given out than is there: with figures for what
// counts most, and by name for the rest.
func over(excess []allocations.Excess) string {
	if len(excess) == 0 {
		return ""
	}
	first := excess[0]
	text := fmt.Sprintf("With this, %s of %s are given out", quota.Number(first.Resource, first.Given), quota.Amount(first.Resource, first.There))
	var rest []string
	for _, e := range excess[1:] {
		rest = append(rest, resourceName(e.Resource))
	}
	if len(rest) > 0 {
		text += ", and more " + strings.Join(rest, " and ") + " than is there"
	}
	return text + ". Tasks beyond that wait."
}

// resourceName is what people call a resource, without a figure.
func resourceName(resource string) string {
	if resource == catalog.Memory {
		return "memory"
	}
	return quota.Unit(resource, 2)
}

// without is the row as it would be with one input empty.
func (r formRow) without(part string) formRow {
	*r.fields()[part] = ""
	return r
}

// amount is what a row comes to in one resource; empty when it comes to nothing.
func (r formRow) amount(types catalog.Catalog, resource string) string {
	row, problems := r.parse()
	resolved, wrong := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{row}}, types)
	if len(problems) > 0 || len(wrong) > 0 {
		return ""
	}
	return quota.Number(resource, resolved.Pools[0].Nominal[resource])
}

func accelerators(instance catalog.Instance, resources quota.Resources) int64 {
	if instance.AcceleratorResource == "" {
		return 0
	}
	return resources[instance.AcceleratorResource]
}

// there says what the cluster has of a pool, such as
// "16 GPUs (H100) there · 12 given to others".
func there(pool catalog.Pool, given allocations.Given) string {
	if pool.Nodes == 0 {
		return "None there today"
	}
	resource := pool.Instance.AcceleratorResource
	if resource == "" {
		resource = catalog.CPU
	}
	text := countOf(int(pool.Nodes), "instance") + " there: " + quota.Amount(resource, pool.There[resource])
	if pool.Instance.AcceleratorModel != "" {
		text += " (" + pool.Instance.AcceleratorModel + ")"
	}
	if n := given[pool.Name][resource]; n > 0 {
		text += " · " + quota.Number(resource, n) + " given to others"
	}
	return text
}

// borrowing says what may be borrowed in a pool, and where that comes to none.
func borrowing(own quota.Pool, sharing v1alpha1.Sharing) (text, none string) {
	if sharing.Strategy != v1alpha1.LendAndBorrow {
		return "", ""
	}
	percent := int32(v1alpha1.DefaultBorrowLimitPercent)
	if sharing.BorrowLimitPercent != nil {
		percent = *sharing.BorrowLimitPercent
	}
	if percent == 0 {
		return "Borrows nothing", ""
	}
	var zero []string
	for _, name := range own.Nominal.Names() {
		if own.Nominal[name] > 0 && own.Limit[name] == 0 {
			zero = append(zero, quota.Amount(name, own.Nominal[name]))
		}
	}
	if limit := amounts(own.Limit); limit != "" {
		text = "Borrows up to " + limit
	}
	if len(zero) > 0 {
		none = fmt.Sprintf("%d %% of %s is none: a task cannot borrow any.", percent, strings.Join(zero, ", "))
	}
	return text, none
}

// instanceTypes suggests types, those that nodes have first.
func instanceTypes(types catalog.Catalog) []views.InstanceTypeOption {
	var options []views.InstanceTypeOption
	listed := map[string]bool{}
	for _, pool := range types.Pools() {
		listed[pool.Name] = true
		options = append(options, views.InstanceTypeOption{Name: pool.Name, Label: typeLabel(pool.Instance) + " · " + countOf(int(pool.Nodes), "node") + " here"})
	}
	for _, name := range catalog.KnownTypes() {
		if instance, _ := catalog.Known(name); !listed[name] {
			options = append(options, views.InstanceTypeOption{Name: name, Label: typeLabel(instance)})
		}
	}
	return options
}

func typeLabel(instance catalog.Instance) string {
	label := amounts(quota.Whole(instance))
	if instance.AcceleratorModel != "" {
		label = instance.AcceleratorModel + " · " + label
	}
	return label
}
