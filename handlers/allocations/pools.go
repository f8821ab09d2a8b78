package allocations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/views"
)

// The ways that a form makes a pool.
const (
	byAccelerator = "accelerator"
	byFamily      = "instanceFamily"
)

// isPool tells whether a row names a pool rather than an instance type.
func (f *allocationForm) isPool(name string, types catalog.Catalog) bool {
	if slices.ContainsFunc(f.pools, func(p formPool) bool { return p.name == name }) {
		return true
	}
	if _, named := types.Named(name); named {
		return true
	}
	return f.edits != nil && f.edits.namesPool(name) || f.earlier != nil && f.earlier.namesPool(name)
}

// namesPool tells whether the allocation names it as a pool, perhaps one that
// is gone from the policy by now.
func (e *edited) namesPool(name string) bool {
	named := func(row v1alpha1.QuotaRow) bool { return row.Pool == name && name != "" }
	return slices.ContainsFunc(e.allocation.Spec.Quota, named) || slices.ContainsFunc(e.allocation.Spec.Sharing.BorrowLimits, named)
}

// find is the pool that a row's first input names.
func find(name string, types catalog.Catalog) (catalog.Pool, bool) {
	if pool, ok := types.Named(name); ok {
		return pool, true
	}
	return types.Pool(name)
}

// newPools are the pools to be made with the allocation.
func (f *allocationForm) newPools() []v1alpha1.Pool {
	var pools []v1alpha1.Pool
	for _, p := range f.pools {
		pool := v1alpha1.Pool{Name: p.name, Match: v1alpha1.PoolMatch{Accelerator: p.value}}
		if p.kind == byFamily {
			pool.Match = v1alpha1.PoolMatch{InstanceFamily: p.value}
		}
		pools = append(pools, pool)
	}
	return pools
}

// dropPools forgets pools that no row names, and what nobody could have asked
// for.
func (f *allocationForm) dropPools() {
	named := func(name string) bool {
		is := func(r formRow) bool { return r.instanceType == name }
		return slices.ContainsFunc(f.rows, is) || slices.ContainsFunc(f.limits, is)
	}
	var kept []formPool
	for _, p := range f.pools {
		twice := slices.ContainsFunc(kept, func(k formPool) bool { return k.name == p.name })
		if !twice && named(p.name) && p.name != "" && p.value != "" && (p.kind == byAccelerator || p.kind == byFamily) {
			kept = append(kept, p)
		}
	}
	f.pools = kept
}

// makePool turns a row that names hardware or a family into one of the pool of
// it, which is made with the allocation.
func (f *allocationForm) makePool(row *formRow, types catalog.Catalog) {
	pool, ok := f.suggest(row.instanceType, types)
	if !ok {
		return
	}
	row.instanceType = pool.name
	f.pools = append(f.pools, pool)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// suggest is the pool that what was typed could become: of a family such as
// ml.g5, or of hardware such as H100. What is a type or a pool already becomes
// nothing.
func (f *allocationForm) suggest(typed string, types catalog.Catalog) (formPool, bool) {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(typed), "-"), "-")
	if _, known := types.Pool(typed); known || name == "" || len(name) > 40 || f.isPool(typed, types) || f.isPool(name, types) {
		return formPool{}, false
	}
	for _, instance := range knownInstances(types) {
		switch {
		case strings.EqualFold(instance.AcceleratorModel, typed):
			return formPool{name, byAccelerator, instance.AcceleratorModel}, true
		case strings.HasPrefix(strings.ToLower(instance.Type), strings.ToLower(typed)+".") && strings.Count(instance.Type, ".") == strings.Count(typed, ".")+1:
			return formPool{name, byFamily, instance.Type[:len(typed)]}, true
		}
	}
	return formPool{}, false
}

// offerPools has what is wrong with hardware or a family where a type belongs
// lead to the button of its row that makes a pool of it.
func (f *allocationForm) offerPools(wrong []governance.FieldError, types catalog.Catalog) {
	for i, w := range wrong {
		list, number, field, _ := forms.SplitRowPath(w.Path)
		row := f.rowAt(list, number)
		if row == nil || field != "instanceType" {
			continue
		}
		pool, ok := f.suggest(row.instanceType, types)
		if !ok {
			continue
		}
		what := "hardware"
		if pool.kind == byFamily {
			what = "a family"
		}
		wrong[i].Message = fmt.Sprintf("%q is %s, not an instance type: make pool %s of it with the button in this row", row.instanceType, what, pool.name)
		if near := types.SimilarTypes(row.instanceType); len(near) > 0 {
			wrong[i].Message += ", or name a type, such as " + strings.Join(near, " or ")
		}
	}
}

// knownInstances are the types that nodes have and those of the table.
func knownInstances(types catalog.Catalog) []catalog.Instance {
	var all []catalog.Instance
	for _, pool := range types.Pools() {
		if !pool.Grouped {
			all = append(all, pool.Instance)
		}
	}
	for _, name := range catalog.KnownTypes() {
		instance, _ := catalog.Known(name)
		all = append(all, instance)
	}
	return all
}

// newPoolView is a pool to be made, with what it would have.
func newPoolView(p formPool, with catalog.Catalog) views.NewPool {
	view := views.NewPool{Name: p.name, Kind: p.kind, Value: p.value, Text: fmt.Sprintf("of all %s nodes", p.value)}
	if pool, ok := with.Named(p.name); ok {
		view.Text += ": " + format.Count(int(pool.Nodes), "node") + " today"
		if pool.Nodes > 0 && len(pool.Types) > 0 {
			view.Text += " (" + strings.Join(pool.Types, ", ") + ")"
		}
	}
	return view
}
