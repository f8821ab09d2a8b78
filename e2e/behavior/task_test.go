package behavior_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// task is a Job of one team, and the Workload that Kueue creates for it.
type task struct {
	*team
	name string
	job  *batchv1.Job
}

// submit creates a Job whose pods request one GPU each. Its priority class has the
// given weight; a weight of 0 sets no priority class.
func (m *team) submit(name string, pods int32, weight int32) *task {
	m.t.Helper()
	class := ""
	if weight > 0 {
		class = m.priorityClass(weight)
	}
	k := m.jobOf(name, pods, class)
	if err := m.cluster.Client.Create(m.t.Context(), k.job); err != nil {
		m.t.Fatal(err)
	}
	m.tasks = append(m.tasks, k)
	return k
}

// submitEach creates n tasks of one GPU in a priority class.
func (m *team) submitEach(name string, n int, class string) []*task {
	m.t.Helper()
	tasks := make([]*task, n)
	for i := range tasks {
		tasks[i] = m.jobOf(fmt.Sprintf("%s-%d", name, i), 1, class)
	}
	m.inParallel(n, func(i int) error { return m.cluster.Client.Create(m.t.Context(), tasks[i].job) })
	m.tasks = append(m.tasks, tasks...)
	return tasks
}

// jobOf returns a task whose Job runs until it is deleted.
func (m *team) jobOf(name string, pods int32, class string) *task {
	yes, never := true, int32(0)
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	labels := map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(m.name)}
	if class != "" {
		labels["kueue.x-k8s.io/priority-class"] = class
	}
	return &task{team: m, name: name, job: &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.namespace(), Labels: labels},
		Spec: batchv1.JobSpec{
			Suspend: &yes, Parallelism: &pods, Completions: &pods, BackoffLimit: &never,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64), // KWOK would wait it out
					RestartPolicy:                 corev1.RestartPolicyNever,
					Containers:                    []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
				},
			},
		},
	}}
}

// workload returns the Workload that Kueue created for the task.
func (k *task) workload() (*kueue.Workload, error) {
	var list kueue.WorkloadList
	err := watched.List(k.t.Context(), &list, client.InNamespace(k.namespace()), client.MatchingLabels{"kueue.x-k8s.io/job-uid": string(k.job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%s of %s: got %d Workloads, want 1", k.name, k.role, len(list.Items))
	}
	return &list.Items[0], nil
}

// hasConditions waits until the Workload has the conditions, each written as
// "Type=Status/Reason", where the reason is optional.
func (k *task) hasConditions(conditions ...string) *kueue.Workload {
	k.t.Helper()
	var w *kueue.Workload
	k.await(func() (err error) {
		if w, err = k.workload(); err != nil {
			return err
		}
		return k.checkConditions(w, conditions)
	})
	return w
}

func (k *task) checkConditions(w *kueue.Workload, conditions []string) error {
	for _, want := range conditions {
		name, rest, _ := strings.Cut(want, "=")
		status, reason, _ := strings.Cut(rest, "/")
		got := meta.FindStatusCondition(w.Status.Conditions, name)
		if got == nil || string(got.Status) != status || reason != "" && !slices.Contains(acceptedReasons(reason), got.Reason) {
			return fmt.Errorf("%s of %s: got %s, want %s", k.name, k.role, describe(got), want)
		}
	}
	return nil
}

// isAdmitted waits until the task is admitted.
func (k *task) isAdmitted() { k.t.Helper(); k.hasConditions("QuotaReserved=True", "Admitted=True") }

// isReadmitted waits until a task that was requeued is admitted.
func (k *task) isReadmitted() {
	k.t.Helper()
	k.hasConditions("QuotaReserved=True", "Admitted=True", "Evicted=False/QuotaReserved", "Requeued=True")
}

// isPending waits until Kueue has tried the task and left it pending with reason
// and a message that contains words.
func (k *task) isPending(reason string, words ...string) {
	k.t.Helper()
	k.await(func() error {
		w, err := k.workload()
		if err != nil {
			return err
		}
		if err := k.checkConditions(w, []string{"QuotaReserved=False/" + reason}); err != nil {
			return err
		}
		message := meta.FindStatusCondition(w.Status.Conditions, "QuotaReserved").Message
		for _, part := range words {
			if !strings.Contains(message, part) {
				return fmt.Errorf("%s of %s: got message %q, want it to contain %q", k.name, k.role, message, part)
			}
		}
		return nil
	})
}

// isPreempted waits until the task was preempted for reason and is requeued.
func (k *task) isPreempted(reason string) {
	k.t.Helper()
	w := k.hasConditions("Evicted=True/Preempted", "Preempted=True/"+reason, "Requeued=True/Preempted", "QuotaReserved=False", "Admitted=False")
	if n := evictions(w); n == 0 {
		k.t.Errorf("%s of %s was preempted: got 0 evictions in its statistics, want at least 1:\n%s", k.name, k.role, k.report())
	}
}

// neverEvicted checks that the task is admitted and was never evicted.
func (k *task) neverEvicted() {
	k.t.Helper()
	w, err := k.workload()
	if err != nil {
		k.t.Fatal(err)
	}
	if n := evictions(w); n > 0 || !meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") {
		k.t.Errorf("%s of %s: got %d evictions, want 0 and an admitted task:\n%s", k.name, k.role, n, k.report())
	}
}

// finish deletes the Job, which releases its quota.
func (k *task) finish() {
	k.t.Helper()
	if err := k.cluster.Client.Delete(k.t.Context(), k.job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		k.t.Fatal(err)
	}
}

// waitForNextSecond waits until the second of the Workload's creation has passed:
// Kueue orders tasks of one priority by creation time, which has whole seconds.
func (k *task) waitForNextSecond() {
	k.t.Helper()
	k.await(func() error {
		w, err := k.workload()
		if err == nil && time.Now().Unix() <= w.CreationTimestamp.Unix() {
			err = fmt.Errorf("the clock has not passed second %s", w.CreationTimestamp)
		}
		return err
	})
}

// admittedTasks returns those of tasks that are admitted.
func admittedTasks(tasks []*task) (admitted []*task) {
	for _, k := range tasks {
		if w, err := k.workload(); err == nil && meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") {
			admitted = append(admitted, k)
		}
	}
	return admitted
}

// evictions returns how often Kueue evicted w.
func evictions(w *kueue.Workload) (n int32) {
	if w.Status.SchedulingStats != nil {
		for _, e := range w.Status.SchedulingStats.Evictions {
			n += e.Count
		}
	}
	return n
}
