package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/kueue/admitted"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/resources"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Condensed is a snapshot without what a question hardly depends on. What a question is about,
// and what it changes, stays:
//
//   - Cohorts that share no root with it are left out.
//   - Of the Workloads that wait in a ClusterQueue, the first ones of each sort stay, in Kueue's
//     order. They stay in the ClusterQueues that Kueue tries first: those of the same Cohort
//     before others.
//   - The admitted Workloads of a ClusterQueue that uses no more than its quota are one Workload
//     with their usage: none of them is preempted for another ClusterQueue. Of one that borrows,
//     those that Kueue preempts first stay.
//   - All other ClusterQueues of a Cohort are one that lends and uses what they do.
//
// It decides otherwise than the snapshot only where more Workloads start, or are preempted, than
// stayed.
type Condensed struct {
	*Snapshot
	waiting map[string]int   // left out, by ClusterQueue that stays
	merged  map[string]Queue // the other ClusterQueues
}

const (
	keptQueues   = 48        // with waiting Workloads
	keptLenders  = 96        // without, of which Kueue preempts first
	keptWaiting  = 3         // of each ClusterQueue, of different sorts
	keptScanned  = 24        // of which the first of each sort are looked for
	keptAdmitted = 16        // of each ClusterQueue that borrows, at most
	keptLeast    = 4         // and at least
	keptOwn      = 64        // of the ClusterQueues that a question is about, waiting and admitted
	mergedPrefix = "merged/" // begins the name of what is merged; no other name has a slash
)

// Condenser condenses one snapshot for several questions. It is safe for concurrent use.
type Condenser struct {
	snapshot     *Snapshot
	tree         tree
	cohorts      quota.Cohorts
	waiting, has map[string][]*kueue.Workload // by ClusterQueue, in Kueue's order
	byKey        map[types.NamespacedName]*kueue.Workload
	share        map[string]float64 // of what all have, that a ClusterQueue borrows, by its weight; 0 for none
}

// NewCondenser reads a snapshot.
func NewCondenser(s *Snapshot) *Condenser {
	c := &Condenser{
		snapshot: s, tree: newTree(s), waiting: map[string][]*kueue.Workload{}, has: map[string][]*kueue.Workload{},
		byKey: make(map[types.NamespacedName]*kueue.Workload, len(s.Workloads)), share: map[string]float64{}, cohorts: quota.Cohorts{},
	}
	for _, cohort := range s.Cohorts {
		c.cohorts[cohort.Name] = cohort
	}
	for _, w := range s.Workloads {
		c.byKey[namespaced(w)] = w
		if a := w.Status.Admission; a != nil && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadQuotaReserved) {
			c.has[string(a.ClusterQueue)] = append(c.has[string(a.ClusterQueue)], w)
		} else if name := c.tree.locals[types.NamespacedName{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}]; name != "" && ptr.Deref(w.Spec.Active, true) {
			c.waiting[name] = append(c.waiting[name], w)
		}
	}
	for _, all := range c.waiting {
		slices.SortFunc(all, inQueue)
	}
	for _, all := range c.has {
		slices.SortFunc(all, preemptedBefore)
	}
	total := quota.FlavorResourceQuantities{}
	for _, queue := range s.ClusterQueues {
		for fr, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
			total[fr] = total[fr].Plus(resources.AmountFromQuantity(fr.Resource, r.NominalQuota))
		}
	}
	for _, queue := range s.ClusterQueues {
		c.share[queue.Name] = shareOf(queue, c.has[queue.Name], total)
	}
	return c
}

