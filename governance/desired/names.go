package desired

import (
	"crypto/sha256"
	"encoding/hex"
)

// Naming says how objects are called. The zero value is not useful; start
// from DefaultNaming.
type Naming struct {
	Prefix            string // stands before the team in every name
	Cohort            string // what all queues borrow from and lend to
	InstanceTypeLabel string // the node label that names an instance's type
}

// DefaultNaming is HyperPod's, so that its users and their scripts feel at home.
var DefaultNaming = Naming{
	Prefix:            "hyperpod-ns-",
	Cohort:            "shared-pool",
	InstanceTypeLabel: "node.kubernetes.io/instance-type",
}

// maxName is what fits into a label value: Kueue labels pods with the names of
// their queues.
const maxName = 63

// Namespace is where a team's tasks run unless its allocation names another.
func (n Naming) Namespace(team string) string { return n.name(team, "") }

// ClusterQueue is the name of a team's ClusterQueue.
func (n Naming) ClusterQueue(team string) string { return n.name(team, "-clusterqueue") }

// LocalQueue is the name of a team's LocalQueue.
func (n Naming) LocalQueue(team string) string { return n.name(team, "-localqueue") }

// name joins prefix, team and suffix; where that is too long the middle is cut
// and a hash of the whole keeps the name its own.
func (n Naming) name(team, suffix string) string {
	base := n.Prefix + team
	if len(base)+len(suffix) <= maxName {
		return base + suffix
	}
	sum := sha256.Sum256([]byte(base))
	tail := "-" + hex.EncodeToString(sum[:])[:6] + suffix
	return base[:maxName-len(tail)] + tail
}
