package allocations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"
	allocationviews "kuota.dev/kuota/views/allocations"
)

// Kinds of pools that the form can create.
const (
	byAccelerator = "accelerator"
	byFamily      = "instanceFamily"
)

// isPool reports whether name is a pool rather than an instance type.
func (f *allocationForm) isPool(name string, types catalog.Catalog) bool {
	if slices.ContainsFunc(f.pools, func(p formPool) bool { return p.name == name }) {
		return true
	}
	if _, named := types.Named(name); named {
		return true
	}
	return f.edits != nil && f.edits.namesPool(name) || f.earlier != nil && f.earlier.namesPool(name)
}

// namesPool reports whether the allocation has quota or limits in pool name, which
// the policy may no longer have.
func (e *edited) namesPool(name string) bool {
	named := func(row v1alpha1.QuotaRow) bool { return row.Pool == name && name != "" }
	return slices.ContainsFunc(e.allocation.Spec.Quota, named) || slices.ContainsFunc(e.allocation.Spec.Sharing.BorrowLimits, named)
}

// find returns the pool of a row by the name of an instance type or of a pool.
func find(name string, types catalog.Catalog) (catalog.Pool, bool) {
	if pool, ok := types.Named(name); ok {
		return pool, true
	}
	return types.Pool(name)
}

// maxOffered bounds the rows of pools that nobody asked for. Others are named in another row.
const maxOffered = 30

// offerSaved makes saved rows of pools that exist look like those that offer adds.
func (f *allocationForm) offerSaved(types catalog.Catalog) {
	has := map[string]bool{}
	for i := range f.rows {
		if pool, ok := find(f.rows[i].instanceType, types); ok && !has[pool.Name] && (pool.Nodes > 0 || pool.Named) {
			f.rows[i].offered, has[pool.Name] = "true", true
		}
	}
}

// offer adds a row for each pool of the cluster and the policy that has none yet.
func (f *allocationForm) offer(types catalog.Catalog) {
	types = types.With(f.newPools()...)
	has := map[string]bool{}
	for _, row := range f.rows {
		if pool, ok := find(row.instanceType, types); ok {
			has[pool.Name] = true
		}
	}
	for _, pool := range types.Pools() {
		name := pool.Name
		if !pool.Named && len(pool.Types) == 1 {
			name = pool.Types[0]
		}
		if _, ok := find(name, types); !ok || has[pool.Name] || pool.Nodes == 0 && !pool.Named || len(f.rows) >= maxOffered {
			continue
		}
		f.rows = append(f.rows, formRow{instanceType: name, offered: "true"})
	}
}

// newPools returns the pools to create with the allocation.
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

// dropPools removes new pools that no row uses, duplicates and invalid ones.
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

// createPool replaces hardware or a family in a row by a new pool of it.
func (f *allocationForm) createPool(row *formRow, types catalog.Catalog) {
	pool, ok := f.suggest(row.instanceType, types)
	if !ok {
		return
	}
	row.instanceType = pool.name
	f.pools = append(f.pools, pool)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// suggest returns the pool that can be created from typed: of a family such as
// ml.g5, or of hardware such as H100; ok is false for existing types and pools.
func (f *allocationForm) suggest(typed string, types catalog.Catalog) (formPool, bool) {
	if f.kind == ofDepartment { // which creates no pools
		return formPool{}, false
	}
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

// offerPools changes the errors of rows with hardware or a family in place of a
// type: they name the button that creates a pool.
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

// knownInstances returns the instance types of nodes and of the catalog's table.
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

// newPoolView describes a new pool with the nodes that it would have.
func newPoolView(p formPool, with catalog.Catalog) allocationviews.NewPool {
	view := allocationviews.NewPool{Name: p.name, Kind: p.kind, Value: p.value, Text: fmt.Sprintf("of all %s nodes", p.value)}
	if pool, ok := with.Named(p.name); ok {
		view.Text += ": " + format.Count(int(pool.Nodes), "node") + " today"
		if pool.Nodes > 0 && len(pool.Types) > 0 {
			view.Text += " (" + strings.Join(pool.Types, ", ") + ")"
		}
	}
	return view
}