// For returns the part of the snapshot that a question depends on. With a larger factor, so many
// times as much stays.
func (c *Condenser) For(q *Question, factor int) *Condensed {
	own, stays := c.about(q)
	roots := map[string]bool{} // none for all
	if q.narrow() {
		for name := range own {
			roots[c.tree.root[name]] = true
		}
		for _, queue := range q.Change.ClusterQueues { // which may move
			roots[c.cohorts.Root(string(queue.Spec.CohortName))] = true
		}
		delete(roots, "")
	}
	part := &Condensed{Snapshot: &Snapshot{}, waiting: map[string]int{}, merged: map[string]Queue{}}
	*part.Snapshot = *c.snapshot
	part.ClusterQueues, part.LocalQueues, part.Workloads = nil, nil, nil
	need := c.needs(q)
	var others []*kueue.ClusterQueue
	for _, queue := range c.snapshot.ClusterQueues {
		if len(roots) > 0 && !roots[c.tree.root[queue.Name]] {
			continue
		}
		if !own[queue.Name] {
			others = append(others, queue)
			continue
		}
		part.ClusterQueues = append(part.ClusterQueues, queue)
		part.waiting[queue.Name] = len(c.waiting[queue.Name])
		for i, w := range c.waiting[queue.Name] {
			if i < factor*keptOwn || stays[namespaced(w)] {
				part.Workloads = append(part.Workloads, w)
				part.waiting[queue.Name]--
			}
		}
		part.Workloads = append(part.Workloads, keepAdmitted(queue.Name, c.has[queue.Name], factor*keptOwn, stays)...)
	}
	others = c.keepQueues(part, others, need, factor)
	part.merge(c, others)
	for _, queue := range c.snapshot.LocalQueues {
		if _, stays := part.waiting[string(queue.Spec.ClusterQueue)]; stays {
			part.LocalQueues = append(part.LocalQueues, queue)
		}
	}
	return part
}

// keepQueues adds ClusterQueues that the question is not about to a part, and returns the others.
func (c *Condenser) keepQueues(part *Condensed, queues []*kueue.ClusterQueue, need map[corev1.ResourceName]float64, factor int) (rest []*kueue.ClusterQueue) {
	beside := map[kueue.CohortReference]bool{}
	for _, queue := range part.ClusterQueues {
		beside[queue.Spec.CohortName] = true
	}
	keep := func(queue *kueue.ClusterQueue, waiting []*kueue.Workload) {
		most := 0
		if c.share[queue.Name] > 0 {
			most = enough(c.has[queue.Name], need, factor)
		}
		part.ClusterQueues = append(part.ClusterQueues, queue)
		part.waiting[queue.Name] = len(c.waiting[queue.Name]) - len(waiting)
		part.Workloads = append(append(part.Workloads, waiting...), keepAdmitted(queue.Name, c.has[queue.Name], most, nil)...)
	}
	far := func(queue *kueue.ClusterQueue) int {
		if beside[queue.Spec.CohortName] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(queues, func(a, b *kueue.ClusterQueue) int {
		x, y := c.waiting[a.Name], c.waiting[b.Name]
		if len(x) == 0 || len(y) == 0 {
			return cmp.Compare(min(1, len(y)), min(1, len(x)))
		}
		return cmp.Or(cmp.Compare(far(a), far(b)), inQueue(x[0], y[0]))
	})
	n := 0
	for ; n < min(factor*keptQueues, len(queues)) && len(c.waiting[queues[n].Name]) > 0; n++ {
		keep(queues[n], firstOfEachSort(c.waiting[queues[n].Name], factor))
	}
	queues = queues[n:]
	slices.SortStableFunc(queues, func(a, b *kueue.ClusterQueue) int {
		x, y := c.share[a.Name], c.share[b.Name]
		if x == 0 || y == 0 || c.snapshot.Configuration.FairSharing != nil {
			return cmp.Compare(y, x)
		}
		return preemptedBefore(c.has[a.Name][0], c.has[b.Name][0])
	})
	for n = 0; n < min(factor*keptLenders, len(queues)) && c.share[queues[n].Name] > 0; n++ {
		keep(queues[n], nil)
	}
	return queues[n:]
}

// merge adds one ClusterQueue for those of each Cohort.
func (p *Condensed) merge(c *Condenser, queues []*kueue.ClusterQueue) {
	type sum struct {
		lends, uses quota.FlavorResourceQuantities
	}
	sums := map[kueue.CohortReference]*sum{}
	for _, queue := range queues {
		usage := quota.FlavorResourceQuantities{}
		for _, w := range c.has[queue.Name] {
			usage.Add(admitted.Usage(w))
		}
		p.merged[queue.Name] = Queue{Usage: usage, Pending: len(c.waiting[queue.Name])}
		of := sums[queue.Spec.CohortName]
		if of == nil {
			of = &sum{quota.FlavorResourceQuantities{}, quota.FlavorResourceQuantities{}}
			sums[queue.Spec.CohortName] = of
		}
		for fr, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
			nominal := resources.AmountFromQuantity(fr.Resource, r.NominalQuota)
			lends := nominal
			if r.LendingLimit != nil {
				lends = min(nominal, resources.AmountFromQuantity(fr.Resource, *r.LendingLimit))
			}
			of.lends[fr] = of.lends[fr].Plus(lends)
			of.uses[fr] = of.uses[fr].Plus(max(0, usage[fr].Minus(nominal.Minus(lends)))) // what it uses beyond what it keeps to itself
		}
	}
	for _, cohort := range slices.Sorted(maps.Keys(sums)) {
		of := sums[cohort]
		name := mergedPrefix + string(cohort)
		p.ClusterQueues = append(p.ClusterQueues, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: kueue.ClusterQueueSpec{
			CohortName: cohort, NamespaceSelector: &metav1.LabelSelector{}, QueueingStrategy: kueue.BestEffortFIFO, ResourceGroups: groupOf(of.lends),
		}})
		if w := withUsage(name, of.uses); len(w.Spec.PodSets) > 0 {
			p.Workloads = append(p.Workloads, w)
		}
	}
}

