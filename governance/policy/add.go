package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/gitops"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckPools returns what prevents adding pools to the policy.
func (s *Service) CheckPools(ctx context.Context, pools []v1alpha1.Pool) ([]governance.FieldError, error) {
	state, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if state.Policy == nil {
		return noPolicy(pools), nil
	}
	if m, managed := gitops.ManagerOf(state.Policy); managed && len(withPools(state.Policy, pools).Spec.Pools) > len(state.Policy.Spec.Pools) {
		return forEachPool(pools, m.Message("the cluster policy")), nil
	}
	return added(Validate(withPools(state.Policy, pools), state), state.Policy, pools), nil
}

// noPolicy returns an error for each pool while there is no policy. Creating one
// decides on more than pools, and restarts Kueue, so it is not done implicitly.
func noPolicy(pools []v1alpha1.Pool) []governance.FieldError {
	return forEachPool(pools, "there is no cluster policy yet; create one first (Policies, Create policy)")
}

// forEachPool returns the same error for every pool.
func forEachPool(pools []v1alpha1.Pool, sentence string) []governance.FieldError {
	var errs []governance.FieldError
	for i := range pools {
		errs = append(errs, governance.FieldError{Path: fmt.Sprintf("spec.pools[%d].name", i), Message: sentence})
	}
	return errs
}

// withPools returns a copy of a policy with more pools. Pools that it already
// has are not added again.
func withPools(policy *v1alpha1.ClusterPolicy, pools []v1alpha1.Pool) *v1alpha1.ClusterPolicy {
	more := policy.DeepCopy()
	for _, pool := range pools {
		if !slices.ContainsFunc(more.Spec.Pools, func(p v1alpha1.Pool) bool { return samePool(p, pool) }) {
			more.Spec.Pools = append(more.Spec.Pools, pool)
		}
	}
	return more
}

func samePool(a, b v1alpha1.Pool) bool {
	return a.Name == b.Name && equality.Semantic.DeepEqual(a.Match, b.Match)
}

// added returns the errors of the added pools, with paths in the list of these.
// Errors that the policy already has do not prevent adding pools.
func added(errs []governance.FieldError, policy *v1alpha1.ClusterPolicy, pools []v1alpha1.Pool) []governance.FieldError {
	var kept []governance.FieldError
	all := withPools(policy, pools).Spec.Pools
	for _, fieldErr := range errs {
		if fieldErr.Path == "spec.pools" {
			kept = append(kept, fieldErr)
			continue
		}
		for i := len(policy.Spec.Pools); i < len(all); i++ {
			rest, ok := strings.CutPrefix(fieldErr.Path, fmt.Sprintf("spec.pools[%d]", i))
			if !ok {
				continue
			}
			n := slices.IndexFunc(pools, func(p v1alpha1.Pool) bool { return samePool(p, all[i]) })
			kept = append(kept, governance.FieldError{Path: fmt.Sprintf("spec.pools[%d]%s", n, rest), Message: fieldErr.Message})
		}
	}
	return kept
}

// addTries is the number of attempts to add pools while others change the
// policy.
const addTries = 5

// AddPools adds pools to the policy as user, and keeps concurrent changes of
// others. Pools that exist are left alone. It returns governance.Invalid if
// there is no policy.
func (s *Service) AddPools(ctx context.Context, user governance.User, pools []v1alpha1.Pool) error {
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		policy := &v1alpha1.ClusterPolicy{}
		policy.Name = v1alpha1.ClusterPolicyName
		err := cluster.Translate("read policy", writer.Get(ctx, client.ObjectKeyFromObject(policy), policy))
		switch {
		case governance.KindOf(err) == governance.NotFound:
			return invalid("There is no cluster policy. Create one before you create pools.", noPolicy(pools))
		case err != nil:
			return err
		}
		more := withPools(policy, pools)
		if len(more.Spec.Pools) == len(policy.Spec.Pools) {
			return nil
		}
		v1alpha1.SetReason(more, "") // the existing reason is of an earlier change
		err = s.Save(ctx, user, more)
		if kind := governance.KindOf(err); kind != governance.Conflict || try == addTries {
			return err
		}
	}
}
