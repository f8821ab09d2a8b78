package dashboard

import (
	"fmt"
	"slices"

	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/views"
)

// wholeCluster titles figures that do not follow the pool that is chosen.
const wholeCluster = "whole cluster"

// clusterStats returns the figures at the top of the dashboard: of one pool, or of all for "".
// Different kinds of accelerators are never added up.
func clusterStats(s *capacity.Snapshot, pool string) []views.Stat {
	if pool != "" {
		s = &capacity.Snapshot{Pools: slices.DeleteFunc(slices.Clone(s.Pools), func(p capacity.PoolSnapshot) bool { return p.Name != pool })}
	}
	var nodes, ready, recovering, cordoned int64
	for i := range s.Pools {
		p := &s.Pools[i]
		nodes, ready, recovering, cordoned = nodes+p.Nodes, ready+p.Ready, recovering+p.Recovering, cordoned+p.Cordoned
	}
	stats := []views.Stat{
		{ID: "stat-instances", Label: "Instances", Value: format.Thousands(nodes), Note: fmt.Sprintf("in %s", format.Pools(len(s.Pools)))},
		{ID: "stat-running", Label: "Running instances", Value: format.Thousands(ready)},
		{ID: "stat-recovery", Label: "Pending recovery", Value: format.Thousands(recovering), Bad: recovering > 0},
	}
	if cordoned > 0 {
		stats[1].Note = format.Thousands(cordoned) + " cordoned"
	}
	sums := figures.ClusterSums(s)
	for _, resource := range figures.ResourceNames(s) {
		if catalog.IsAccelerator(resource) && (sums[resource].Physical > 0 || sums[resource].Usage > 0) {
			stats = append(stats, resourceStat(resource, sums[resource]))
		}
	}
	if memory, ok := acceleratorMemory(s, sums); ok {
		stats = append(stats, memory)
	}
	return append(stats, resourceStat(catalog.CPU, sums[catalog.CPU]), resourceStat(catalog.Memory, sums[catalog.Memory]))
}

func resourceStat(resource string, sum usage.PoolUsage) views.Stat {
	stat := views.Stat{ID: "stat-" + resource, Label: format.ResourceName(resource), Value: quota.Short(resource, sum.Physical), Note: quota.Short(resource, sum.Usage) + " used"}
	if resource == catalog.Memory {
		stat.Unit = "GiB"
		stat.Note = quota.Short(resource, sum.Usage) + " GiB used"
	}
	if !catalog.IsAccelerator(resource) {
		return stat
	}
	for _, part := range []struct {
		amount resources.Amount
		what   string
	}{{sum.Unbound, "not placed"}, {sum.Borrowed, "borrowed"}, {sum.Growth, "growth"}, {sum.Unhealthy, "unhealthy"}} {
		if part.amount > 0 {
			stat.Note += " · " + quota.Short(resource, part.amount) + " " + part.what
		}
	}
	return stat
}

// acceleratorMemory returns the known memory of accelerators; false if there are no
// accelerators.
func acceleratorMemory(s *capacity.Snapshot, sums map[string]usage.PoolUsage) (views.Stat, bool) {
	all := sums[catalog.GPU].Physical.Plus(sums[catalog.Neuron].Physical)
	var known, memory resources.Amount
	for i := range s.Pools {
		p := &s.Pools[i]
		for _, c := range p.Resources {
			if p.AcceleratorMemory > 0 && (c.Resource == catalog.GPU || c.Resource == catalog.Neuron) {
				known = known.Plus(c.Physical)
				memory = memory.Plus(c.Physical.Times(p.AcceleratorMemory))
			}
		}
	}
	stat := views.Stat{ID: "stat-accelerator-memory", Label: "Accelerator memory", Value: format.Thousands(int64(memory)), Unit: "GB"}
	switch {
	case known == 0:
		stat.Value, stat.Unit, stat.Note = "–", "", "unknown"
	case known < all:
		stat.Note = fmt.Sprintf("of %s accelerators; unknown for %s", format.Thousands(known), format.Thousands(all.Minus(known)))
	}
	return stat, all > 0
}

// taskStat counts the tasks that the reader sees.
func taskStat(list queries.List) views.Stat {
	running, waiting := 0, 0
	for _, row := range list.ByPriorityClass {
		running, waiting = running+row.Running, waiting+row.Pending+row.Preempted
	}
	return views.Stat{ID: "stat-tasks", Label: "Waiting tasks", Value: format.Thousands(int64(waiting)), Note: format.Thousands(int64(running)) + " running"}
}