// groupOf returns a resource group with quota. All its flavors have the same resources.
func groupOf(nominal quota.FlavorResourceQuantities) []kueue.ResourceGroup {
	flavors, names := map[string]bool{}, map[string]bool{}
	for fr := range nominal {
		flavors[fr.Flavor], names[fr.Resource] = true, true
	}
	group := kueue.ResourceGroup{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		group.CoveredResources = append(group.CoveredResources, corev1.ResourceName(name))
	}
	for _, flavor := range slices.Sorted(maps.Keys(flavors)) {
		of := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor)}
		for _, name := range group.CoveredResources {
			of.Resources = append(of.Resources, kueue.ResourceQuota{Name: name, NominalQuota: nominal[quota.FlavorResource{Flavor: flavor, Resource: string(name)}].Quantity(string(name))})
		}
		group.Flavors = append(group.Flavors, of)
	}
	return []kueue.ResourceGroup{group}
}

// needs returns what the target of a question requests; nil if it has none.
func (c *Condenser) needs(q *Question) map[corev1.ResourceName]float64 {
	namespace, name, _ := strings.Cut(q.Target, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	w := c.byKey[key]
	if i := slices.IndexFunc(q.Change.Workloads, func(w *kueue.Workload) bool { return namespaced(w) == key }); i >= 0 {
		w = q.Change.Workloads[i]
	}
	if w == nil {
		return nil
	}
	need := map[corev1.ResourceName]float64{}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		for j := range set.Template.Spec.Containers {
			for name, amount := range set.Template.Spec.Containers[j].Resources.Requests {
				need[name] += float64(set.Count) * amount.AsApproximateFloat64()
			}
		}
	}
	return need
}

// enough returns how many of the Workloads of a ClusterQueue use together what is needed, so that
// no further one is preempted for it, at most factor × keptAdmitted.
func enough(all []*kueue.Workload, need map[corev1.ResourceName]float64, factor int) (n int) {
	if need == nil {
		return factor * keptAdmitted
	}
	left := maps.Clone(need)
	for n = 0; n < min(factor*keptAdmitted, len(all)) && (n < factor*keptLeast || len(left) > 0); n++ {
		for _, set := range all[n].Status.Admission.PodSetAssignments {
			for name, amount := range set.ResourceUsage {
				if left[name] -= amount.AsApproximateFloat64(); left[name] <= 0 {
					delete(left, name)
				}
			}
		}
	}
	return n
}

