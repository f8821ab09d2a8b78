package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/textdiff"
	"kuota.dev/kuota/governance/tasks/queries"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// existing are the objects in the cluster that a change can replace or remove.
type existing struct {
	queues     map[string]*kueue.ClusterQueue
	locals     map[types.NamespacedName]*kueue.LocalQueue
	flavors    map[string]*kueue.ResourceFlavor
	cohorts    map[string]*kueue.Cohort
	namespaces map[string]*corev1.Namespace
	workloads  []kueue.Workload
}

// inputs are what the objects of Kuota follow from.
type inputs struct {
	allocations []v1alpha1.ComputeAllocation
	departments []v1alpha1.Department
	policy      *v1alpha1.ClusterPolicy // nil for none
	types       catalog.Catalog
	naming      desired.Naming
}

// wanted are the objects that follow from inputs.
type wanted struct {
	queues     map[string]*applykueue.ClusterQueueApplyConfiguration
	locals     map[types.NamespacedName]*applykueue.LocalQueueApplyConfiguration
	flavors    map[string]*applykueue.ResourceFlavorApplyConfiguration
	namespaces map[string]bool
}

func (in *inputs) under() desired.Naming { return in.naming.Under(in.policy).In(in.departments) }

// owners returns the teams of ClusterQueues, by name.
func (in *inputs) owners() map[string]queries.QueueOwner {
	owners := map[string]queries.QueueOwner{}
	for i := range in.allocations {
		a := &in.allocations[i]
		for _, name := range desired.ClusterQueueNames(a, in.under()) {
			owners[name] = queries.QueueOwner{Team: a.Name, Namespace: cmp.Or(a.Status.Namespace, desired.NamespaceName(a, in.under()))}
		}
	}
	return owners
}

// objects returns the objects of all allocations.
func (in *inputs) objects() wanted {
	w := wanted{
		queues: map[string]*applykueue.ClusterQueueApplyConfiguration{}, locals: map[types.NamespacedName]*applykueue.LocalQueueApplyConfiguration{},
		flavors: map[string]*applykueue.ResourceFlavorApplyConfiguration{}, namespaces: map[string]bool{},
	}
	naming, ranking := in.under(), desired.RankingOf(in.policy)
	for i := range in.allocations {
		a := &in.allocations[i]
		if a.Spec.Observed() || a.DeletionTimestamp != nil {
			continue
		}
		resolved, _ := quota.Effective(a, in.types)
		if len(resolved.Pools) == 0 && len(a.Spec.Quota) > 0 {
			continue // blocked, and never applied
		}
		o := desired.BuildResolved(effective.Allocation(a, a.Status.Active), resolved, in.types, naming, ranking)
		for _, queue := range o.ClusterQueues() {
			w.queues[*queue.GetName()] = queue
		}
		for _, local := range o.LocalQueues() {
			w.locals[types.NamespacedName{Namespace: *local.GetNamespace(), Name: *local.GetName()}] = local
		}
		for _, flavor := range o.Flavors {
			w.flavors[*flavor.GetName()] = flavor
		}
		w.namespaces[*o.Namespace.GetName()] = true
	}
	return w
}

