package quota

import (
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/catalog"
)

type resolvedRow struct {
	pool    string
	amounts Resources
}

// resolveRows finds the pool of each row and fills in its amounts.
func resolveRows(path string, rows []v1alpha1.QuotaRow, types catalog.Catalog) (resolved []resolvedRow, errs governance.FieldErrors) {
	if len(rows) > v1alpha1.MaxQuotaRows {
		errs.Addf(path, "has %d rows; an allocation has at most %d", len(rows), v1alpha1.MaxQuotaRows)
	}
	seen := map[string]int{}
	for i, row := range rows {
		at := fmt.Sprintf("%s[%d]", path, i)
		pool, problem := poolOf(row, types)
		first, twice := seen[pool.Name]
		switch {
		case problem != "":
			errs.Add(at+nameField(row), problem)
			errs = append(errs, under(at, checkWithoutPool(row))...)
			continue
		case twice:
			errs.Add(at+nameField(row), duplicatePool(rows[first], row, first, pool))
		default:
			seen[pool.Name] = i
		}
		rowErrs := checkPool(row, pool)
		var amounts Resources
		if len(rowErrs) == 0 {
			amounts, rowErrs = Fill(row.Quantities, pool.Instance)
		}
		errs = append(errs, under(at, rowErrs)...)
		resolved = append(resolved, resolvedRow{pool.Name, amounts})
	}
	return resolved, errs
}

// poolOf returns the pool of a row, or the reason why there is none.
func poolOf(row v1alpha1.QuotaRow, types catalog.Catalog) (pool catalog.Pool, problem string) {
	switch {
	case row.Pool != "" && row.InstanceType != "":
		return pool, "name either an instance type or a pool, not both"
	case row.Pool != "":
		if pool, ok := types.Named(row.Pool); ok {
			return pool, ""
		}
		return pool, noSuchPool(row.Pool, types)
	case row.InstanceType == "":
		return pool, "name an instance type, such as ml.p5.48xlarge"
	}
	pool, ok := types.Pool(row.InstanceType)
	if ok {
		return pool, ""
	}
	if split := types.Ambiguous(row.InstanceType); len(split) > 0 {
		return catalog.Pool{}, fmt.Sprintf("instances of %s are in the pools %s; name one of them", row.InstanceType, join(split))
	}
	problem = fmt.Sprintf("unknown instance type %q: no node has it", row.InstanceType)
	if _, named := types.Named(row.InstanceType); named {
		return catalog.Pool{}, problem + "; it is a pool: set pool instead of instanceType"
	}
	if near := types.SimilarTypes(row.InstanceType); len(near) > 0 {
		problem += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return catalog.Pool{}, problem
}

// noSuchPool returns the error for a pool that the policy does not define.
func noSuchPool(name string, types catalog.Catalog) string {
	var named []string
	for _, p := range types.Pools() {
		if p.Named {
			named = append(named, p.Name)
		}
	}
	problem := fmt.Sprintf("there is no pool %q in the cluster policy", name)
	switch _, isType := types.Pool(name); {
	case isType:
		return problem + "; it is an instance type: set instanceType instead of pool"
	case len(named) == 0:
		return problem + ", which has none"
	}
	return problem + "; pools are " + strings.Join(named, ", ")
}

// duplicatePool returns the error for a row whose pool an earlier row has.
func duplicatePool(first, second v1alpha1.QuotaRow, index int, pool catalog.Pool) string {
	if rowName(first) == rowName(second) {
		return fmt.Sprintf("%s is already in row %d; combine the rows", rowName(second), index+1)
	}
	return fmt.Sprintf("%s and %s in row %d are both pool %s; combine the rows", rowName(second), rowName(first), index+1, pool.Name)
}

// rowName returns the words for the instance type or the pool of a row.
func rowName(row v1alpha1.QuotaRow) string {
	if row.Pool != "" {
		return "pool " + row.Pool
	}
	return "instance type " + row.InstanceType
}

// nameField returns the field that names the pool of a row, relative to the row.
func nameField(row v1alpha1.QuotaRow) string {
	if row.Pool != "" {
		return ".pool"
	}
	return ".instanceType"
}

// checkPool returns the amounts of a row that its pool cannot have, because the
// pool has several instance types, several kinds of accelerators, or none.
func checkPool(row v1alpha1.QuotaRow, pool catalog.Pool) (errs governance.FieldErrors) {
	const instead = "enter accelerators, vCPU or memory"
	if row.Instances != nil {
		switch {
		case len(pool.Types) == 0 && pool.Nodes == 0:
			errs.Addf("instances", "pool %s has no nodes, so the size of an instance is unknown; enter vCPU and memory", pool.Name)
		case pool.Grouped && len(pool.Types) > 1:
			errs.Addf("instances", "pool %s has several instance types: %s", pool.Name, instead)
		case pool.Grouped:
			errs.Addf("instances", "pool %s has nodes without an instance type: %s", pool.Name, instead)
		case row.InstanceType != "" && !slices.Contains(pool.Types, row.InstanceType):
			errs.Addf("instances", "%s belongs to pool %s, which has instances of %s only: %s", row.InstanceType, pool.Name, pool.Types[0], instead)
		}
	}
	if !pool.Named || pool.Instance.Accelerators > 0 {
		return errs
	}
	if row.Accelerators != nil && *row.Accelerators > 0 || row.Partition != nil {
		field := "accelerators"
		if row.Partition != nil {
			field = "partition"
		}
		switch {
		case len(pool.Mixed) > 0:
			errs.Addf(field, "pool %s has several kinds of accelerators, %s, which cannot be counted together: create a pool for each", pool.Name, join(pool.Mixed))
		case len(pool.Types) == 0 && pool.Nodes == 0:
			errs.Addf(field, "pool %s has no nodes, so its accelerators are unknown; enter vCPU and memory", pool.Name)
		default:
			errs.Addf(field, "pool %s has no accelerators", pool.Name)
		}
	}
	return errs
}

// checkWithoutPool validates the amounts of a row whose pool is unknown.
// Partitions are not checked, because they depend on the pool.
func checkWithoutPool(row v1alpha1.QuotaRow) []governance.FieldError {
	_, errs := parse(row.Quantities, catalog.Instance{Accelerators: 1})
	return slices.DeleteFunc(errs, func(e governance.FieldError) bool {
		return strings.HasPrefix(e.Path, "partition") // what can be partitioned is unknown too
	})
}

// under prefixes the paths of errors with the path of their row.
func under(row string, errs governance.FieldErrors) []governance.FieldError {
	moved := slices.Clone(errs)
	for i := range moved {
		if moved[i].Path != "" {
			moved[i].Path = "." + moved[i].Path
		}
		moved[i].Path = row + moved[i].Path
	}
	return moved
}

// join returns names as "a, b and c".
func join(names []string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