// about returns the ClusterQueues and the Workloads that a question is about.
func (c *Condenser) about(q *Question) (own map[string]bool, stays map[types.NamespacedName]bool) {
	own, stays = map[string]bool{}, map[types.NamespacedName]bool{}
	workload := func(w *kueue.Workload) {
		stays[namespaced(w)] = true
		for _, name := range c.tree.queuesOf(w) {
			own[name] = true
		}
	}
	keys := slices.Clone(q.Change.Removed.Workloads)
	if namespace, name, ok := strings.Cut(q.Target, "/"); ok {
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}
	for _, w := range q.Change.Workloads {
		keys = append(keys, namespaced(w))
		workload(w)
	}
	for _, key := range keys {
		if w := c.byKey[key]; w != nil {
			workload(w)
		}
	}
	for _, queue := range q.Change.ClusterQueues {
		own[queue.Name] = true
	}
	for _, name := range q.Change.Removed.ClusterQueues {
		own[name] = true
	}
	for _, queue := range q.Change.LocalQueues {
		own[string(queue.Spec.ClusterQueue)] = true
		own[c.tree.locals[namespaced(queue)]] = true
	}
	for _, key := range q.Change.Removed.LocalQueues {
		own[c.tree.locals[key]] = true
	}
	delete(own, "")
	return own, stays
}

// inQueue orders Workloads that wait as Kueue tries them.
func inQueue(a, b *kueue.Workload) int {
	return cmp.Or(cmp.Compare(priorityOf(b), priorityOf(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID)))
}

// preemptedBefore orders admitted Workloads as Kueue preempts them.
func preemptedBefore(a, b *kueue.Workload) int {
	return cmp.Or(cmp.Compare(priorityOf(a), priorityOf(b)), reservedAt(b).Compare(reservedAt(a).Time), strings.Compare(string(a.UID), string(b.UID)))
}

// firstOfEachSort returns the first Workloads of a queue, of different sorts.
func firstOfEachSort(waiting []*kueue.Workload, factor int) (kept []*kueue.Workload) {
	seen := map[string]bool{}
	for _, w := range waiting[:min(factor*keptScanned, len(waiting))] {
		if sort := sortOf(w); !seen[sort] && len(kept) < factor*keptWaiting {
			seen[sort] = true
			kept = append(kept, w)
		}
	}
	return kept
}

// sortOf returns what Workloads have in common that Kueue tries alike.
func sortOf(w *kueue.Workload) string {
	var text strings.Builder
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		fmt.Fprintf(&text, "%d ", set.Count)
		for j := range set.Template.Spec.Containers {
			requests := set.Template.Spec.Containers[j].Resources.Requests
			for _, name := range slices.Sorted(maps.Keys(requests)) {
				amount := requests[name]
				fmt.Fprintf(&text, "%s=%d ", name, resources.AmountFromQuantity(string(name), amount))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(set.Template.Spec.NodeSelector)) {
			text.WriteString(key + "=" + set.Template.Spec.NodeSelector[key] + " ")
		}
	}
	return text.String()
}

// keepAdmitted returns the first Workloads that use quota of a ClusterQueue, and one for the rest.
func keepAdmitted(queue string, all []*kueue.Workload, most int, stays map[types.NamespacedName]bool) (kept []*kueue.Workload) {
	if len(all) <= most+1 {
		return all
	}
	var rest []*kueue.Workload
	for i, w := range all {
		if i < most || stays[namespaced(w)] || meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted) {
			kept = append(kept, w)
		} else {
			rest = append(rest, w)
		}
	}
	if len(rest) > 0 {
		kept = append(kept, merge(queue, rest))
	}
	return kept
}

