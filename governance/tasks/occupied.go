package tasks

import (
	"maps"

	"kuota.dev/kuota/governance/quota"
)

// Occupied is what tasks and pods take of the cluster at one moment.
type Occupied struct {
	Nodes  map[string]OnNode                         // by name, of those that have pods
	Queues map[string]quota.FlavorResourceQuantities // held, by ClusterQueue
	Spaces map[string]InNamespace                    // by namespace, of those that have tasks
}

// OnNode is what the pods of a node ask for that have not ended.
type OnNode struct {
	Pods     int64
	Asked    quota.Resources            // by all of them
	Admitted map[string]quota.Resources // by those that Kueue admitted, by namespace
}

// InNamespace counts the tasks of a namespace.
type InNamespace struct{ Running, Waiting int }

// Occupied is what is taken now, all of it as of one moment.
func (s *Service) Occupied() Occupied { return s.index.occupied() }

func (x *Index) occupied() Occupied {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := Occupied{
		Nodes: make(map[string]OnNode, len(x.loads)), Queues: make(map[string]quota.FlavorResourceQuantities, len(x.used)), Spaces: make(map[string]InNamespace),
	}
	for name, l := range x.loads {
		on := OnNode{Pods: l.pods, Asked: maps.Clone(l.asked), Admitted: make(map[string]quota.Resources, len(l.admitted))}
		for namespace, asked := range l.admitted {
			on.Admitted[namespace] = maps.Clone(asked)
		}
		o.Nodes[name] = on
	}
	for queue, amounts := range x.used {
		o.Queues[queue] = maps.Clone(amounts)
	}
	for key, y := range x.classes {
		in := o.Spaces[key.namespace]
		for state, n := range y.states {
			switch {
			case state.Waiting():
				in.Waiting += n
			case state.Holding():
				in.Running += n
			}
		}
		o.Spaces[key.namespace] = in
	}
	return o
}
