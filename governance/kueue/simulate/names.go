package simulate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Names replaces names in snapshots and questions by hashes. Names of one
// kind keep their order, and a name is always replaced by the same one, so that the
// report about renamed objects is the renamed report. Resources, UIDs, times and
// amounts stay.
type Names struct {
	salt       []byte
	to         map[nameKind]map[string]string
	collecting bool // the old names, before there are new ones
}

type nameKind string

const (
	nameNamespace nameKind = "n"
	nameQueue     nameKind = "q"
	nameLocal     nameKind = "l"
	nameCohort    nameKind = "c"
	nameFlavor    nameKind = "f"
	nameCheck     nameKind = "a"
	nameLimits    nameKind = "r"
	nameWorkload  nameKind = "w"
	namePodSet    nameKind = "p"
)

// NewNames returns names for the objects of a snapshot and a question. The salt
// keeps hashes from being computed for guessed names.
func NewNames(salt []byte, s *Snapshot, q *Question) *Names {
	n := &Names{salt: salt, to: map[nameKind]map[string]string{}, collecting: true}
	n.Snapshot(s)
	n.Question(q)
	n.collecting = false
	for kind, to := range n.to {
		end := ""
		if kind == nameNamespace { // keys of namespaced objects are ordered with the slash behind it
			end = "/"
		}
		names := slices.SortedFunc(maps.Keys(to), func(a, b string) int { return strings.Compare(a+end, b+end) })
		for i, name := range names {
			to[name] = fmt.Sprintf("%s%06d-%s", kind, i, n.hash(string(kind), name)[:8])
		}
	}
	return n
}

// hash returns the hash of a text, as a valid label key and value.
func (n *Names) hash(kind, text string) string {
	h := hmac.New(sha256.New, n.salt)
	fmt.Fprintf(h, "%s %s", kind, text)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// of returns the new name of an object, and collects the old one for NewNames.
func (n *Names) of(kind nameKind, name string) string {
	if n.collecting && name != "" {
		if n.to[kind] == nil {
			n.to[kind] = map[string]string{}
		}
		n.to[kind][name] = ""
	}
	return n.to[kind][name]
}

// Workload returns the new key of a Workload.
func (n *Names) Workload(key string) string {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		return n.of(nameWorkload, key)
	}
	return n.of(nameNamespace, namespace) + "/" + n.of(nameWorkload, name)
}

// label returns a key or a value of a label, taint or toleration. Numbers stay, since
// they can be compared.
func (n *Names) label(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil || text == "" {
		return text
	}
	return "x" + n.hash("label", text)
}

func (n *Names) labels(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	to := make(map[string]string, len(of))
	for key, value := range of {
		to[n.label(key)] = n.label(value)
	}
	return to
}

func mapped[S, T any](all []S, to func(S) T) []T {
	if all == nil {
		return nil
	}
	list := make([]T, len(all))
	for i := range all {
		list[i] = to(all[i])
	}
	return list
}

// Snapshot returns s with new names. Texts of conditions are dropped.
func (n *Names) Snapshot(s *Snapshot) *Snapshot {
	to := *s
	to.Namespaces, to.Flavors, to.Cohorts = mapped(s.Namespaces, n.namespace), mapped(s.Flavors, n.flavor), mapped(s.Cohorts, n.cohort)
	to.ClusterQueues, to.LocalQueues, to.AdmissionChecks = mapped(s.ClusterQueues, n.clusterQueue), mapped(s.LocalQueues, n.localQueue), mapped(s.AdmissionChecks, n.admissionCheck)
	to.LimitRanges, to.Workloads = mapped(s.LimitRanges, n.limitRange), mapped(s.Workloads, n.workload)
	return &to
}

