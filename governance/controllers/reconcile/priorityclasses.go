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
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// priorityClasses is the desired and the observed state of
// WorkloadPriorityClasses, by object name.
type priorityClasses struct {
	desired   map[string]int32                        // value by object name, of those that the policy or tasks need
	existing  map[string]*kueue.WorkloadPriorityClass // ours
	workloads map[string][]*kueue.Workload            // unfinished, by object name
	unmanaged []string                                // objects of other managers with a name of the policy
	retained  map[string]int                          // objects that the policy dropped, with the tasks that keep them
	obsolete  []string                                // objects to delete
}

// readPriorityClasses reads the classes of a policy from the cache.
func (r *RankingReconciler) readPriorityClasses(ctx context.Context, policy *v1alpha1.ClusterPolicy) (priorityClasses, error) {
	c := priorityClasses{
		desired: map[string]int32{}, existing: map[string]*kueue.WorkloadPriorityClass{},
		workloads: map[string][]*kueue.Workload{}, retained: map[string]int{},
	}
	specs := map[string]*applykueue.WorkloadPriorityClassApplyConfiguration{}
	for _, object := range desired.PriorityClasses(&policy.Spec) {
		specs[*object.Name], c.desired[*object.Name] = object, *object.Value
	}
	var workloads kueue.WorkloadList
	if err := r.List(ctx, &workloads, client.UnsafeDisableDeepCopy); err != nil {
		return c, err
	}
	for i := range workloads.Items {
		if class := priorityClassOf(&workloads.Items[i]); class != "" && !meta.IsStatusConditionTrue(workloads.Items[i].Status.Conditions, kueue.WorkloadFinished) {
			c.workloads[class] = append(c.workloads[class], &workloads.Items[i])
		}
	}
	var objects kueue.WorkloadPriorityClassList
	if err := r.List(ctx, &objects, client.UnsafeDisableDeepCopy); err != nil {
		return c, err
	}
	confirmed := strings.Split(policy.Annotations[v1alpha1.AnnotationDropClasses], ",")
	for i := range objects.Items {
		object := &objects.Items[i]
		_, wanted := c.desired[object.Name]
		switch {
		case object.Name == desired.GrowthClass: // it belongs to no policy
			continue
		case !managed.ByKuota(object) && wanted && managed.Describes(specs[object.Name], object):
			// The apply only adds Kuota's labels.
		case !managed.ByKuota(object):
			if wanted {
				c.unmanaged = append(c.unmanaged, object.Name)
				delete(c.desired, object.Name)
			}
			continue
		case wanted:
		case len(c.workloads[object.Name]) == 0 || slices.ContainsFunc(confirmed, func(name string) bool { return droppedName(strings.TrimSpace(name)) == object.Name }):
			c.obsolete = append(c.obsolete, object.Name)
			continue
		default: // a task would lose its class when it is requeued
			c.retained[object.Name] = len(c.workloads[object.Name])
			c.desired[object.Name] = retainedValue(object, policy.Spec.TaskPrioritization)
		}
		c.existing[object.Name] = object
	}
	return c, nil
}

// droppedName returns the name of the object of a class in AnnotationDropClasses.
func droppedName(class string) string {
	if desired.IsNumber(class) {
		return class
	}
	return desired.PriorityClassName(class)
}

// retainedValue returns the value of a class that is no longer in the policy
// but has unfinished tasks: the one it had.
func retainedValue(object *kueue.WorkloadPriorityClass, prioritization v1alpha1.TaskPrioritization) int32 {
	if prioritization != v1alpha1.TaskRanking {
		return 0
	}
	weight, err := strconv.ParseInt(object.Annotations[desired.AnnotationWeight], 10, 32)
	if err != nil {
		return object.Value
	}
	return int32(weight)
}

// priorityClassOf returns the name of a Workload's WorkloadPriorityClass; empty
// if it has none.
func priorityClassOf(w *kueue.Workload) string {
	ref := w.Spec.PriorityClassRef
	if ref == nil || ref.Kind != kueue.WorkloadPriorityClassKind {
		return ""
	}
	return ref.Name
}

// changesPriorities reports whether applying the classes would change the
// priority of a Workload or class: a class has another value, or a class does
// not exist and its Workloads have another priority.
func (c priorityClasses) changesPriorities() bool {
	for name, value := range c.desired {
		if object := c.existing[name]; object != nil && object.Value != value || object == nil && c.staleWorkloadsOf(name) > 0 {
			return true
		}
	}
	return false
}

// staleWorkloads returns the number of unfinished Workloads whose priority
// differs from their class.
func (c priorityClasses) staleWorkloads() (n int) {
	for name := range c.desired {
		n += c.staleWorkloadsOf(name)
	}
	return n
}