// shareOf returns the largest part of a resource of total that Workloads use beyond the nominal quota
// of their ClusterQueue, divided by its weight; 0 if it borrows nothing.
func shareOf(queue *kueue.ClusterQueue, all []*kueue.Workload, total quota.FlavorResourceQuantities) (share float64) {
	usage := quota.FlavorResourceQuantities{}
	for _, w := range all {
		usage.Add(admitted.Usage(w))
	}
	weight := 1.0
	if f := queue.Spec.FairSharing; f != nil && f.Weight != nil {
		weight = max(f.Weight.AsApproximateFloat64(), 1e-9)
	}
	for fr, r := range quota.ResourceQuotas(queue.Spec.ResourceGroups) {
		if borrowed := usage[fr].Minus(resources.AmountFromQuantity(fr.Resource, r.NominalQuota)); borrowed > 0 {
			share = max(share, float64(borrowed)/max(1, float64(total[fr]))/weight)
		}
	}
	return share
}

// merge returns a Workload with the usage of others.
func merge(queue string, all []*kueue.Workload) *kueue.Workload {
	usage := quota.FlavorResourceQuantities{}
	for _, w := range all {
		usage.Add(admitted.Usage(w))
	}
	w := withUsage(queue, usage)
	w.Namespace, w.Spec.QueueName = all[0].Namespace, all[0].Spec.QueueName
	return w
}

// withUsage returns a Workload with this usage, which Kueue preempts last.
func withUsage(queue string, usage quota.FlavorResourceQuantities) *kueue.Workload {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: mergedPrefix + queue, UID: types.UID(mergedPrefix + queue)},
		Spec:       kueue.WorkloadSpec{Priority: ptr.To[int32](math.MaxInt32), Active: ptr.To(true)},
		Status:     kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue)}},
	}
	sets := map[string]*kueue.PodSetAssignment{} // by flavor: a pod set gets one flavor for a resource
	for fr, amount := range usage {
		if amount == 0 {
			continue
		}
		set := sets[fr.Flavor]
		if set == nil {
			set = &kueue.PodSetAssignment{Count: ptr.To[int32](1), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}, ResourceUsage: corev1.ResourceList{}}
			sets[fr.Flavor] = set
		}
		name := corev1.ResourceName(fr.Resource)
		set.Flavors[name], set.ResourceUsage[name] = kueue.ResourceFlavorReference(fr.Flavor), amount.Quantity(fr.Resource)
	}
	for i, flavor := range slices.Sorted(maps.Keys(sets)) {
		set := sets[flavor]
		set.Name = kueue.PodSetReference(fmt.Sprintf("p%d", i))
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, *set)
		w.Spec.PodSets = append(w.Spec.PodSets, kueue.PodSet{Name: set.Name, Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: set.ResourceUsage}}}}}})
	}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition})
	}
	return w
}

// Complete corrects the ClusterQueues of a report about a condensed snapshot. ok is false if what
// was merged would be preempted: more would have had to stay.
func (p *Condensed) Complete(r *Report) (ok bool) {
	for name, change := range r.Queues {
		if strings.HasPrefix(name, mergedPrefix) {
			delete(r.Queues, name)
			continue
		}
		change.Before.Pending += p.waiting[name]
		change.After.Pending += p.waiting[name]
		r.Queues[name] = change
	}
	for name, queue := range p.merged {
		r.Queues[name] = QueueChange{queue, queue}
	}
	return !slices.ContainsFunc(slices.Concat(r.Preempted, r.Evicted), func(e Effect) bool { return strings.Contains(e.Workload, "/"+mergedPrefix) })
}

func priorityOf(w *kueue.Workload) int64 {
	boost, _ := strconv.ParseInt(w.Annotations[boostAnnotation], 10, 32)
	return int64(ptr.Deref(w.Spec.Priority, 0)) + boost
}

// boostAnnotation of a Workload adds to its priority.
const boostAnnotation = "kueue.x-k8s.io/priority-boost"

// reservedAt returns when quota was reserved for a Workload.
func reservedAt(w *kueue.Workload) metav1.Time {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
		return c.LastTransitionTime
	}
	return w.CreationTimestamp
}
