package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// There may be many thousands of Workloads, each with pod templates and
// annotations. The cache drops what the console does not read.
const (
	maxText     = 2 << 10 // bytes of an annotation or a message
	maxInterned = 4096    // groups of pods that equal Workloads share; twice as many at most
)

// keptAnnotations are those that tasks are read from, and those that Kueue's
// scheduler reads.
var keptAnnotations = []string{
	tasks.AdmissionGatedByAnnotation, tasks.SliceNameAnnotation, tasks.SliceReplacementAnnotation, tasks.PriorityBoostAnnotation, loopguard.MarkAnnotation,
	tasks.ElasticJobAnnotation, tasks.AllowedFlavorsAnnotation,
}

// internPool keeps one copy of values that many objects share, and drops those that
// were not used for long. It is safe for concurrent use.
type internPool[V any] struct {
	mu         sync.Mutex
	young, old map[string]V
}

// intern returns the interned value of key, or interns value.
func (s *internPool[V]) intern(key []byte, value V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.young[string(key)]; ok {
		return known
	}
	if known, ok := s.old[string(key)]; ok {
		value = known
	}
	if s.young == nil || len(s.young) >= maxInterned {
		s.old, s.young = s.young, map[string]V{}
	}
	s.young[string(key)] = value
	return value
}

// slimmer drops what the console does not read from Workloads, and makes equal ones
// share the rest.
type slimmer struct {
	sets        internPool[[]kueue.PodSet]
	requests    internPool[[]kueue.PodSetRequest]
	assignments internPool[[]kueue.PodSetAssignment]
}

// slim reduces w in place to what tasks, figures, explanations and Kueue's scheduler
// read: of its pods the resources of their containers, and what selects their nodes.
// The fields are listed in decision 0043.
func (s *slimmer) slim(w *kueue.Workload) {
	w.ManagedFields = nil
	ownByElasticJob(w)
	w.Labels, w.Annotations = nil, keptAnnotationsOf(w.Annotations)
	w.Namespace, w.GenerateName = intern(w.Namespace), ""
	for i := range w.OwnerReferences {
		o := &w.OwnerReferences[i]
		o.APIVersion, o.Kind = intern(o.APIVersion), intern(o.Kind)
	}
	w.Spec.QueueName = kueue.LocalQueueName(intern(string(w.Spec.QueueName)))
	if ref := w.Spec.PriorityClassRef; ref != nil {
		ref.Name = intern(ref.Name)
	}
	w.Spec.PodSets = s.shared(w.Spec.PodSets)
	w.Status.Conditions = slices.Clone(w.Status.Conditions) // without spare capacity
	for i := range w.Status.Conditions {
		c := &w.Status.Conditions[i]
		c.Type, c.Reason, c.Message = intern(c.Type), intern(c.Reason), intern(truncate(c.Message))
	}
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		check.Message, check.PodSetUpdates = truncate(check.Message), nil
	}
	w.Status.ResourceRequests = s.counted(w.Status.ResourceRequests)
	if a := w.Status.Admission; a != nil {
		a.ClusterQueue = kueue.ClusterQueueReference(intern(string(a.ClusterQueue)))
		a.PodSetAssignments = s.assigned(a.PodSetAssignments)
	}
}

// ownByElasticJob makes the ElasticJob whose Job a Workload belongs to its controller,
// beside the Job. The Job has no owner reference to it, and labels of its pods.
func ownByElasticJob(w *kueue.Workload) {
	owner := metav1.GetControllerOfNoCopy(w)
	if owner == nil || owner.Kind != "Job" || len(w.Spec.PodSets) != 1 {
		return
	}
	name, uid := v1alpha1.ElasticJobOf(owner.Name, w.Spec.PodSets[0].Template.Labels)
	if uid == "" {
		return
	}
	owner.Controller = nil
	w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticJobKind, Name: name, UID: uid, Controller: ptr.To(true),
	})
}

// assigned returns the assignments of an admission, the same slice for all equal
// ones: read only.
func (s *slimmer) assigned(sets []kueue.PodSetAssignment) []kueue.PodSetAssignment {
	slim := make([]kueue.PodSetAssignment, len(sets)) // sets may be shared already, by a watch that slims twice
	var key []byte
	for i := range sets {
		set := &slim[i]
		*set = sets[i]
		set.TopologyAssignment, set.DelayedTopologyRequest = nil, nil
		key = fmt.Appendf(key, "%q ", set.Name)
		if set.Count != nil {
			key = fmt.Appendf(key, "%d ", *set.Count)
		}
		for _, name := range slices.Sorted(maps.Keys(set.Flavors)) {
			key = fmt.Appendf(key, "%q in %q ", name, set.Flavors[name])
		}
		key = appendAmounts(key, set.ResourceUsage)
	}
	return s.assignments.intern(key, slim)
}

// counted returns the requests that Kueue counts of a pending Workload, shared like
// assigned.
func (s *slimmer) counted(sets []kueue.PodSetRequest) []kueue.PodSetRequest {
	var key []byte
	for i := range sets {
		key = fmt.Appendf(key, "%q ", sets[i].Name)
		key = appendAmounts(key, sets[i].Resources)
	}
	return s.requests.intern(key, sets)
}