// Question returns q with new names.
func (n *Names) Question(q *Question) *Question {
	to, c := *q, q.Change
	if q.Target != "" {
		to.Target = n.Workload(q.Target)
	}
	named := func(kind nameKind) func(string) string {
		return func(name string) string { return n.of(kind, name) }
	}
	namespaced := func(kind nameKind) func(types.NamespacedName) types.NamespacedName {
		return func(o types.NamespacedName) types.NamespacedName {
			return types.NamespacedName{Namespace: n.of(nameNamespace, o.Namespace), Name: n.of(kind, o.Name)}
		}
	}
	to.Change = Change{
		Configuration: c.Configuration, Namespaces: mapped(c.Namespaces, n.namespace), Flavors: mapped(c.Flavors, n.flavor), Cohorts: mapped(c.Cohorts, n.cohort),
		ClusterQueues: mapped(c.ClusterQueues, n.clusterQueue), LocalQueues: mapped(c.LocalQueues, n.localQueue), AdmissionChecks: mapped(c.AdmissionChecks, n.admissionCheck),
		LimitRanges: mapped(c.LimitRanges, n.limitRange), Workloads: mapped(c.Workloads, n.workload),
		Removed: Removed{
			Namespaces: mapped(c.Removed.Namespaces, named(nameNamespace)), Flavors: mapped(c.Removed.Flavors, named(nameFlavor)), Cohorts: mapped(c.Removed.Cohorts, named(nameCohort)),
			ClusterQueues: mapped(c.Removed.ClusterQueues, named(nameQueue)), AdmissionChecks: mapped(c.Removed.AdmissionChecks, named(nameCheck)),
			LocalQueues: mapped(c.Removed.LocalQueues, namespaced(nameLocal)), LimitRanges: mapped(c.Removed.LimitRanges, namespaced(nameLimits)), Workloads: mapped(c.Removed.Workloads, namespaced(nameWorkload)),
		},
	}
	to.Draws = nil
	for _, d := range q.Draws {
		to.Draws = append(to.Draws, Draw{RunTimes: RunTimes{Whole: n.durations(d.Whole), Remaining: n.durations(d.Remaining)}, Submissions: d.Submissions})
	}
	to.Submitted, to.Waiting = mapped(q.Submitted, n.workload), mapped(q.Waiting, n.Workload)
	return &to
}

func (n *Names) durations(of map[string]time.Duration) map[string]time.Duration {
	if of == nil {
		return nil
	}
	to := make(map[string]time.Duration, len(of))
	for key, d := range of {
		to[n.Workload(key)] = d
	}
	return to
}

func (n *Names) namespace(o *corev1.Namespace) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.of(nameNamespace, o.Name), Labels: n.labels(o.Labels)}}
}

func (n *Names) flavor(o *kueue.ResourceFlavor) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: n.of(nameFlavor, o.Name)}, Spec: kueue.ResourceFlavorSpec{
		NodeLabels: n.labels(o.Spec.NodeLabels), Tolerations: mapped(o.Spec.Tolerations, n.toleration),
		NodeTaints: mapped(o.Spec.NodeTaints, func(t corev1.Taint) corev1.Taint {
			return corev1.Taint{Key: n.label(t.Key), Value: n.label(t.Value), Effect: t.Effect}
		}),
	}}
}

func (n *Names) toleration(t corev1.Toleration) corev1.Toleration {
	t.Key, t.Value = n.label(t.Key), n.label(t.Value)
	return t
}

func (n *Names) cohort(o *kueue.Cohort) *kueue.Cohort {
	to := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: n.of(nameCohort, o.Name)}, Spec: *o.Spec.DeepCopy()}
	to.Spec.ParentName = kueue.CohortReference(n.of(nameCohort, string(o.Spec.ParentName)))
	n.groups(to.Spec.ResourceGroups)
	return to
}

// groups renames the flavors of resource groups in place.
func (n *Names) groups(all []kueue.ResourceGroup) {
	for f := range quota.Flavors(all) {
		f.Name = kueue.ResourceFlavorReference(n.of(nameFlavor, string(f.Name)))
	}
}

