package tasks

import (
	"fmt"
	"strings"
	"sync"
	"unique"

	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Of a Workload there may be many thousands, each with pod templates and what
// people and programs wrote beside it. What nobody here reads is not kept.
const (
	keptPrefix = "kueue.x-k8s.io/" // of labels and annotations
	keptText   = 2 << 10           // bytes of an annotation or of what Kueue says
	keptShapes = 4096              // groups of pods that equal Workloads share; twice as many at most
)

// shapes keeps one copy of what many objects have, and forgets what it has not
// seen for long. It is safe for use by several goroutines.
type shapes[V any] struct {
	mu         sync.Mutex
	young, old map[string]V
}

// one is the copy with a key, or made is from now on.
func (s *shapes[V]) one(key []byte, made V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.young[string(key)]; ok {
		return known
	}
	if known, ok := s.old[string(key)]; ok {
		made = known
	}
	if s.young == nil || len(s.young) >= keptShapes {
		s.old, s.young = s.young, map[string]V{}
	}
	s.young[string(key)] = made
	return made
}

// slimmer takes off Workloads what nobody reads, and has equal ones share the
// rest.
type slimmer struct{ sets shapes[[]kueue.PodSet] }

// slim is a Workload with what tasks, counts and explanations need: of its pods
// the sum of what their containers ask for, and what chooses their nodes. It
// changes w.
func (s *slimmer) slim(w *kueue.Workload) {
	w.ManagedFields = nil
	w.Labels, w.Annotations = kept(w.Labels), kept(w.Annotations)
	w.Namespace, w.GenerateName = same(w.Namespace), ""
	for i := range w.OwnerReferences {
		o := &w.OwnerReferences[i]
		o.APIVersion, o.Kind = same(o.APIVersion), same(o.Kind)
	}
	w.Spec.QueueName = kueue.LocalQueueName(same(string(w.Spec.QueueName)))
	if ref := w.Spec.PriorityClassRef; ref != nil {
		ref.Name = same(ref.Name)
	}
	w.Spec.PodSets = s.shared(w.Spec.PodSets)
	for i := range w.Status.Conditions {
		c := &w.Status.Conditions[i]
		c.Type, c.Reason, c.Message = same(c.Type), same(c.Reason), same(cut(c.Message))
	}
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		check.Message, check.PodSetUpdates = cut(check.Message), nil
	}
	if a := w.Status.Admission; a != nil {
		a.ClusterQueue = kueue.ClusterQueueReference(same(string(a.ClusterQueue)))
		for i := range a.PodSetAssignments {
			set := &a.PodSetAssignments[i]
			set.Name, set.TopologyAssignment = kueue.PodSetReference(same(string(set.Name))), nil
			for name, flavor := range set.Flavors {
				set.Flavors[name] = kueue.ResourceFlavorReference(same(string(flavor)))
			}
		}
	}
}

// shared is a Workload's groups of pods, the same slice for all Workloads with
// equal ones: read only.
func (s *slimmer) shared(sets []kueue.PodSet) []kueue.PodSet {
	slim := make([]kueue.PodSet, len(sets))
	var key []byte
	for i := range sets {
		set := kueue.PodSet{Name: sets[i].Name, Count: sets[i].Count, MinCount: sets[i].MinCount}
		set.Template.Spec = slimSpec(&sets[i].Template.Spec)
		slim[i] = set
		key = fmt.Appendf(key, "%s %d ", set.Name, set.Count)
		if set.MinCount != nil {
			key = fmt.Appendf(key, "from %d ", *set.MinCount)
		}
		text, err := set.Template.Spec.Marshal()
		if err != nil {
			return sets // it was read from such a text, so that this does not happen
		}
		key = fmt.Appendf(key, "%d ", len(text))
		key = append(key, text...)
	}
	return s.sets.one(key, slim)
}

// slimSpec is one container that asks for what the pod does, and what chooses its
// nodes.
func slimSpec(spec *corev1.PodSpec) corev1.PodSpec {
	requests := corev1.ResourceList{}
	asks := PodRequests(spec)
	for name := range asks {
		requests[corev1.ResourceName(name)] = asks.Quantity(name)
	}
	slim := corev1.PodSpec{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if len(requests) > 0 {
		slim.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		slim.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
	}
	return slim
}

// kept are the labels or annotations of Kueue's own.
func kept(all map[string]string) map[string]string {
	var few map[string]string
	for key, value := range all {
		if strings.HasPrefix(key, keptPrefix) {
			if few == nil {
				few = map[string]string{}
			}
			few[same(key)] = cut(value)
		}
	}
	return few
}

// same is the one copy of a text that many objects have.
func same(text string) string { return unique.Make(text).Value() }

// cut is how a text begins, at a whole character.
func cut(text string) string {
	if len(text) <= keptText {
		return text
	}
	return strings.ToValidUTF8(text[:keptText], "") + "…"
}

// requestSets keeps one copy of what many pods ask for.
type requestSets struct{ shapes[quota.Resources] }

func (s *requestSets) of(r quota.Resources) quota.Resources {
	var key []byte
	for _, name := range r.Names() {
		key = fmt.Appendf(key, "%s=%d ", name, r[name])
	}
	return s.one(key, r)
}
