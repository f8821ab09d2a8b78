package reconcile

import (
	"context"
	"sync/atomic"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crdsDeleted reports whether Kuota's CRDs are deleted or being deleted. That
// also deletes the custom resources, which is not meant as a deletion of teams:
// queues, pools and the Cohort then stay.
func crdsDeleted(ctx context.Context, live client.Reader) (bool, error) {
	return clusterstate.CRDsDeleted(ctx, live, "computeallocations", "departments", "clusterpolicies")
}

// policyReader reads the policy for controllers that revert something when it
// does not exist.
type policyReader struct {
	existed atomic.Bool // a policy existed since crdsDeleted last returned false
}

// get returns the policy, nil if there is none. leaves reports whether a policy
// was deleted because Kuota's CRDs are being deleted. It reads the CRDs only if
// there was a policy.
func (p *policyReader) get(ctx context.Context, cached, live client.Reader) (policy *v1alpha1.ClusterPolicy, leaves bool, err error) {
	if policy, err = clusterstate.Policy(ctx, cached); err != nil {
		return nil, false, err
	}
	if policy != nil {
		p.existed.Store(true)
		return policy, false, nil
	}
	if !p.existed.Load() {
		return nil, false, nil
	}
	if leaves, err = crdsDeleted(ctx, live); !leaves && err == nil {
		p.existed.Store(false)
	}
	return nil, leaves, err
}