func (n *Names) clusterQueue(o *kueue.ClusterQueue) *kueue.ClusterQueue {
	to := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: n.of(nameQueue, o.Name), UID: o.UID, Generation: o.Generation, DeletionTimestamp: o.DeletionTimestamp},
		Spec:       *o.Spec.DeepCopy(), Status: kueue.ClusterQueueStatus{Conditions: conditions(o.Status.Conditions)},
	}
	to.Spec.CohortName = kueue.CohortReference(n.of(nameCohort, string(o.Spec.CohortName)))
	n.groups(to.Spec.ResourceGroups)
	if s := to.Spec.NamespaceSelector; s != nil {
		s.MatchLabels = n.labels(s.MatchLabels)
		for i := range s.MatchExpressions {
			e := &s.MatchExpressions[i]
			e.Key, e.Values = n.label(e.Key), mapped(e.Values, n.label)
		}
	}
	if s := to.Spec.AdmissionChecksStrategy; s != nil {
		for i := range s.AdmissionChecks {
			rule := &s.AdmissionChecks[i]
			rule.Name = kueue.AdmissionCheckReference(n.of(nameCheck, string(rule.Name)))
			for j, flavor := range rule.OnFlavors {
				rule.OnFlavors[j] = kueue.ResourceFlavorReference(n.of(nameFlavor, string(flavor)))
			}
		}
	}
	return to
}

func (n *Names) localQueue(o *kueue.LocalQueue) *kueue.LocalQueue {
	to := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: n.of(nameNamespace, o.Namespace), Name: n.of(nameLocal, o.Name)}, Spec: *o.Spec.DeepCopy()}
	to.Spec.ClusterQueue = kueue.ClusterQueueReference(n.of(nameQueue, string(o.Spec.ClusterQueue)))
	return to
}

func (n *Names) admissionCheck(o *kueue.AdmissionCheck) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: n.of(nameCheck, o.Name)}, Status: kueue.AdmissionCheckStatus{Conditions: conditions(o.Status.Conditions)}}
}

func (n *Names) limitRange(o *corev1.LimitRange) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: n.of(nameNamespace, o.Namespace), Name: n.of(nameLimits, o.Name)}, Spec: o.Spec}
}

// conditions returns conditions without their texts, which contain names, but for those
// that the engine reads.
func conditions(all []metav1.Condition) []metav1.Condition {
	return mapped(all, func(c metav1.Condition) metav1.Condition {
		if !TriedInEachCycle(c.Message) {
			c.Message = ""
		}
		return c
	})
}