// changeOf returns the difference between the objects of two inputs, applied to the
// objects in the cluster. What an object differs in from Kuota's before is kept:
// no controller has corrected it yet, or its field is not Kuota's.
func changeOf(is *existing, before, after *inputs) (simulate.Change, error) {
	c := simulate.Change{}
	was, will := before.objects(), after.objects()
	for _, name := range slices.Sorted(maps.Keys(will.queues)) {
		if old := was.queues[name]; old != nil && reflect.DeepEqual(old.Spec, will.queues[name].Spec) {
			continue
		}
		queue, err := clusterQueue(is.queues[name], will.queues[name])
		if err != nil {
			return c, err
		}
		c.ClusterQueues = append(c.ClusterQueues, queue)
	}
	for key, config := range will.locals {
		if old := was.locals[key]; is.locals[key] != nil && old != nil && reflect.DeepEqual(old.Spec, config.Spec) {
			continue
		}
		local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := convert(config.Spec, &local.Spec); err != nil {
			return c, err
		}
		if present := is.locals[key]; present != nil && config.Spec.StopPolicy == nil {
			local.Spec.StopPolicy = present.Spec.StopPolicy
		}
		c.LocalQueues = append(c.LocalQueues, local)
	}
	for key := range was.locals {
		if will.locals[key] == nil && is.locals[key] != nil && managed.ByKuota(is.locals[key]) {
			c.Removed.LocalQueues = append(c.Removed.LocalQueues, key)
		}
	}
	var dropped []string // ClusterQueues of shares, which have no LocalQueue then
	for name := range was.queues {
		if will.queues[name] == nil {
			dropped = append(dropped, name)
		}
	}
	for name, config := range will.flavors {
		old, present := was.flavors[name], is.flavors[name]
		if present != nil && (!managed.ByKuota(present) || old != nil && reflect.DeepEqual(old.Spec, config.Spec)) {
			continue // an existing flavor of others is used as it is
		}
		flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := convert(config.Spec, &flavor.Spec); err != nil {
			return c, err
		}
		c.Flavors = append(c.Flavors, flavor)
	}
	for name := range will.namespaces {
		if is.namespaces[name] == nil {
			c.Namespaces = append(c.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
		}
	}
	releaseQueues(&c, is, dropped)
	sortChange(&c)
	return c, changeCohorts(&c, is, before, after)
}

// releaseQueues adds the deletion of ClusterQueues: one that has admitted tasks stays until they
// end, and admits no more.
func releaseQueues(c *simulate.Change, is *existing, dropped []string) {
	slices.Sort(dropped)
	for _, name := range dropped {
		queue := is.queues[name]
		switch {
		case queue == nil || !managed.ByKuota(queue):
		case max(queue.Status.AdmittedWorkloads, queue.Status.ReservingWorkloads) == 0:
			c.Removed.ClusterQueues = append(c.Removed.ClusterQueues, name)
		default:
			held := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: queue.Generation + 1}, Spec: *queue.Spec.DeepCopy()}
			held.Spec.StopPolicy = ptr.To(kueue.Hold)
			c.ClusterQueues = append(c.ClusterQueues, held)
		}
	}
}

// clusterQueue returns a ClusterQueue after Kuota applied what it wants of it. is is
// nil for a new one.
func clusterQueue(is *kueue.ClusterQueue, want *applykueue.ClusterQueueApplyConfiguration) (*kueue.ClusterQueue, error) {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: *want.GetName()}}
	var fields map[string]any
	if is != nil {
		queue.Generation = is.Generation + 1
		if err := convert(is.Spec, &fields); err != nil {
			return nil, err
		}
		delete(fields, "cohortName") // Kuota removes it from a queue that is to have none
	}
	var applied map[string]any
	if err := convert(want.Spec, &applied); err != nil {
		return nil, err
	}
	return queue, convert(merged(fields, applied), &queue.Spec)
}

// merged returns fields with those that are applied. A list is replaced as a whole.
func merged(fields, applied map[string]any) map[string]any {
	all := maps.Clone(fields)
	if all == nil {
		all = map[string]any{}
	}
	for name, value := range applied {
		if inner, ok := value.(map[string]any); ok {
			had, _ := all[name].(map[string]any) //nolint:errcheck // nil merges too
			value = merged(had, inner)
		}
		all[name] = value
	}
	return all
}

// convert turns an apply configuration or an object into another type with the same
// JSON.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("convert %T: %w", from, err)
	}
	return nil
}

