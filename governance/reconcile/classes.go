package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/managed"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// classes is how priority classes and the tasks that name them stand, beside
// how they should.
type classes struct {
	want    map[string]int32                        // value by object name, of those that are ours to keep
	have    map[string]*kueue.WorkloadPriorityClass // ours
	tasks   map[string][]*kueue.Workload            // unfinished, by object name
	foreign []string                                // objects of names we need that are not ours
	kept    map[string]int                          // objects that the policy dropped, with the tasks that keep them
	drop    []string                                // objects that go
}

// classes reads the classes of a policy.
func (r *Ranking) classes(ctx context.Context, policy *v1alpha1.ClusterPolicy) (classes, error) {
	c := classes{
		want: map[string]int32{}, have: map[string]*kueue.WorkloadPriorityClass{},
		tasks: map[string][]*kueue.Workload{}, kept: map[string]int{},
	}
	for _, class := range policy.Spec.PriorityClasses {
		c.want[desired.ClassObject(class.Name)] = desired.ClassValue(class, policy.Spec.TaskPrioritization)
	}
	var workloads kueue.WorkloadList
	if err := r.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return c, err
	}
	for i := range workloads.Items {
		if class := classOf(&workloads.Items[i]); class != "" && !meta.IsStatusConditionTrue(workloads.Items[i].Status.Conditions, kueue.WorkloadFinished) {
			c.tasks[class] = append(c.tasks[class], &workloads.Items[i])
		}
	}
	var objects kueue.WorkloadPriorityClassList
	if err := r.List(ctx, &objects, client.UnsafeDisableDeepCopy); err != nil {
		return c, err
	}
	confirmed := strings.Split(policy.Annotations[v1alpha1.AnnotationDropClasses], ",")
	for i := range objects.Items {
		object := &objects.Items[i]
		_, wanted := c.want[object.Name]
		switch {
		case !managed.ByKuota(object):
			if wanted {
				c.foreign = append(c.foreign, object.Name)
				delete(c.want, object.Name)
			}
			continue
		case wanted:
		case len(c.tasks[object.Name]) == 0 || slices.ContainsFunc(confirmed, func(name string) bool { return desired.ClassObject(strings.TrimSpace(name)) == object.Name }):
			c.drop = append(c.drop, object.Name)
			continue
		default: // a task would lose its class when it is requeued
			c.kept[object.Name] = len(c.tasks[object.Name])
			c.want[object.Name] = keptValue(object, policy.Spec.TaskPrioritization)
		}
		c.have[object.Name] = object
	}
	return c, nil
}

// keptValue is what a class counts for that the policy dropped while tasks name
// it: what it did before.
func keptValue(object *kueue.WorkloadPriorityClass, prioritization v1alpha1.TaskPrioritization) int32 {
	if prioritization != v1alpha1.TaskRanking {
		return 0
	}
	weight, err := strconv.ParseInt(object.Annotations[desired.AnnotationWeight], 10, 32)
	if err != nil {
		return object.Value
	}
	return int32(weight)
}

// classOf is the object name of a task's class; empty for none.
func classOf(w *kueue.Workload) string {
	ref := w.Spec.PriorityClassRef
	if ref == nil || ref.Kind != kueue.WorkloadPriorityClassKind {
		return ""
	}
	return ref.Name
}

// change tells whether tasks would get another priority: a class has another
// value, or one is missing that tasks name with another value.
func (c classes) change() bool {
	for name, value := range c.want {
		if object := c.have[name]; object != nil && object.Value != value || object == nil && c.staleIn(name) > 0 {
			return true
		}
	}
	return false
}

// stale is how many unfinished tasks have another priority than their class.
func (c classes) stale() (n int) {
	for name := range c.want {
		n += c.staleIn(name)
	}
	return n
}

func (c classes) staleIn(name string) (n int) {
	for _, task := range c.tasks[name] {
		if stale(task, c.want[name]) {
			n++
		}
	}
	return n
}

func stale(task *kueue.Workload, value int32) bool {
	return task.Spec.Priority == nil || *task.Spec.Priority != value
}

