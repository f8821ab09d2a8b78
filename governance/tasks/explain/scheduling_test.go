package explain

import (
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	"github.com/google/go-cmp/cmp"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Pods without a node wait for deleted pods only if these leave enough on a node that they
// may go to.
func TestPodsWaitForTerminatingPods(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	gpus := func(n resources.Amount) quota.Resources { return quota.Resources{"nvidia.com/gpu": n} }
	ending := func(node, name string, n resources.Amount, seconds int) TerminatingPod {
		return TerminatingPod{Node: node, Name: name, Requests: gpus(n), Until: now.Add(time.Duration(seconds) * time.Second)}
	}
	for name, tc := range map[string]struct {
		pods       []TerminatingPod
		want       Constraint
		wantPods   []string
		wantWithin time.Duration
	}{
		"none":                    {nil, NodesFull, nil, 0},
		"enough":                  {[]TerminatingPod{ending("a", "first", 2, 10), ending("a", "last", 2, 30)}, PodsTerminating, []string{"last", "first"}, 30 * time.Second},
		"too little on each node": {[]TerminatingPod{ending("a", "x", 2, 10), ending("b", "y", 2, 10)}, NodesFull, nil, 0},
		"on another pool's node":  {[]TerminatingPod{ending("other", "x", 8, 10)}, NodesFull, nil, 0},
		"overdue":                 {[]TerminatingPod{ending("a", "x", 4, -10)}, PodsTerminating, []string{"x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			node := func(name, pool string) Node {
				return Node{Name: name, Labels: map[string]string{"pool": pool}, Ready: true, Allocatable: gpus(8), Free: gpus(0)}
			}
			c := &Cluster{Now: now, Flavors: map[string]kueue.ResourceFlavorSpec{"p5": {NodeLabels: map[string]string{"pool": "p5"}}}, Nodes: []Node{node("a", "p5"), node("b", "p5"), node("other", "g6")}}
			task := Task{QuotaReserved: true, PodSets: []PodSet{{Name: "main", Count: 2, MinCount: 2, Requests: gpus(4)}}, Pods: &Pods{Unscheduled: 2, Flavors: map[string][]string{"main": {"p5"}}, Terminating: tc.pods}}
			v := Why(task, c)
			var names []string
			for _, p := range v.Terminating {
				names = append(names, p.Name)
			}
			if diff := cmp.Diff(tc.wantPods, names); v.Constraint != tc.want || v.EndWithin != tc.wantWithin || diff != "" {
				t.Errorf("got %s within %s, want %s within %s (-want +got):\n%s", v.Constraint, v.EndWithin, tc.want, tc.wantWithin, diff)
			}
			if c.Nodes[0].Free["nvidia.com/gpu"] != 0 {
				t.Error("the nodes of the cluster were changed")
			}
		})
	}
}
