package capacity

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Service computes snapshots of the cluster. It is safe for concurrent use.
type Service struct {
	Cluster *cluster.Cluster
	Tasks   *queries.Service
	Naming  desired.Naming

	mu   sync.Mutex
	last *Snapshot
	seen uint64 // changes that last includes
}

// Subscribe returns a channel that receives after a change of tasks or
// allocations, until ctx ends. Changes between two receives are coalesced.
func (s *Service) Subscribe(ctx context.Context) <-chan struct{} {
	return cluster.Either(ctx, s.Cluster.TaskChanges, s.Cluster.AllocationChanges)
}

// Snapshot returns the current snapshot, which it computes only after a change.
// It returns governance.Unavailable if the cluster cannot be read.
func (s *Service) Snapshot(ctx context.Context) (*Snapshot, error) {
	if served, err := s.Cluster.ServesWorkloads(); err != nil || !served {
		if err == nil {
			err = &governance.Error{Kind: governance.Unavailable, Op: "sum up the cluster", Message: "Kueue is not installed in this cluster, so there is no quota and no usage."}
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.Cluster.TaskChanges.Count() + s.Cluster.AllocationChanges.Count()
	if s.last != nil && s.seen == changes {
		return s.last, nil
	}
	in, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.last, s.seen = in.sum(), changes
	return s.last, nil
}

// Within returns the snapshot that a reader with this scope may see. All other
// teams, and ClusterQueues of no team, are one sum.
func (s *Service) Within(ctx context.Context, scope access.Scope) (*Snapshot, error) {
	whole, err := s.Snapshot(ctx)
	if err != nil || scope.All {
		return whole, err
	}
	return whole.within(scope), nil
}

// read returns the input of a snapshot from the informer cache.
func (s *Service) read(ctx context.Context) (in input, err error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return in, err
	}
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return in, err
	}
	in.at, in.cohort = time.Now(), s.Naming.Under(policy).Cohort
	if in.catalog, err = clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel); err != nil {
		return in, err
	}
	in.typeLabel = s.Naming.InstanceTypeLabel
	if err := cluster.List(ctx, reader, &in.nodes, &in.queues, &in.localQueues, &in.cohorts, &in.allocations); err != nil {
		return in, err
	}
	in.occupied = s.Tasks.Index.ClusterUsage()
	return in, nil
}
