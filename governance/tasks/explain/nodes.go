package explain

import (
	"maps"
	"slices"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Node is a node as the scheduler sees it.
type Node struct {
	Name        string
	Labels      map[string]string
	Taints      []corev1.Taint
	Ready       bool // and open for pods
	Allocatable quota.Resources
	Free        quota.Resources // not requested by any pod
}

// Fit is how the pods of a pod set fit on the nodes of a flavor. Quota does not
// tell: a pod has to fit on a single node.
type Fit struct {
	Flavor      string
	PodSet      string
	Requests    quota.Resources // of one pod
	Nodes       int             // that its pods may go to, whether ready or not
	Ready       int             // of Nodes
	FittingPods int64           // pods that would find a node now
	// Resource is the scarcest one of which nodes have too little for one pod.
	// Empty if there are no nodes, or if each resource suffices on some node.
	Resource    string
	Largest     resources.Amount // on the largest node, when nothing runs there
	LargestFree resources.Amount // of it on one node now
	TotalFree   resources.Amount // of it on all nodes now
}

// TooSmall reports whether no node is large enough even when nothing runs there.
func (f Fit) TooSmall() bool {
	return f.Nodes > 0 && f.Resource != "" && f.Largest < f.Requests[f.Resource]
}

// Fragmented reports whether enough is free on all nodes together, but on no single
// one.
func (f Fit) Fragmented() bool {
	return !f.TooSmall() && f.FittingPods == 0 && f.Resource != "" && f.TotalFree >= f.Requests[f.Resource]
}

// fit returns how the pods of a set fit on the nodes of a flavor.
func fit(set PodSet, name string, flavor kueue.ResourceFlavorSpec, nodes []Node) Fit {
	f := Fit{Flavor: name, PodSet: set.Name, Requests: set.Requests}
	requests := maps.Clone(set.Requests)
	if requests == nil {
		requests = quota.Resources{}
	}
	requests[pods] = 1
	largest, most, sum := quota.Resources{}, quota.Resources{}, quota.Resources{}
	for i := range nodes {
		n := &nodes[i]
		if !matchesNode(n, set.Spec, flavor) {
			continue
		}
		f.Nodes++
		for name := range requests {
			largest[name] = max(largest[name], n.Allocatable[name])
		}
		if !n.Ready {
			continue
		}
		f.Ready++
		places := int64(-1)
		for name, each := range requests {
			if _, counted := n.Allocatable[name]; each == 0 || name == pods && !counted {
				continue
			}
			free := max(0, n.Free[name])
			most[name] = max(most[name], free)
			sum[name] = sum[name].Plus(free)
			if here := free.Per(each); places < 0 || here < places {
				places = here
			}
		}
		f.FittingPods += max(0, places)
	}
	for _, name := range slices.Backward(requests.Names()) { // accelerators come first, and so decide
		each := requests[name]
		if name == pods && largest[name] == 0 {
			continue // not reported
		}
		short, shorter := most[name] < each, f.Resource != "" && largest[f.Resource] < requests[f.Resource]
		if each > 0 && (largest[name] < each || short && !shorter) {
			f.Resource = name
		}
	}
	if f.Resource == pods {
		f.Requests = requests
	}
	if f.Resource != "" {
		f.Largest, f.LargestFree, f.TotalFree = largest[f.Resource], most[f.Resource], sum[f.Resource]
	}
	return f
}

// matchesNode reports whether a node has a flavor and takes such pods.
func matchesNode(n *Node, spec *corev1.PodSpec, flavor kueue.ResourceFlavorSpec) bool {
	for key, value := range flavor.NodeLabels {
		if n.Labels[key] != value {
			return false
		}
	}
	if spec == nil {
		spec = &corev1.PodSpec{}
	}
	if _, repelled := untoleratedTaint(n.Taints, slices.Concat(spec.Tolerations, flavor.Tolerations)); repelled {
		return false
	}
	return matchesAffinity(n.Name, n.Labels, spec)
}

// untoleratedTaint returns a taint that such tolerations do not tolerate.
func untoleratedTaint(taints []corev1.Taint, tolerations []corev1.Toleration) (corev1.Taint, bool) {
	return scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
}

// matchesAffinity reports whether a node matches the node selector and affinity of
// a pod.
func matchesAffinity(name string, labels map[string]string, spec *corev1.PodSpec) bool {
	wanted := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: spec.Affinity}})
	ok, err := wanted.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	return err == nil && ok
}

// onlyKeys returns a pod spec with the node requirements on the labels of a flavor: Kueue
// leaves the rest to the scheduler.
func onlyKeys(spec *corev1.PodSpec, labels map[string]string) *corev1.PodSpec {
	few := &corev1.PodSpec{NodeSelector: maps.Clone(spec.NodeSelector)}
	maps.DeleteFunc(few.NodeSelector, func(key, _ string) bool { _, ok := labels[key]; return !ok })
	if a := spec.Affinity; a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return few
	}
	var terms []corev1.NodeSelectorTerm
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var asked []corev1.NodeSelectorRequirement
		for _, e := range term.MatchExpressions {
			if _, ok := labels[e.Key]; ok {
				asked = append(asked, e)
			}
		}
		if len(asked) == 0 { // one term has no requirement on flavors
			return few
		}
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: asked})
	}
	if len(terms) > 0 {
		few.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	return few
}
