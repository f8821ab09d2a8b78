package allocations

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
)

// rowViews maps the rows of a form to its page.
type rowViews struct {
	form   *allocationForm
	state  allocations.State
	types  catalog.Catalog     // with the form's new pools
	others quota.PoolResources // nominal quota of all other teams
	errs   map[string]string   // by input
	// ofDepartment is the quota of the department that is chosen, and left what others leave
	// of it.
	ofDepartment, left quota.PoolResources
}

// quota maps one row of quota: typed values, defaults and what can be borrowed.
func (v rowViews) quota(i int) allocationviews.AllocationFormRow {
	row := v.form.rows[i]
	view, pool, known := v.row(fmt.Sprintf("row-%d", i), i, row)
	if !known {
		return view
	}
	view.Capacity = v.capacity(pool, v.others)
	if model := pool.Instance.AcceleratorModel; model != "" && !view.Offered && pool.Nodes > 0 {
		view.Capacity = model + " · " + view.Capacity
	}
	view.Title = cmp.Or(pool.Instance.AcceleratorModel, row.instanceType)
	sharing := v.sharing(pool)
	own, ok := v.resolve(row, sharing)
	if !ok {
		return view
	}
	allocated := quota.PoolResources{own.Name: quota.Resources{}}
	allocated[own.Name].Add(v.others[own.Name])
	resolved := quota.Resolved{Pools: []quota.FlavorQuotas{own}}
	allocated.AddNominal(resolved)
	view.Over = noPartitions(row, pool)
	if more, far := over(allocated.Exceeding(resolved.Pools, v.types), row.profile); more != "" {
		view.Over, view.FarOver = strings.TrimSpace(view.Over+" "+more), far
	}
	if v.errs["borrow-percent"] == "" {
		view.Borrow, view.BorrowNone = borrowing(own, sharing)
	}
	return view
}

// limit maps one borrow limit with its defaults.
func (v rowViews) limit(i int) allocationviews.AllocationFormRow {
	row := v.form.limits[i]
	view, pool, known := v.row(fmt.Sprintf("limit-%d", i), i, row)
	view.Limit = true
	if !known {
		return view
	}
	view.Capacity = v.capacity(pool, nil)
	if _, ok := v.resolve(row, v1alpha1.Sharing{}); ok {
		view.Over = noPartitions(row, pool)
	}
	view.Borrow = "The team has no quota in this pool: it can only borrow."
	for _, own := range v.form.rows {
		if p, ok := find(own.instanceType, v.types); ok && p.Name == pool.Name && !own.empty() {
			view.Borrow = "Replaces the percentage, on top of the team's own quota."
		}
	}
	return view
}

// row maps the parts that both kinds of rows have.
func (v rowViews) row(id string, i int, row formRow) (view allocationviews.AllocationFormRow, pool catalog.Pool, known bool) {
	text := func(part, value string) views.TextField {
		return views.TextField{Value: value, Error: v.errs[id+"-"+part]}
	}
	view = allocationviews.AllocationFormRow{
		Index: i, Error: v.errs[id], Offered: row.offered != "", Title: row.instanceType,
		Type:         text("type", row.instanceType),
		Instances:    views.AmountField{TextField: text("instances", row.instances)},
		Accelerators: views.AmountField{TextField: text("accelerators", row.accelerators)},
		VCPU:         views.AmountField{TextField: text("vcpu", row.vcpu)},
		Memory:       views.AmountField{TextField: text("memory", row.memory)},
		Profile:      text("profile", row.profile), Count: text("count", row.count),
	}
	view.OthersError = v.errs[id+"-others"]
	if _, ok := row.exactMemory(); ok {
		view.Exact = row.exact
	}
	if suggested, ok := v.form.suggest(row.instanceType, v.types); ok {
		view.Suggestion = newPoolView(suggested, v.types.With((&allocationForm{pools: []formPool{suggested}}).newPools()...))
		view.Suggestion.Text = format.Capitalize(view.Suggestion.Text)
	}
	pool, known = find(row.instanceType, v.types)
	view.Others = others(row, pool)
	if !known {
		return view, pool, false
	}
	view.Partitions = pool.Instance.Partitions
	if resource := pool.Instance.AcceleratorResource; resource != "" {
		view.AcceleratorUnit = quota.Unit(resource, 2)
	} else {
		view.NoAccelerators = row.offered != "" && row.accelerators == ""
	}
	own, ok := v.resolve(row, v1alpha1.Sharing{})
	if !ok {
		return view, pool, true
	}
	if row.accelerators == "" {
		view.Accelerators.Default = quota.Number(pool.Instance.AcceleratorResource, accelerators(pool.Instance, own.Nominal))
	}
	view.VCPU.Default = v.amount(row, "vcpu", catalog.CPU)
	view.Memory.Default = v.amount(row, "memory", catalog.Memory)
	view.Rest = cmp.Or(row.vcpu, view.VCPU.Default) + " vCPU · " + cmp.Or(row.memory, view.Memory.Default) + " GiB"
	return view, pool, true
}