// sortChange orders what was collected from maps.
func sortChange(c *simulate.Change) {
	byKey := func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(c.LocalQueues, func(a, b *kueue.LocalQueue) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(c.Removed.LocalQueues, byKey)
	slices.SortFunc(c.Flavors, func(a, b *kueue.ResourceFlavor) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Namespaces, func(a, b *corev1.Namespace) int { return strings.Compare(a.Name, b.Name) })
}

// changeCohorts adds the Cohorts of unallocated compute and of departments, as
// CohortReconciler writes them once the ClusterQueues have changed.
func changeCohorts(c *simulate.Change, is *existing, before, after *inputs) error {
	old, next := before.cohorts(is, nil), after.cohorts(is, c)
	for _, name := range slices.Sorted(maps.Keys(next)) {
		present := is.cohorts[name]
		if old[name] != nil && reflect.DeepEqual(old[name].Spec, next[name].Spec) || present != nil && !managed.ByKuota(present) {
			continue // Kuota does not write the Cohort of others
		}
		cohort := &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: next[name].Labels}}
		if err := convert(next[name].Spec, &cohort.Spec); err != nil {
			return err
		}
		c.Cohorts = append(c.Cohorts, cohort)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if next[name] == nil && is.cohorts[name] != nil && managed.ByKuota(is.cohorts[name]) {
			c.Removed.Cohorts = append(c.Removed.Cohorts, name)
		}
	}
	return nil
}

// cohorts returns the Cohorts of the ClusterQueues after a change, by name.
func (in *inputs) cohorts(is *existing, c *simulate.Change) map[string]*applykueue.CohortApplyConfiguration {
	queues, changed := maps.Clone(is.queues), map[string]bool{}
	if c != nil {
		for _, q := range c.ClusterQueues {
			queues[q.Name], changed[q.Name] = q, true
		}
		for _, name := range c.Removed.ClusterQueues {
			delete(queues, name)
		}
	}
	all := make([]kueue.ClusterQueue, 0, len(queues))
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		all = append(all, *queues[name])
	}
	naming := in.under()
	tree, wishes := desired.NewTree(desired.Inputs{
		Naming: naming, Types: in.types, Unallocated: in.policy != nil && in.policy.Spec.IdleCompute.ShareUnallocated, Departments: in.departments, Allocations: in.allocations,
		ClusterQueues: naming.Members(all, func(q *kueue.ClusterQueue) bool { return changed[q.Name] || managed.ByKuota(q) }),
	})
	tree.Settle(wishes.Departments, wishes.Queues)
	cohorts, _ := tree.Cohorts()
	by := map[string]*applykueue.CohortApplyConfiguration{}
	for _, cohort := range cohorts {
		by[*cohort.GetName()] = cohort
	}
	return by
}

// changePriorities gives unfinished Workloads the priority of their class.
func changePriorities(c *simulate.Change, is *existing, priorities map[string]int32) {
	for i := range is.workloads {
		w := &is.workloads[i]
		ref := w.Spec.PriorityClassRef
		if ref == nil || ref.Kind != kueue.WorkloadPriorityClassKind || finished(w) {
			continue
		}
		if value, known := priorities[ref.Name]; known && (w.Spec.Priority == nil || *w.Spec.Priority != value) {
			changed := live.Workload(w)
			changed.Spec.Priority = &value
			c.Workloads = append(c.Workloads, changed)
		}
	}
}

// deletion returns the inputs after the deletion of the allocations of teams, what it changes
// while admitted tasks are drained, and what it removes in the end.
func deletion(is *existing, before *inputs, teams []string) (after *inputs, change, removed simulate.Change, err error) {
	deleted := map[string]bool{}
	for _, team := range teams {
		deleted[team] = true
	}
	left := *before
	left.allocations = slices.DeleteFunc(slices.Clone(before.allocations), func(a v1alpha1.ComputeAllocation) bool { return deleted[a.Name] })
	drained := map[string]bool{} // ClusterQueues
	for i := range is.workloads {
		if w := &is.workloads[i]; w.Status.Admission != nil && !finished(w) {
			drained[string(w.Status.Admission.ClusterQueue)] = true
		}
	}
	owners := before.owners()
	maps.DeleteFunc(owners, func(_ string, owner queries.QueueOwner) bool { return !deleted[owner.Team] })
	removeQueues(&change, is, owners, drained)
	if err := changeCohorts(&change, is, before, &left); err != nil {
		return nil, change, removed, err
	}
	removed.Cohorts, removed.Removed.Cohorts = change.Cohorts, change.Removed.Cohorts
	removeQueues(&removed, is, owners, nil)
	return &left, change, removed, nil
}

