package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
)

// orphanedQuota returns an error for quota that resolves now and, with other
// pools, would not resolve or would be in other pools.
func orphanedQuota(pools []v1alpha1.Pool, state State) []governance.FieldError {
	proposed := state.catalog(pools)
	teams := map[lostPool][]string{}
	for _, team := range state.teams {
		if team.DeletionTimestamp != nil {
			continue
		}
		was, errs := quota.Resolve(&team.Spec, state.Types)
		if len(errs) > 0 {
			for _, pool := range state.losesApplied(team, proposed) {
				lost := lostPool{path: blame(pool, nil, pools, state), pool: pool}
				teams[lost] = append(teams[lost], team.Name)
			}
			continue
		}
		is, errs := quota.Resolve(&team.Spec, proposed)
		before, after := was.PoolNames(), is.PoolNames()
		if len(errs) == 0 && slices.Equal(before, after) {
			continue
		}
		for _, lost := range lostPools(before, after, len(errs) > 0, pools, state) {
			teams[lost] = append(teams[lost], team.Name)
		}
	}
	var found []governance.FieldError
	for _, lost := range slices.SortedFunc(maps.Keys(teams), func(a, b lostPool) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.pool, b.pool))
	}) {
		found = append(found, governance.FieldError{Path: cmp.Or(lost.path, "spec.pools"), Message: lost.by(teams[lost])})
	}
	return found
}

// losesApplied returns the pools that a team would lose whose quota does not
// resolve now: its queue still has the quota that was applied last.
func (s State) losesApplied(team *v1alpha1.ComputeAllocation, proposed catalog.Catalog) []string {
	var lost []string
	for _, quota := range team.Status.Quota {
		_, had := s.Types.Find(quota.Pool)
		_, has := proposed.Find(quota.Pool)
		_, wasNamed := s.Types.Named(quota.Pool)
		_, isNamed := proposed.Named(quota.Pool)
		if had && !has || wasNamed && !isNamed {
			lost = append(lost, quota.Pool)
		}
	}
	return lost
}

// lostPool is a pool that teams would lose, and the path in the policy that
// causes it.
type lostPool struct{ path, pool string }

// lostPools returns the pools that one team would lose. If its quota would not
// resolve, only those count that the policy redefines.
func lostPools(before, after []string, nothing bool, pools []v1alpha1.Pool, state State) []lostPool {
	var found, unclear []lostPool
	for _, pool := range before {
		lost := lostPool{path: blame(pool, after, pools, state), pool: pool}
		switch {
		case !nothing && slices.Contains(after, pool):
		case nothing && lost.path == "":
			unclear = append(unclear, lost)
		default:
			found = append(found, lost)
		}
	}
	if len(found) == 0 {
		return unclear
	}
	return found
}

// by returns the sentence that names the teams with quota in the pool.
func (l lostPool) by(teams []string) string {
	teamsHave := "team " + teams[0] + " has"
	if last := len(teams) - 1; last > 0 {
		teamsHave = "teams " + strings.Join(teams[:last], ", ") + " and " + teams[last] + " have"
	}
	return fmt.Sprintf("%s quota in pool %s: move it first", teamsHave, l.pool)
}

// blame returns the path in the policy that causes the loss of a pool: its own
// definition, or the pool that gets its nodes; empty if unknown. after are the
// pools that the team would have instead.
func blame(pool string, after []string, pools []v1alpha1.Pool, state State) string {
	present := state.appliedPools()
	old := slices.IndexFunc(present, func(p v1alpha1.Pool) bool { return p.Name == pool })
	if old >= 0 {
		i := slices.IndexFunc(pools, func(p v1alpha1.Pool) bool { return p.Name == pool })
		switch {
		case i < 0:
			return "spec.pools"
		case !samePool(pools[i], present[old]):
			return fmt.Sprintf("spec.pools[%d].match", i)
		}
		return ""
	}
	for i, p := range pools {
		getsNodes := slices.Contains(after, p.Name)
		if len(after) == 0 { // the quota does not resolve: a new or changed pool has its nodes
			getsNodes = !slices.ContainsFunc(present, func(q v1alpha1.Pool) bool { return samePool(p, q) })
		}
		if getsNodes {
			return fmt.Sprintf("spec.pools[%d].match", i)
		}
	}
	return ""
}
