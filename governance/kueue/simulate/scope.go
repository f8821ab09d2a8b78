package simulate

import (
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/quota"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Scope returns the roots of the cohorts that a question can concern, sorted: those
// of its target and of what its change touches. ok is false if that is all of them.
// A ClusterQueue without a cohort is a root by itself.
func (q *Question) Scope(s *Snapshot) (roots []string, ok bool) {
	if !q.narrow() {
		return nil, false
	}
	c := &q.Change
	found := map[string]bool{}
	for _, state := range []*Snapshot{s, c.Apply(s)} {
		t := newTree(state)
		queues := slices.Clone(c.Removed.ClusterQueues)
		for _, o := range c.ClusterQueues {
			queues = append(queues, o.Name)
		}
		locals := slices.Clone(c.Removed.LocalQueues)
		for _, o := range c.LocalQueues {
			locals = append(locals, namespaced(o))
		}
		touched := map[types.NamespacedName]bool{}
		for _, key := range c.Removed.Workloads {
			touched[key] = true
		}
		for _, o := range c.Workloads {
			touched[namespaced(o)] = true
		}
		if namespace, name, ok := strings.Cut(q.Target, "/"); ok {
			touched[types.NamespacedName{Namespace: namespace, Name: name}] = true
		}
		if len(touched) > 0 {
			for _, w := range state.Workloads {
				if touched[namespaced(w)] {
					queues = append(queues, t.queuesOf(w)...)
				}
			}
		}
		for _, key := range locals {
			queues = append(queues, t.locals[key])
		}
		for _, name := range queues {
			if root, exists := t.root[name]; exists {
				found[root] = true
			}
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return slices.Sorted(maps.Keys(found)), true
}

// narrow reports whether a change concerns only cohorts of the ClusterQueues and Workloads that it
// names.
func (q *Question) narrow() bool {
	c := &q.Change
	return c.Configuration == nil && len(c.Cohorts)+len(c.Flavors)+len(c.Namespaces)+len(c.AdmissionChecks)+len(c.LimitRanges) == 0 &&
		len(c.Removed.Cohorts)+len(c.Removed.Flavors)+len(c.Removed.Namespaces)+len(c.Removed.AdmissionChecks)+len(c.Removed.LimitRanges) == 0
}

// Within returns the part of a snapshot that belongs to these roots.
func (s *Snapshot) Within(roots []string) *Snapshot {
	t := newTree(s)
	in := func(queue string) bool { return slices.Contains(roots, t.root[queue]) }
	part := *s
	part.ClusterQueues, part.LocalQueues, part.Workloads = nil, nil, nil
	for _, q := range s.ClusterQueues {
		if in(q.Name) {
			part.ClusterQueues = append(part.ClusterQueues, q)
		}
	}
	for _, q := range s.LocalQueues {
		if in(string(q.Spec.ClusterQueue)) {
			part.LocalQueues = append(part.LocalQueues, q)
		}
	}
	for _, w := range s.Workloads {
		if slices.ContainsFunc(t.queuesOf(w), in) {
			part.Workloads = append(part.Workloads, w)
		}
	}
	return &part
}

// tree is which root each ClusterQueue belongs to.
type tree struct {
	root   map[string]string // by name of the ClusterQueue
	locals map[types.NamespacedName]string
}

func newTree(s *Snapshot) tree {
	cohorts := quota.Cohorts{}
	for _, c := range s.Cohorts {
		cohorts[c.Name] = c
	}
	t := tree{root: map[string]string{}, locals: map[types.NamespacedName]string{}}
	for _, q := range s.ClusterQueues {
		root := cohorts.Root(string(q.Spec.CohortName))
		if root == "" { // without a cohort, or in a cycle, where nothing happens
			root = "ClusterQueue/" + q.Name
		}
		t.root[q.Name] = root
	}
	for _, q := range s.LocalQueues {
		t.locals[namespaced(q)] = string(q.Spec.ClusterQueue)
	}
	return t
}

// queuesOf returns the ClusterQueues of a Workload: that of its LocalQueue, and that
// whose quota it uses.
func (t tree) queuesOf(w *kueue.Workload) (names []string) {
	if name := t.locals[types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; name != "" {
		names = append(names, name)
	}
	if a := w.Status.Admission; a != nil {
		names = append(names, string(a.ClusterQueue))
	}
	return names
}
