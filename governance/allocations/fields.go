package allocations

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
)

// fieldMap maps the fields of the Kueue objects of an allocation to the fields
// of the allocation that they follow from.
type fieldMap struct {
	rows    map[string]string // path of the row of quota by pool
	limits  map[string]string // path of the row of absolute limits by pool
	pools   []string          // in the order of the flavors
	covered []string          // covered resources, in their order in a flavor
}

func newFieldMap(spec *v1alpha1.ComputeAllocationSpec, resolved quota.Resolved, types catalog.Catalog) fieldMap {
	f := fieldMap{rows: map[string]string{}, limits: map[string]string{}, covered: resolved.Covered()}
	for _, pool := range resolved.Pools {
		f.pools = append(f.pools, pool.Name)
	}
	for i, row := range spec.Quota {
		f.rows[poolOf(row, types)] = fmt.Sprintf("spec.quota[%d]", i)
	}
	for i, row := range spec.Sharing.BorrowLimits {
		f.limits[poolOf(row, types)] = fmt.Sprintf("spec.sharing.borrowLimits[%d]", i)
	}
	return f
}

// poolOf returns the pool of a row.
func poolOf(row v1alpha1.QuotaRow, types catalog.Catalog) string {
	if row.Pool != "" {
		return row.Pool
	}
	pool, _ := types.Pool(row.InstanceType)
	return pool.Name
}

// quotaPath matches a field of the quota of a ClusterQueue.
var quotaPath = regexp.MustCompile(`^spec\.resourceGroups\[0\]\.flavors\[(\d+)\](?:\.resources\[(\d+)\](?:\.(\w+))?)?`)

// others are the other fields of a ClusterQueue.
var others = []struct{ start, path string }{
	{"spec.fairSharing", "spec.fairShareWeight"},
	{"spec.preemption", "spec.preemption.withinTeam"},
	{"spec.stopPolicy", "spec.activation"},
	{"spec.namespaceSelector", "spec.namespace"},
}

// of returns an error of the object with this kind and name, with the path of the
// allocation that causes it. An error that no field causes has an empty path and
// keeps its text.
func (f fieldMap) of(kind, name string, fieldErr governance.FieldError) governance.FieldError {
	moved := governance.FieldError{Message: fieldErr.Message}
	switch kind {
	case "ResourceFlavor":
		moved.Path = f.row(name)
		return moved
	case "Namespace", "LocalQueue":
		moved.Path = "spec.namespace"
		return moved
	}
	if at := quotaPath.FindStringSubmatch(fieldErr.Path); at != nil {
		moved.Path = f.quotaField(at[1], at[2], at[3])
		return moved
	}
	for _, other := range others {
		if strings.HasPrefix(fieldErr.Path, other.start) {
			moved.Path = other.path
			return moved
		}
	}
	moved.Path = f.named(fieldErr.Message)
	return moved
}

// quotaField returns the field behind one amount of a ClusterQueue.
func (f fieldMap) quotaField(flavor, resource, figure string) string {
	i, _ := strconv.Atoi(flavor)
	if i >= len(f.pools) {
		return "spec.quota"
	}
	pool, field := f.pools[i], ""
	if j, err := strconv.Atoi(resource); err == nil && j < len(f.covered) {
		field = fieldOf(f.covered[j])
	}
	switch {
	case figure == "lendingLimit":
		return "spec.sharing.strategy"
	case figure == "borrowingLimit" && f.limits[pool] != "":
		return f.limits[pool] + field
	case figure == "borrowingLimit":
		return "spec.sharing.borrowLimitPercent"
	}
	return f.row(pool) + field
}

// row returns the row of a pool.
func (f fieldMap) row(pool string) string {
	if path := f.rows[pool]; path != "" {
		return path
	}
	if path := f.limits[pool]; path != "" {
		return path
	}
	return "spec.quota"
}

// named returns the row whose pool a text names, if it names only one.
func (f fieldMap) named(text string) string {
	i := slices.IndexFunc(f.pools, func(pool string) bool { return names(text, pool) })
	if i < 0 || slices.ContainsFunc(f.pools[i+1:], func(pool string) bool { return names(text, pool) }) {
		return ""
	}
	path := f.row(f.pools[i])
	for _, resource := range f.covered {
		if names(text, resource) {
			return path + fieldOf(resource)
		}
	}
	return path
}

// names reports whether a text contains a name as a whole word.
func names(text, name string) bool {
	return regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(name) + `($|[^\w/-])`).MatchString(text)
}

// fieldOf returns the field of a row for a resource, with a dot; empty for
// resources that are only filled in.
func fieldOf(resource string) string {
	switch {
	case resource == catalog.CPU:
		return ".vCPU"
	case resource == catalog.Memory:
		return ".memory"
	case resource == catalog.Network:
		return ""
	case catalog.IsPartition(resource):
		return ".partition"
	case !catalog.IsAccelerator(resource):
		return ".resources"
	}
	return ".accelerators"
}

// PoolCreator creates pools of the cluster policy; policy.Service implements it.
type PoolCreator interface {
	// CheckPools returns what prevents creating these pools, with paths such as
	// spec.pools[0].name.
	CheckPools(ctx context.Context, pools []v1alpha1.Pool) ([]governance.FieldError, error)
	// AddPools adds pools to the cluster policy as user. It returns
	// governance.Invalid if there is no policy. Pools that exist are left alone.
	AddPools(ctx context.Context, user governance.User, pools []v1alpha1.Pool) error
}

// checkPools returns the errors of the pools that are created with an
// allocation, with the paths of the rows that name them.
func (s *Service) checkPools(ctx context.Context, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) ([]governance.FieldError, error) {
	if len(pools) == 0 {
		return nil, nil
	}
	errs, err := s.Pools.CheckPools(ctx, pools)
	return moveToRows(errs, spec, pools), err
}

// addPools creates the pools of an allocation.
func (s *Service) addPools(ctx context.Context, user governance.User, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	if len(pools) == 0 {
		return nil
	}
	return translatePoolErrors(s.Pools.AddPools(ctx, user, pools), spec, pools)
}

// moveToRows moves the errors of pools to the rows that name them.
func moveToRows(errs []governance.FieldError, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) []governance.FieldError {
	moved := slices.Clone(errs)
	for i, w := range moved {
		moved[i].Path = ""
		for n, pool := range pools {
			if strings.HasPrefix(w.Path, fmt.Sprintf("spec.pools[%d]", n)) {
				moved[i].Path = poolPath(spec, pool.Name)
				moved[i].Message = fmt.Sprintf("pool %s: %s", pool.Name, w.Message)
			}
		}
	}
	return moved
}

// poolPath returns the path of the row that names a pool; empty for none.
func poolPath(spec *v1alpha1.ComputeAllocationSpec, pool string) string {
	for i, row := range spec.Quota {
		if row.Pool == pool {
			return fmt.Sprintf("spec.quota[%d].pool", i)
		}
	}
	for i, row := range spec.Sharing.BorrowLimits {
		if row.Pool == pool {
			return fmt.Sprintf("spec.sharing.borrowLimits[%d].pool", i)
		}
	}
	return ""
}

// translatePoolErrors applies moveToRows to the fields of an error.
func translatePoolErrors(err error, spec *v1alpha1.ComputeAllocationSpec, pools []v1alpha1.Pool) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Invalid {
		moved := *ours
		moved.Fields = moveToRows(ours.Fields, spec, pools)
		return &moved
	}
	return err
}
