package capacity

import (
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/usage"
)

// Snapshot is the cluster at one moment. It is never changed once it is made.
type Snapshot struct {
	At    time.Time
	Nodes []NodeSnapshot // by name
	Pools []PoolSnapshot // by name
	Teams []TeamSnapshot // by name
	// Others are the teams that a reader may not see, in sum, and what stands in
	// queues of no team. Its name is empty; nil where there are none.
	Others *TeamSnapshot
}

// NodeState is whether a node takes tasks.
type NodeState string

// The states of a node.
const (
	Ready      NodeState = "Ready"
	Recovering NodeState = "Pending recovery" // not ready, or its accelerators are being set up
	Cordoned   NodeState = "Cordoned"
)

// Node is one instance.
type NodeSnapshot struct {
	Name, Pool, Type string
	State            NodeState
	Since            time.Time // when it came into its state, as far as the node tells; else zero
	Message          string    // what the node says while it is not ready
	Created          time.Time
	Physical         quota.Resources            // nominal
	Allocatable      quota.Resources            // what the scheduler gives out, as the node reports
	Bound            quota.Resources            // by pods of tasks that Kueue admitted
	Outside          quota.Resources            // by all other pods
	Free             quota.Resources            // of Allocatable, for pods; nothing while it is not ready
	Pods             int64                      // that have not ended
	Teams            map[string]quota.Resources // bound, by team; those that a reader may not see, and queues of no team, are ""
}

// Pool is the nodes that quota is given in together.
type PoolSnapshot struct {
	Name                               string
	Types                              []string // instance types of its nodes
	Nodes, Ready, Recovering, Cordoned int64
	AcceleratorModel                   string         // empty where unknown or mixed
	AcceleratorMemory                  int64          // GB of one accelerator; 0 where unknown or mixed
	Resources                          []PoolResource // accelerators first
}

// PoolCell is one resource of a pool, in the units of quota.Resources.
type PoolResource struct {
	Resource string
	usage.PoolUsage
}

// Team is what one team has and holds.
type TeamSnapshot struct {
	Name, DisplayName, Namespace string
	Weight                       int32
	Resources                    []TeamResource // accelerators first, then by pool
	Running, Waiting             int            // tasks
}

// TeamCell is one resource of one pool that a team has quota of, or holds.
type TeamResource struct {
	Flavor, Resource string
	usage.TeamUsage
}