func appendAmounts(key []byte, list corev1.ResourceList) []byte {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		key = fmt.Appendf(key, "%q is %s ", name, amount.String())
	}
	return append(key, '\n')
}

// shared returns the pod sets of a Workload, the same slice for all equal ones:
// read only.
func (s *slimmer) shared(sets []kueue.PodSet) []kueue.PodSet {
	slim := make([]kueue.PodSet, len(sets))
	var key []byte
	for i := range sets {
		set := kueue.PodSet{Name: sets[i].Name, Count: sets[i].Count, MinCount: sets[i].MinCount}
		set.Template.Spec = slimSpec(&sets[i].Template.Spec)
		if t := sets[i].TopologyRequest; t != nil {
			set.TopologyRequest = &kueue.PodSetTopologyRequest{PodSetGroupName: t.PodSetGroupName}
			key = fmt.Appendf(key, "in %q ", ptr.Deref(t.PodSetGroupName, ""))
		}
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
	return s.sets.intern(key, slim)
}

// slimSpec returns a pod spec with the resources of the pod's containers, and what
// selects its nodes.
func slimSpec(spec *corev1.PodSpec) corev1.PodSpec {
	slim := corev1.PodSpec{
		InitContainers: slimContainers(spec.InitContainers), Containers: slimContainers(spec.Containers), Resources: spec.Resources, Overhead: spec.Overhead,
		RuntimeClassName: spec.RuntimeClassName, ResourceClaims: spec.ResourceClaims, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
		TopologySpreadConstraints: rest(spec),
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		slim.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
	}
	return slim
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, len(containers))
	for i := range containers {
		from := &containers[i]
		slim[i] = corev1.Container{RestartPolicy: from.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: from.Resources.Requests, Limits: from.Resources.Limits}}
	}
	return slim
}

// restKey is the prefix of the topology key of the one constraint in slim pod specs
// that have more than what is kept.
const restKey = "kuota.dev/rest-"

// rest returns one constraint for all fields that are not kept, and that Kueue
// compares: of Workloads that are equal in them, it tries one. Nothing else reads
// it.
func rest(spec *corev1.PodSpec) []corev1.TopologySpreadConstraint {
	if c := spec.TopologySpreadConstraints; len(c) == 1 && strings.HasPrefix(c[0].TopologyKey, restKey) {
		return c // slimmed before
	}
	of := corev1.PodSpec{Priority: spec.Priority, TopologySpreadConstraints: spec.TopologySpreadConstraints}
	if a := spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0) {
		of.Affinity = &corev1.Affinity{PodAffinity: a.PodAffinity, PodAntiAffinity: a.PodAntiAffinity}
		if a.NodeAffinity != nil {
			of.Affinity.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution}
		}
	}
	ports := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			of.Containers = append(of.Containers, corev1.Container{Ports: containers[i].Ports})
			ports = ports || len(containers[i].Ports) > 0
		}
	}
	if !ports && of.Priority == nil && len(of.TopologySpreadConstraints) == 0 && of.Affinity == nil {
		return nil
	}
	text, err := of.Marshal()
	if err != nil {
		return spec.TopologySpreadConstraints // it was read from such a text, so that this does not happen
	}
	sum := sha256.Sum256(text)
	return []corev1.TopologySpreadConstraint{{TopologyKey: restKey + hex.EncodeToString(sum[:8])}}
}

// keptAnnotationsOf returns the annotations of keptAnnotations.
func keptAnnotationsOf(all map[string]string) map[string]string {
	var few map[string]string
	for _, key := range keptAnnotations {
		if value, has := all[key]; has {
			if few == nil {
				few = map[string]string{}
			}
			few[key] = truncate(value)
		}
	}
	return few
}

// intern returns the one copy of a string that many objects have.
func intern(text string) string { return unique.Make(text).Value() }

// truncate returns at most maxText bytes of a text, cut between characters.
func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// requestSets keeps one copy of requests that many pods or tasks share.
type requestSets struct{ internPool[quota.Resources] }

func (s *requestSets) of(r quota.Resources) quota.Resources {
	var key []byte
	for _, name := range r.Names() {
		key = fmt.Appendf(key, "%s=%d ", name, r[name])
	}
	return s.intern(key, r)
}

// amountSets keeps one copy of usage that many tasks share.
type amountSets struct {
	internPool[quota.FlavorResourceQuantities]
}

func (s *amountSets) of(amounts quota.FlavorResourceQuantities) quota.FlavorResourceQuantities {
	keys := slices.SortedFunc(maps.Keys(amounts), func(a, b quota.FlavorResource) int {
		return cmp.Or(strings.Compare(a.Flavor, b.Flavor), strings.Compare(a.Resource, b.Resource))
	})
	var key []byte
	for _, fr := range keys {
		key = fmt.Appendf(key, "%q %q %d ", fr.Flavor, fr.Resource, amounts[fr])
	}
	return s.intern(key, amounts)
}
