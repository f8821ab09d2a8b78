package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/gitops"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckPools says what is wrong with adding pools to the policy.
func (s *Service) CheckPools(ctx context.Context, pools []v1alpha1.Pool) ([]governance.FieldError, error) {
	state, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	if state.Policy == nil {
		return noPolicy(pools), nil
	}
	if m, managed := gitops.Of(state.Policy); managed && len(withPools(state.Policy, pools).Spec.Pools) > len(state.Policy.Spec.Pools) {
		return forEachPool(pools, m.Sentence("the cluster policy")), nil
	}
	return added(Validate(withPools(state.Policy, pools), state), state.Policy, pools), nil
}

// nowhere tells of each pool that there is no policy to add it to. Making one
// decides on much more than pools, and restarts Kueue.
func noPolicy(pools []v1alpha1.Pool) []governance.FieldError {
	return forEachPool(pools, "there is no cluster policy yet; create one first (Policies, Create policy)")
}

// each tells the same of every pool.
func forEachPool(pools []v1alpha1.Pool, sentence string) []governance.FieldError {
	var wrong []governance.FieldError
	for i := range pools {
		wrong = append(wrong, governance.FieldError{Path: fmt.Sprintf("spec.pools[%d].name", i), Message: sentence})
	}
	return wrong
}

// withPools is a policy with more pools. Those that it has already stay.
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

// added keeps what is wrong with the pools that are added, with paths as if
// they were alone. What is wrong with the policy as it is does not stop them.
func added(wrong []governance.FieldError, policy *v1alpha1.ClusterPolicy, pools []v1alpha1.Pool) []governance.FieldError {
	var kept []governance.FieldError
	all := withPools(policy, pools).Spec.Pools
	for _, w := range wrong {
		if w.Path == "spec.pools" {
			kept = append(kept, w)
			continue
		}
		for i := len(policy.Spec.Pools); i < len(all); i++ {
			rest, ok := strings.CutPrefix(w.Path, fmt.Sprintf("spec.pools[%d]", i))
			if !ok {
				continue
			}
			n := slices.IndexFunc(pools, func(p v1alpha1.Pool) bool { return samePool(p, all[i]) })
			kept = append(kept, governance.FieldError{Path: fmt.Sprintf("spec.pools[%d]%s", n, rest), Message: w.Message})
		}
	}
	return kept
}

// addTries is how often pools are added while others change the policy.
const addTries = 5

// AddPools adds pools to the policy as user, whatever else somebody changes in
// it meanwhile. Without a policy it is refused. Pools that are there already are
// left alone.
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
		v1alpha1.SetReason(more, "") // the one that stands there is of an earlier change
		err = s.Save(ctx, user, more)
		if kind := governance.KindOf(err); kind != governance.Conflict || try == addTries {
			return err
		}
	}
}