// others returns the inputs of the resources that the policy lists, and of those that the row
// has. The accelerators of its pool are entered as such.
func others(row formRow, pool catalog.Pool) (inputs []allocationviews.ResourceField) {
	set, _ := url.ParseQuery(row.others)
	names := slices.Collect(maps.Keys(set))
	for _, listed := range resources.AllListed() {
		if listed.Name != pool.Instance.AcceleratorResource && !set.Has(listed.Name) {
			names = append(names, listed.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		inputs = append(inputs, allocationviews.ResourceField{Name: name, Label: format.ResourceLabel(name), Unit: quota.Unit(name, 2), Amount: set.Get(name)})
	}
	return inputs
}

// resolve returns the quota of one row alone.
func (v rowViews) resolve(row formRow, sharing v1alpha1.Sharing) (quota.FlavorQuotas, bool) {
	parsed, problems := v.form.parseRow(row, v.types)
	if len(problems) > 0 {
		return quota.FlavorQuotas{}, false
	}
	resolved, wrong := quota.Resolve(&v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{parsed}, Sharing: sharing}, v.types)
	if len(wrong) > 0 {
		return quota.FlavorQuotas{}, false
	}
	return resolved.Pools[0], true
}

// amount returns the default of one input: the quota of the row with that input
// empty.
func (v rowViews) amount(row formRow, part, resource string) string {
	*row.Fields()[part] = ""
	own, ok := v.resolve(row, v1alpha1.Sharing{})
	if !ok {
		return ""
	}
	return quota.Number(resource, own.Nominal[resource])
}

// sharing returns the sharing of one pool. It ignores errors in the limits of other
// pools.
func (v rowViews) sharing(pool catalog.Pool) v1alpha1.Sharing {
	sharing := v.form.parseSharing(v.types, &governance.FieldErrors{})
	sharing.BorrowLimits = nil
	if sharing.Strategy != v1alpha1.LendAndBorrow {
		return sharing
	}
	for _, row := range v.form.limits {
		if p, ok := find(row.instanceType, v.types); !ok || p.Name != pool.Name {
			continue
		}
		if _, ok := v.resolve(row, v1alpha1.Sharing{}); ok {
			parsed, _ := v.form.parseRow(row, v.types)
			sharing.BorrowLimits = []v1alpha1.QuotaRow{parsed}
		}
	}
	return sharing
}

// noPartitions warns that no node has the GPU partitions of a row.
func noPartitions(row formRow, pool catalog.Pool) string {
	if row.profile == "" || pool.Physical[quota.PartitionResource(row.profile)] > 0 {
		return ""
	}
	return fmt.Sprintf("No node has %s partitions now; tasks that request them wait until one has.", row.profile)
}

// over warns that teams would be allocated more than the capacity: with figures for
// the first resource, by name for the rest. It skips partitions that noPartitions
// warns of. far reports whether it is farOver times the capacity or more.
func over(excess []quota.Excess, profile string) (text string, far bool) {
	excess = slices.DeleteFunc(excess, func(e quota.Excess) bool {
		return profile != "" && e.Resource == quota.PartitionResource(profile) && e.Physical == 0
	})
	if len(excess) == 0 {
		return "", false
	}
	first := excess[0]
	if times := factor(first.Allocated, first.Physical); times != "" {
		text, far = fmt.Sprintf("Over capacity: teams would be allocated %s the %s of this pool", times, quota.Amount(first.Resource, first.Physical)), true
	} else if first.Physical == 0 {
		text = fmt.Sprintf("Over capacity: the cluster has no %s of this pool now", resourceName(first.Resource))
	} else {
		text = fmt.Sprintf("Over capacity: teams would be allocated %s of %s", quota.Grouped(first.Resource, first.Allocated), quota.Amount(first.Resource, first.Physical))
	}
	var rest []string
	for _, e := range excess[1:] {
		rest = append(rest, resourceName(e.Resource))
	}
	if len(rest) > 0 {
		text += ", and more " + strings.Join(rest, " and ") + " than it has"
	}
	return text + ". Tasks beyond that wait.", far
}

// farOver is the multiple of the capacity from which a pool counts as far over it.
const farOver = 2

// factor returns amount as a multiple of capacity, such as "62,500 times"; empty
// below farOver, and for no capacity.
func factor(amount, capacity resources.Amount) string {
	if capacity <= 0 || amount/capacity < farOver {
		return ""
	}
	return format.Thousands(amount.Per(capacity)) + " times"
}

// resourceName returns the display name of a resource.
func resourceName(resource string) string {
	if resource == catalog.Memory {
		return "memory"
	}
	return quota.Unit(resource, 2)
}

func accelerators(instance catalog.Instance, of quota.Resources) resources.Amount {
	if instance.AcceleratorResource == "" {
		return 0
	}
	return of[instance.AcceleratorResource]
}

// capacity describes the capacity of a pool, which may be a new one.
func (v rowViews) capacity(pool catalog.Pool, allocated quota.PoolResources) string {
	whose := ""
	if v.form.edits != nil {
		whose = " to other teams"
	}
	if v.form.kind == ofDepartment {
		whose = " to others"
	}
	if of := v.form.tree.Tree.Find(v.form.typed["department"]); of != nil {
		resource := cmp.Or(pool.Instance.AcceleratorResource, catalog.CPU)
		whose := fmt.Sprintf(" · %s of %s left in %s", quota.Grouped(resource, v.left[pool.Name][resource]), quota.Grouped(resource, v.ofDepartment[pool.Name][resource]), quota.Title(of))
		return poolCapacity(pool, nil, "") + whose
	}
	text := poolCapacity(pool, allocated, whose)
	if slices.ContainsFunc(v.form.pools, func(p formPool) bool { return p.name == pool.Name }) {
		return "New pool, created when you save · " + text
	}
	return text
}

// poolCapacity describes the capacity of a pool, such as "2 instances · 16 GPUs, 4 not
// allocated"; whose names the other teams that it is allocated to. Without allocated
// quota, it leaves that out.
func poolCapacity(pool catalog.Pool, allocated quota.PoolResources, whose string) string {
	if pool.Nodes == 0 {
		return "The cluster has none today"
	}
	resource := pool.Instance.AcceleratorResource
	if resource == "" {
		resource = catalog.CPU
	}
	noun := "instance"
	if pool.Grouped {
		noun = "node"
	}
	text := format.Count(int(pool.Nodes), noun) + " · " + quota.Amount(resource, pool.Physical[resource])
	if allocated != nil {
		text += ", " + quota.Grouped(resource, max(0, pool.Physical[resource].Minus(allocated[pool.Name][resource]))) + " not allocated" + whose
	}
	if pool.Named && len(pool.Types) > 0 {
		text += " · " + strings.Join(pool.Types, ", ")
	}
	return text
}

// borrowing describes what can be borrowed in a pool; none names resources whose
// limit rounds down to 0.
func borrowing(own quota.FlavorQuotas, sharing v1alpha1.Sharing) (text, none string) {
	if sharing.Strategy != v1alpha1.LendAndBorrow {
		return "", ""
	}
	if own.BorrowingLimit == nil {
		return "Can borrow everything idle", ""
	}
	if len(sharing.BorrowLimits) > 0 {
		return "Can borrow up to " + orNothing(format.Amounts(own.BorrowingLimit)) + ", as limited below", ""
	}
	percent := int32(v1alpha1.DefaultBorrowLimitPercent)
	if sharing.BorrowLimitPercent != nil {
		percent = *sharing.BorrowLimitPercent
	}
	if percent == 0 {
		return "Cannot borrow", ""
	}
	var zero []string
	for _, name := range own.Nominal.Names() {
		if own.Nominal[name] > 0 && own.BorrowingLimit[name] == 0 {
			zero = append(zero, quota.Amount(name, own.Nominal[name]))
		}
	}
	if limit := format.Amounts(own.BorrowingLimit); limit != "" {
		text = "Can borrow up to " + limit
	}
	if len(zero) > 0 {
		none = fmt.Sprintf("%d %% of %s rounds down to 0: a task cannot borrow any.", percent, strings.Join(zero, ", "))
	}
	return text, none
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