func (n *Names) workload(o *kueue.Workload) *kueue.Workload {
	podSet := func(name kueue.PodSetReference) kueue.PodSetReference {
		return kueue.PodSetReference(n.of(namePodSet, string(name)))
	}
	to := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.of(nameNamespace, o.Namespace), Name: n.of(nameWorkload, o.Name), UID: o.UID, Generation: o.Generation, CreationTimestamp: o.CreationTimestamp, Annotations: n.annotations(o.Annotations)},
		Spec: kueue.WorkloadSpec{
			QueueName: kueue.LocalQueueName(n.of(nameLocal, string(o.Spec.QueueName))), Priority: o.Spec.Priority, Active: o.Spec.Active,
			PreemptionGates: mapped(o.Spec.PreemptionGates, func(g kueue.PreemptionGate) kueue.PreemptionGate {
				g.Name = "g-" + n.hash("gate", g.Name)
				return g
			}),
			PodSets: mapped(o.Spec.PodSets, func(s kueue.PodSet) kueue.PodSet {
				to := kueue.PodSet{Name: podSet(s.Name), Count: s.Count, MinCount: s.MinCount}
				if t := s.TopologyRequest; t != nil && t.PodSetGroupName != nil {
					to.TopologyRequest = &kueue.PodSetTopologyRequest{PodSetGroupName: new("g-" + n.hash("group", *t.PodSetGroupName))}
				}
				to.Template.Spec = n.pod(&s.Template.Spec)
				return to
			}),
		},
		Status: kueue.WorkloadStatus{
			Conditions: conditions(o.Status.Conditions), RequeueState: o.Status.RequeueState,
			ReclaimablePods: mapped(o.Status.ReclaimablePods, func(p kueue.ReclaimablePod) kueue.ReclaimablePod {
				return kueue.ReclaimablePod{Name: podSet(p.Name), Count: p.Count}
			}),
			AdmissionChecks: mapped(o.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) kueue.AdmissionCheckState {
				c.Name, c.Message, c.PodSetUpdates = kueue.AdmissionCheckReference(n.of(nameCheck, string(c.Name))), "", nil
				return c
			}),
			PreemptionGates: mapped(o.Status.PreemptionGates, func(g kueue.PreemptionGateState) kueue.PreemptionGateState {
				g.Name = "g-" + n.hash("gate", g.Name)
				return g
			}),
		},
	}
	if a := o.Status.Admission; a != nil {
		to.Status.Admission = &kueue.Admission{
			ClusterQueue: kueue.ClusterQueueReference(n.of(nameQueue, string(a.ClusterQueue))),
			PodSetAssignments: mapped(a.PodSetAssignments, func(s kueue.PodSetAssignment) kueue.PodSetAssignment {
				flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{}
				for name, flavor := range s.Flavors {
					flavors[name] = kueue.ResourceFlavorReference(n.of(nameFlavor, string(flavor)))
				}
				return kueue.PodSetAssignment{Name: podSet(s.Name), Flavors: flavors, ResourceUsage: s.ResourceUsage, Count: s.Count}
			}),
		}
	}
	return to
}

// annotations returns the annotations that Kueue's scheduler reads: numbers and
// booleans, keys of Workloads, and lists of flavors.
func (n *Names) annotations(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	to := make(map[string]string, len(of))
	for key, value := range of {
		switch {
		case value == "true" || value == "false":
			to[key] = value
		case strings.Contains(value, "/"):
			to[key] = n.Workload(value)
		case strings.HasSuffix(key, "/workload-allowed-resource-flavors"):
			to[key] = strings.Join(mapped(strings.Split(value, ","), func(f string) string { return n.of(nameFlavor, strings.TrimSpace(f)) }), ",")
		default:
			to[key] = n.label(value)
		}
	}
	return to
}

// pod returns what Kueue's scheduler reads of a pod.
func (n *Names) pod(p *corev1.PodSpec) corev1.PodSpec {
	containers := func(c corev1.Container) corev1.Container {
		return corev1.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	to := corev1.PodSpec{
		InitContainers: mapped(p.InitContainers, containers), Containers: mapped(p.Containers, containers), Resources: p.Resources, Overhead: p.Overhead,
		NodeSelector: n.labels(p.NodeSelector), Tolerations: mapped(p.Tolerations, n.toleration),
		TopologySpreadConstraints: mapped(p.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) corev1.TopologySpreadConstraint {
			return corev1.TopologySpreadConstraint{TopologyKey: n.label(c.TopologyKey)}
		}),
	}
	if p.RuntimeClassName != nil {
		to.RuntimeClassName = new(n.label(*p.RuntimeClassName))
	}
	if p.Affinity == nil || p.Affinity.NodeAffinity == nil {
		return to
	}
	required := p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.DeepCopy()
	to.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	if required != nil {
		for i := range required.NodeSelectorTerms {
			term := &required.NodeSelectorTerms[i]
			for j := range term.MatchExpressions {
				e := &term.MatchExpressions[j]
				e.Key, e.Values = n.label(e.Key), mapped(e.Values, n.label)
			}
			for j := range term.MatchFields { // keys are fields of nodes
				term.MatchFields[j].Values = mapped(term.MatchFields[j].Values, n.label)
			}
		}
	}
	return to
}