func (c priorityClasses) staleWorkloadsOf(name string) (n int) {
	for _, task := range c.workloads[name] {
		if isStale(task, c.desired[name]) {
			n++
		}
	}
	return n
}

func isStale(task *kueue.Workload, value int32) bool {
	return task.Spec.Priority == nil || *task.Spec.Priority != value
}

// applyPriorityClasses applies the classes of the policy and deletes obsolete
// ones.
func (r *RankingReconciler) applyPriorityClasses(ctx context.Context, policy *v1alpha1.ClusterPolicy, c priorityClasses) error {
	var failed []error
	for _, object := range desired.PriorityClasses(&policy.Spec) {
		if _, ours := c.desired[*object.Name]; !ours {
			continue
		}
		piece := managed.NewObject("WorkloadPriorityClass", &kueue.WorkloadPriorityClass{}, object, object.ObjectMetaApplyConfiguration)
		piece.TakesOver = true
		correction, err := applier{r.Client, r.APIReader}.apply(ctx, piece, false)
		failed = append(failed, err)
		if correction != nil {
			addCorrection(r.Events, r.Activity, policy, correction)
		}
	}
	for name := range c.retained {
		if object := c.existing[name]; object.Value != c.desired[name] {
			patch := fmt.Appendf(nil, `{"value": %d}`, c.desired[name])
			if err := client.IgnoreNotFound(r.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch), rankingFieldOwner)); err != nil {
				failed = append(failed, fmt.Errorf("write WorkloadPriorityClass %s: %w", name, err))
			}
		}
	}
	for _, name := range c.obsolete {
		object := &kueue.WorkloadPriorityClass{}
		object.Name = name
		if err := client.IgnoreNotFound(r.Delete(ctx, object)); err != nil {
			failed = append(failed, fmt.Errorf("write WorkloadPriorityClass %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// maxRewrites bounds how many Workloads one reconciliation patches.
const maxRewrites = 100

// rewriteWorkloads patches the priority of Workloads that Kueue did not update.
// Kueue creates a Workload from its cached class and does not check it again
// (0.19, from its source).
func (r *RankingReconciler) rewriteWorkloads(ctx context.Context, c priorityClasses) error {
	left, failed := maxRewrites, []error{}
	for name, value := range c.desired {
		for _, task := range c.workloads[name] {
			if !isStale(task, value) {
				continue
			}
			if left--; left < 0 {
				return errors.Join(failed...)
			}
			patch := fmt.Appendf(nil, `{"spec": {"priority": %d}}`, value)
			if err := client.IgnoreNotFound(r.Patch(ctx, task.DeepCopy(), client.RawPatch(types.MergePatchType, patch), rankingFieldOwner)); err != nil {
				failed = append(failed, fmt.Errorf("rewrite Workload %s/%s: %w", task.Namespace, task.Name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// rankingFieldOwner is the field manager of single fields that a ranking change
// patches.
const rankingFieldOwner = client.FieldOwner(cluster.FieldManager + "-ranking")

const disablePreemptionPatch = `{"spec": {"preemption": {"withinClusterQueue": "Never", "borrowWithinCohort": {"policy": "Never"}}}}`

// disablePreemption disables preemption by priority in every ClusterQueue of
// Kuota, also in those whose allocation is not ready. It returns the number of
// queues that Kueue has not processed yet, and of all. reader is the cache, or
// the API server where the cache may still have a queue from before it preempts
// again.
func (r *RankingReconciler) disablePreemption(ctx context.Context, reader client.Reader) (waiting, all int, err error) {
	var queues kueue.ClusterQueueList
	if err := reader.List(ctx, &queues, client.UnsafeDisableDeepCopy, client.MatchingLabels{desired.LabelManagedBy: desired.ManagedBy}); err != nil {
		return 0, 0, err
	}
	var failed []error
	for i := range queues.Items {
		queue := &queues.Items[i]
		if queue.DeletionTimestamp != nil {
			continue // Kueue admits nothing through it
		}
		all++
		if preemptsByPriority(queue) {
			waiting++
			if err := client.IgnoreNotFound(r.Patch(ctx, queue.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(disablePreemptionPatch)), rankingFieldOwner)); err != nil {
				failed = append(failed, fmt.Errorf("pause ClusterQueue %s: %w", queue.Name, err))
			}
			continue
		}
		active := meta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive)
		if active == nil || active.ObservedGeneration != queue.Generation {
			waiting++
		}
	}
	return waiting, all, errors.Join(failed...)
}

func preemptsByPriority(queue *kueue.ClusterQueue) bool {
	p := queue.Spec.Preemption
	return p != nil && (p.WithinClusterQueue != kueue.PreemptionPolicyNever && p.WithinClusterQueue != "" ||
		p.BorrowWithinCohort != nil && p.BorrowWithinCohort.Policy != kueue.BorrowWithinCohortPolicyNever && p.BorrowWithinCohort.Policy != "")
}
