package capacity

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks/queries"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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
	if policy != nil {
		in.prices = policy.Spec.Prices
	}
	if in.catalog, err = clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel); err != nil {
		return in, err
	}
	in.typeLabel = s.Naming.InstanceTypeLabel
	if err := cluster.List(ctx, reader, &in.nodes, &in.cohorts, &in.departments); err != nil {
		return in, err
	}
	if in.queues, err = cluster.All[kueue.ClusterQueue](ctx, reader); err != nil {
		return in, err
	}
	if in.localQueues, err = cluster.All[kueue.LocalQueue](ctx, reader); err != nil {
		return in, err
	}
	if in.allocations, err = cluster.All[v1alpha1.ComputeAllocation](ctx, reader); err != nil {
		return in, err
	}
	in.occupied = s.Tasks.Index.ClusterUsage()
	return in, nil
}

// Snapshot is the state of nodes, pools and teams at one moment. It is
// immutable.
type Snapshot struct {
	At    time.Time
	Nodes []NodeSnapshot // by name
	Pools []PoolSnapshot // by name
	Teams []TeamSnapshot // by name
	// Others is the sum of the teams that a reader may not see and of ClusterQueues
	// without a team. It has no name; nil if there are none.
	Others *TeamSnapshot
	Prices *v1alpha1.Prices // of the policy; nil for none
	Hidden bool             // whether Others has teams that a reader may not see

	teamOf clusterstate.Teams
}

// NodeState is whether a node is schedulable.
type NodeState string

// The states of a node.
const (
	Ready      NodeState = "Ready"
	Recovering NodeState = "Pending recovery" // not ready, or its accelerators are being partitioned
	Cordoned   NodeState = "Cordoned"
)

// NodeSnapshot is one node.
type NodeSnapshot struct {
	Name, Pool, Type string
	State            NodeState
	Since            time.Time // start of State; zero if the node does not report it
	Message          string    // the node's reason for its state, unless it is ready
	Created          time.Time
	Physical         quota.Resources            // nominal
	Allocatable      quota.Resources            // as the node reports
	Bound            quota.Resources            // requests of pods of admitted tasks
	Outside          quota.Resources            // requests of all other pods
	Free             quota.Resources            // of Allocatable; 0 unless the node is ready
	Pods             int64                      // not finished
	Teams            map[string]quota.Resources // Bound by team; "" has the teams of Snapshot.Others
}

// PoolSnapshot is one pool: the nodes of one ResourceFlavor.
type PoolSnapshot struct {
	Name                               string
	Types                              []string // instance types of its nodes
	Nodes, Ready, Recovering, Cordoned int64
	AcceleratorModel                   string         // empty if unknown or mixed
	AcceleratorMemory                  int64          // GB of one accelerator; 0 if unknown or mixed
	Resources                          []PoolResource // accelerators first
}

// PoolResource is one resource of a pool, in the units of quota.Resources.
type PoolResource struct {
	Resource string
	usage.PoolUsage
}

// TeamSnapshot is the quota and the usage of one team.
type TeamSnapshot struct {
	Name, DisplayName, Namespace string
	Weight                       int32
	Resources                    []TeamResource // accelerators first, then by pool
	Running, Waiting             int            // tasks
	Overrides                    []string       // sentences about windows and the budget
	Held, HeldText               string         // of describe.Held
	Budget                       string         // a sentence about what is used of it; empty for none
}

// TeamResource is one resource of one flavor that a team uses or has quota of.
type TeamResource struct {
	Flavor, Resource string
	usage.TeamUsage
}
