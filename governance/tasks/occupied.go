package tasks

import (
	"maps"

	"kuota.dev/kuota/governance/quota"
)

// Occupied is what tasks and pods take of the cluster at one moment.
type ClusterUsage struct {
	Nodes      map[string]NodeUsage                      // by name, of those that have pods
	Queues     map[string]quota.FlavorResourceQuantities // held, by ClusterQueue
	Namespaces map[string]NamespaceTasks                 // by namespace, of those that have tasks
}

// OnNode is what the pods of a node ask for that have not ended.
type NodeUsage struct {
	Pods     int64
	Requests quota.Resources            // by all of them
	Admitted map[string]quota.Resources // by those that Kueue admitted, by namespace
}

// InNamespace counts the tasks of a namespace.
type NamespaceTasks struct{ Running, Waiting int }

// Occupied is what is taken now, all of it as of one moment.
func (s *Service) ClusterUsage() ClusterUsage { return s.index.occupied() }

func (x *Index) occupied() ClusterUsage {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := ClusterUsage{
		Nodes: make(map[string]NodeUsage, len(x.loads)), Queues: make(map[string]quota.FlavorResourceQuantities, len(x.used)), Namespaces: make(map[string]NamespaceTasks),
	}
	for name, l := range x.loads {
		on := NodeUsage{Pods: l.pods, Requests: maps.Clone(l.asked), Admitted: make(map[string]quota.Resources, len(l.admitted))}
		for namespace, asked := range l.admitted {
			on.Admitted[namespace] = maps.Clone(asked)
		}
		o.Nodes[name] = on
	}
	for queue, amounts := range x.used {
		o.Queues[queue] = maps.Clone(amounts)
	}
	for key, y := range x.classes {
		in := o.Namespaces[key.namespace]
		for state, n := range y.states {
			switch {
			case state.Waiting():
				in.Waiting += n
			case state.UsesQuota():
				in.Running += n
			}
		}
		o.Namespaces[key.namespace] = in
	}
	return o
}
