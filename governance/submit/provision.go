package submit

import (
	"context"
	"math/big"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/report/accounting"
)

// checkGrowth returns why growth cannot ask for nodes; empty if it can, or does not.
func (t Team) checkGrowth(p *v1alpha1.ElasticPolicy) string {
	if t.AdmissionBlocked && p.Provisions() {
		return "cannot be Provision: " + elastic.AdmissionBlocked
	}
	return ""
}

// NodeRequest is what an elastic task that is submitted now would ask nodes for.
type NodeRequest struct {
	Size  int32 // the largest that there is quota for, without a preemption
	Pods  int32 // of Size that have no node now
	Nodes int64 // of the pool that Pods need; 0 if that is not known
	// Own and Borrowed are what Pods cost in an hour, as own and as borrowed compute, in
	// Currency; nil without prices.
	Own, Borrowed *big.Rat
	Currency      string
}

// nodeRequest returns what a plan would ask nodes for, where there is quota for a number of
// pods, and nodes for a size. nil for nothing.
func (s *Service) nodeRequest(ctx context.Context, p Plan, quotaRoom, placed int32) (*NodeRequest, error) {
	n := &NodeRequest{}
	for _, size := range elastic.Sizes(*p.Elastic) {
		if size <= max(quotaRoom, p.Pods) {
			n.Size = size
		}
	}
	if n.Pods = n.Size - max(placed, p.Pods); n.Pods <= 0 {
		return nil, nil
	}
	if p.QueuePool.Name == "" || len(p.AnyOf) > 0 { // in which pool is decided when it grows
		return n, nil
	}
	n.Nodes = quota.NodesFor(p.QueuePool.Pool, p.PodResources, int64(n.Pods))
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil || policy == nil {
		return n, err
	}
	prices, all := accounting.PricesOf(policy.Spec.Prices), quota.Resources{}
	for name, each := range p.PodResources {
		all[name] = each.Times(int64(n.Pods))
	}
	if own, borrowed, known := prices.Hour(p.QueuePool.Name, all, s.Tasks.Index.Now()); known {
		n.Own, n.Borrowed, n.Currency = own, borrowed, prices.Currency
	}
	return n, nil
}