// apply writes the classes of the policy, and deletes those that go.
func (r *Ranking) apply(ctx context.Context, policy *v1alpha1.ClusterPolicy, c classes) error {
	for _, class := range policy.Spec.PriorityClasses {
		if _, ours := c.want[desired.ClassObject(class.Name)]; !ours {
			continue
		}
		object := desired.Class(class, policy.Spec.TaskPrioritization)
		correction, err := applier{r.Client, r.Live}.apply(ctx, managed.NewObject("WorkloadPriorityClass", &kueue.WorkloadPriorityClass{}, object, object.ObjectMetaApplyConfiguration), false)
		if err != nil {
			return err
		}
		if correction != nil {
			r.Events.Eventf(policy, nil, corev1.EventTypeWarning, "Corrected", "Correct", "%s was changed by %s and corrected", correction.Object, correction.Manager)
		}
	}
	for name := range c.kept {
		if object := c.have[name]; object.Value != c.want[name] {
			patch := fmt.Appendf(nil, `{"value": %d}`, c.want[name])
			if err := client.IgnoreNotFound(r.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch), rankingOwner)); err != nil {
				return fmt.Errorf("write WorkloadPriorityClass %s: %w", name, err)
			}
		}
	}
	for _, name := range c.drop {
		object := &kueue.WorkloadPriorityClass{}
		object.Name = name
		if err := client.IgnoreNotFound(r.Delete(ctx, object)); err != nil {
			return fmt.Errorf("write WorkloadPriorityClass %s: %w", name, err)
		}
	}
	return nil
}

// rewriteAtOnce bounds how many tasks are rewritten here in one look.
const rewriteAtOnce = 100

// rewriteHere gives tasks that Kueue missed their priority. It makes a Workload
// from the class as it remembers it, and looks at it no more (0.19, by reading).
func (r *Ranking) rewriteHere(ctx context.Context, c classes) error {
	left, failed := rewriteAtOnce, []error{}
	for name, value := range c.want {
		for _, task := range c.tasks[name] {
			if !stale(task, value) {
				continue
			}
			if left--; left < 0 {
				return errors.Join(failed...)
			}
			patch := fmt.Appendf(nil, `{"spec": {"priority": %d}}`, value)
			if err := client.IgnoreNotFound(r.Patch(ctx, task.DeepCopy(), client.RawPatch(types.MergePatchType, patch), rankingOwner)); err != nil {
				failed = append(failed, fmt.Errorf("rewrite Workload %s/%s: %w", task.Namespace, task.Name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// rankingOwner is who changes single fields while the ranking changes.
const rankingOwner = client.FieldOwner(cluster.FieldManager + "-ranking")

const withoutPreemption = `{"spec": {"preemption": {"withinClusterQueue": "Never", "borrowWithinCohort": {"policy": "Never"}}}}`

// pauseQueues switches preemption by priority off in every queue of ours, also
// in those whose allocation is in trouble, and tells in how many of them Kueue
// has yet to take it. The queues are read from the cache, or from the API server
// where the cache might show one that was switched off and is on again.
func (r *Ranking) pauseQueues(ctx context.Context, reader client.Reader) (waiting, all int, err error) {
	var queues kueue.ClusterQueueList
	if err := reader.List(ctx, &queues, client.UnsafeDisableDeepCopy, client.MatchingLabels{desired.LabelManagedBy: desired.ManagedBy}); err != nil {
		return 0, 0, err
	}
	for i := range queues.Items {
		queue := &queues.Items[i]
		if queue.DeletionTimestamp != nil {
			continue // it admits nothing any more
		}
		all++
		if preemptsByPriority(queue) {
			waiting++
			if err := client.IgnoreNotFound(r.Patch(ctx, queue.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(withoutPreemption)), rankingOwner)); err != nil {
				return 0, 0, fmt.Errorf("pause ClusterQueue %s: %w", queue.Name, err)
			}
			continue
		}
		active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive)
		if active == nil || active.ObservedGeneration != queue.Generation {
			waiting++
		}
	}
	return waiting, all, nil
}

func preemptsByPriority(queue *kueue.ClusterQueue) bool {
	p := queue.Spec.Preemption
	return p != nil && (p.WithinClusterQueue != kueue.PreemptionPolicyNever && p.WithinClusterQueue != "" ||
		p.BorrowWithinCohort != nil && p.BorrowWithinCohort.Policy != kueue.BorrowWithinCohortPolicyNever && p.BorrowWithinCohort.Policy != "")
}