// removeQueues adds what the deletion of allocations does to these ClusterQueues. While tasks
// are admitted, they are drained: the ClusterQueue then stays until they have ended,
// and is simulated without quota, so that their eviction is seen.
func removeQueues(c *simulate.Change, is *existing, of map[string]queries.QueueOwner, drained map[string]bool) {
	without := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		queue := is.queues[name]
		if queue == nil {
			continue
		}
		if !drained[name] {
			c.Removed.ClusterQueues = append(c.Removed.ClusterQueues, name)
			without[name] = true
			continue
		}
		emptied := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: queue.Generation + 1}, Spec: *queue.Spec.DeepCopy()}
		policy := kueue.HoldAndDrain
		emptied.Spec.StopPolicy = &policy
		for _, r := range quota.ResourceQuotas(emptied.Spec.ResourceGroups) {
			*r = kueue.ResourceQuota{Name: r.Name}
		}
		c.ClusterQueues = append(c.ClusterQueues, emptied)
	}
	for key, local := range is.locals {
		if without[string(local.Spec.ClusterQueue)] && managed.ByKuota(local) {
			c.Removed.LocalQueues = append(c.Removed.LocalQueues, key)
		}
	}
	sortChange(c)
}

// diffs returns how the objects of a change differ from those in the cluster, as
// YAML.
func diffs(c *simulate.Change, is *existing) []queries.ObjectDiff {
	var all []queries.ObjectDiff
	add := func(kind, name, queue string, before, after any) {
		if lines := compareYAML(objectYAML(kind, name, before), objectYAML(kind, name, after)); len(lines) > 0 {
			all = append(all, queries.ObjectDiff{Kind: kind, Name: name, Queue: queue, Lines: lines})
		}
	}
	for _, q := range c.ClusterQueues {
		var before any
		if present := is.queues[q.Name]; present != nil {
			before = present.Spec
		}
		add("ClusterQueue", q.Name, q.Name, before, q.Spec)
	}
	for _, name := range c.Removed.ClusterQueues {
		add("ClusterQueue", name, name, is.queues[name].Spec, nil)
	}
	for _, q := range c.LocalQueues {
		var before any
		if present := is.locals[types.NamespacedName{Namespace: q.Namespace, Name: q.Name}]; present != nil {
			before = present.Spec
		}
		add("LocalQueue", q.Name, string(q.Spec.ClusterQueue), before, q.Spec)
	}
	for _, key := range c.Removed.LocalQueues {
		add("LocalQueue", key.Name, string(is.locals[key].Spec.ClusterQueue), is.locals[key].Spec, nil)
	}
	for _, f := range c.Flavors {
		var before any
		if present := is.flavors[f.Name]; present != nil {
			before = present.Spec
		}
		add("ResourceFlavor", f.Name, "", before, f.Spec)
	}
	for _, cohort := range c.Cohorts {
		var before any
		if present := is.cohorts[cohort.Name]; present != nil {
			before = present.Spec
		}
		add("Cohort", cohort.Name, "", before, cohort.Spec)
	}
	for _, name := range c.Removed.Cohorts {
		add("Cohort", name, "", is.cohorts[name].Spec, nil)
	}
	return all
}

// objectYAML returns an object as YAML, with name and spec only; empty for no spec.
func objectYAML(kind, name string, spec any) string {
	if spec == nil {
		return ""
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": kueue.SchemeGroupVersion.String(), "kind": kind, "metadata": map[string]string{"name": name}, "spec": spec})
	if err != nil { // specs always encode
		panic(fmt.Sprintf("write %s %s: %v", kind, name, err))
	}
	return string(text)
}

// contextLines is how many equal lines a diff has around those that differ.
const contextLines = 3

// compareYAML returns the lines of two texts that differ, and some around them. Where
// equal lines are left out is one line of three dots.
func compareYAML(before, after string) []textdiff.Line {
	if before == after {
		return nil
	}
	all := textdiff.Texts(before, after)
	var shown []textdiff.Line
	for i, line := range all {
		switch {
		case textdiff.Differs(all[max(0, i-contextLines):min(len(all), i+contextLines+1)]):
			shown = append(shown, line)
		case len(shown) > 0 && shown[len(shown)-1].Text != "…" || i == 0:
			shown = append(shown, textdiff.Line{Text: "…"})
		}
	}
	return shown
}

func finished(w *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)
}
