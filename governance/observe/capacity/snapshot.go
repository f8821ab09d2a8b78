package capacity

import (
	"time"

	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/report/usage"
)

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
