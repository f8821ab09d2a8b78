package handlerstest

import (
	"context"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
)

// CapacityBackend is the cluster's capacity in memory.
type CapacityBackend struct {
	Snapshot capacity.Snapshot
	Failure  error
}

func (d *CapacityBackend) Within(context.Context, access.Scope) (*capacity.Snapshot, error) {
	return &d.Snapshot, d.Failure
}

func poolCell(resource string, p usage.PoolUsage) capacity.PoolResource {
	return capacity.PoolResource{Resource: resource, PoolUsage: p}
}

func TeamCell(pool, resource string, share usage.TeamUsage) capacity.TeamResource {
	return capacity.TeamResource{Flavor: pool, Resource: resource, TeamUsage: share}
}

// Cluster has two pools of GPUs, one of Neuron devices, and one of neither;
// three teams, and what a user does not see.
func Cluster() capacity.Snapshot {
	return capacity.Snapshot{
		Pools: []capacity.PoolSnapshot{
			{Name: "cpu", Nodes: 1, Ready: 1, Resources: []capacity.PoolResource{poolCell(catalog.CPU, usage.PoolUsage{Physical: 16000, Idle: 16000})}},
			{Name: "g6", Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "L4", Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 8, OwnBound: 3, Outside: 1, Unhealthy: 4, Nominal: 10, Usage: 3, Recovering: 4}),
				poolCell(catalog.CPU, usage.PoolUsage{Physical: 96500, Idle: 96500}),
			}},
			{Name: "p5", Nodes: 2, Ready: 1, Cordoned: 1, AcceleratorModel: "H100", AcceleratorMemory: 80, Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 1600, OwnBound: 6, BorrowedBound: 2, Idle: 1592, Nominal: 15, Usage: 9, Unbound: 1, Borrowed: 3, LentToCohort: 3, LargestFree: 4}),
				poolCell(catalog.Memory, usage.PoolUsage{Physical: 4 * catalog.GiB, Usage: catalog.GiB / 2}),
			}},
			{Name: "trn", Nodes: 1, Ready: 1, AcceleratorMemory: 32, Resources: []capacity.PoolResource{poolCell(catalog.Neuron, usage.PoolUsage{Physical: 16, Idle: 16})}},
		},
		Teams: []capacity.TeamSnapshot{
			{Name: "language", Resources: []capacity.TeamResource{TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, LentToCohort: 2})}},
			{Name: "speech", DisplayName: "=Speech", Namespace: "hyperpod-ns-speech", Resources: []capacity.TeamResource{TeamCell("g6", catalog.GPU, usage.TeamUsage{Usage: 1, Borrowed: 1})}, Waiting: 4},
			{Name: "vision", DisplayName: "Vision", Resources: []capacity.TeamResource{
				TeamCell("g6", catalog.GPU, usage.TeamUsage{Nominal: 9, Usage: 3, Own: 3}), TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, Usage: 8, Own: 6, Borrowed: 2}),
				TeamCell("trn", catalog.Neuron, usage.TeamUsage{Nominal: 4}),
			}, Running: 1234},
		},
		Others: &capacity.TeamSnapshot{Resources: []capacity.TeamResource{TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 4, LentToCohort: 1})}, Running: 1},
	}
}

const H100 = "ml.p5.48xlarge"

// SmallCluster has two nodes of one pool, with usage of a team that has no name.
func SmallCluster() capacity.Snapshot {
	size := func(n resources.Amount) quota.Resources {
		return quota.Resources{catalog.GPU: n, catalog.CPU: n.Times(int64(24_000)), catalog.Memory: n.Times(int64(256)).Times(int64(catalog.GiB)), catalog.Network: n.Times(int64(4))}
	}
	now := time.Now()
	pr := usage.PoolUsage{Physical: 16, OwnBound: 6, BorrowedBound: 2, Outside: 1, Unhealthy: 4, Idle: 3, Nominal: 18, Usage: 9, Unbound: 1, Borrowed: 2, LargestFree: 3}
	return capacity.Snapshot{
		At: now,
		Nodes: []capacity.NodeSnapshot{
			{Name: "gpu-1", Pool: H100, Type: H100, State: capacity.Ready, Created: now.Add(-49 * time.Hour), Physical: size(8), Allocatable: size(8), Bound: size(5), Outside: quota.Resources{catalog.GPU: 1}, Free: size(2), Pods: 7,
				Teams: map[string]quota.Resources{"vision": size(3), "": size(2)}},
			{Name: "gpu-2", Pool: H100, Type: H100, State: capacity.Recovering, Since: now.Add(-time.Hour), Message: "KubeletNotReady <b>", Created: now.Add(-time.Hour), Physical: size(8)},
		},
		Pools: []capacity.PoolSnapshot{{Name: H100, Types: []string{H100}, Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "H100", AcceleratorMemory: 80,
			Resources: []capacity.PoolResource{{Resource: catalog.GPU, PoolUsage: pr}, {Resource: catalog.CPU, PoolUsage: usage.PoolUsage{Physical: 384_000, Nominal: 192_000}}, {Resource: catalog.Network}}}},
		Teams: []capacity.TeamSnapshot{{Name: "vision", Namespace: "hyperpod-ns-vision", Running: 2, Waiting: 12, Resources: []capacity.TeamResource{
			{Flavor: H100, Resource: catalog.GPU, TeamUsage: usage.TeamUsage{Nominal: 15, Usage: 8, Own: 8, LentToCohort: 2, Unbound: 1}},
			{Flavor: H100, Resource: catalog.CPU, TeamUsage: usage.TeamUsage{Usage: 4_000, Borrowed: 4_000}},
		}}},
	}
}
