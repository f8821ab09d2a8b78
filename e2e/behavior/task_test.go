package behavior_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// task is a Job of one team, and the Workload that Kueue makes of it.
type task struct {
	*team
	name string
	job  *batchv1.Job
}

// submit makes a Job of so many pods with one GPU each, in a priority class of
// a weight, or without one when the weight is 0.
func (m *team) submit(name string, pods int32, weight int32) *task {
	m.t.Helper()
	class := ""
	if weight > 0 {
		class = m.class(weight)
	}
	k := m.jobOf(name, pods, class)
	if err := m.cluster.Client.Create(m.t.Context(), k.job); err != nil {
		m.t.Fatal(err)
	}
	m.tasks = append(m.tasks, k)
	return k
}

// submitEach makes n tasks of one GPU in the class of a name, a few at once.
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

// jobOf is a Job that runs until it is deleted.
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

// workload is what Kueue made of the task.
func (k *task) workload() (*kueue.Workload, error) {
	var list kueue.WorkloadList
	err := watched.List(k.t.Context(), &list, client.InNamespace(k.namespace()), client.MatchingLabels{"kueue.x-k8s.io/job-uid": string(k.job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%s of %s has %d Workloads", k.name, k.role, len(list.Items))
	}
	return &list.Items[0], nil
}

// is waits until the Workload's conditions are these, given as
// "Type=Status/Reason", the reason being optional.
func (k *task) is(conditions ...string) *kueue.Workload {
	k.t.Helper()
	var w *kueue.Workload
	k.await(func() (err error) {
		if w, err = k.workload(); err != nil {
			return err
		}
		return k.differs(w, conditions)
	})
	return w
}

func (k *task) differs(w *kueue.Workload, conditions []string) error {
	for _, want := range conditions {
		name, rest, _ := strings.Cut(want, "=")
		status, reason, _ := strings.Cut(rest, "/")
		got := meta.FindStatusCondition(w.Status.Conditions, name)
		if got == nil || string(got.Status) != status || reason != "" && !slices.Contains(reasonsHere(reason), got.Reason) {
			return fmt.Errorf("%s of %s is not %s, but %s", k.name, k.role, want, describe(got))
		}
	}
	return nil
}

// runs waits until the task is admitted.
func (k *task) runs() { k.t.Helper(); k.is("QuotaReserved=True", "Admitted=True") }

// runsAgain waits until a task that was requeued is admitted.
func (k *task) runsAgain() {
	k.t.Helper()
	k.is("QuotaReserved=True", "Admitted=True", "Evicted=False/QuotaReserved", "Requeued=True")
}

// waits waits until Kueue looked at the task and left it waiting for a reason.
func (k *task) waits(reason string, words ...string) {
	k.t.Helper()
	k.await(func() error {
		w, err := k.workload()
		if err != nil {
			return err
		}
		if err := k.differs(w, []string{"QuotaReserved=False/" + reason}); err != nil {
			return err
		}
		message := meta.FindStatusCondition(w.Status.Conditions, "QuotaReserved").Message
		for _, part := range words {
			if !strings.Contains(message, part) {
				return fmt.Errorf("%s of %s waits, but not because %q: %s", k.name, k.role, part, message)
			}
		}
		return nil
	})
}

// preempted waits until the task was preempted for a reason and is back in
// the queue.
func (k *task) preempted(reason string) {
	k.t.Helper()
	w := k.is("Evicted=True/Preempted", "Preempted=True/"+reason, "Requeued=True/Preempted", "QuotaReserved=False", "Admitted=False")
	if n := evictions(w); n == 0 {
		k.t.Errorf("%s of %s was preempted, but its statistics have no eviction:\n%s", k.name, k.role, k.tell())
	}
}

// undisturbed checks that the task never lost its place.
func (k *task) undisturbed() {
	k.t.Helper()
	w, err := k.workload()
	if err != nil {
		k.t.Fatal(err)
	}
	if n := evictions(w); n > 0 || !meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") {
		k.t.Errorf("%s of %s was disturbed:\n%s", k.name, k.role, k.tell())
	}
}

// ends deletes the Job, which frees what it holds.
func (k *task) ends() {
	k.t.Helper()
	if err := k.cluster.Client.Delete(k.t.Context(), k.job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		k.t.Fatal(err)
	}
}

// aSecondLater waits until the clock shows another second than the Workload's
// creation: Kueue orders tasks by it, and it has whole seconds.
func (k *task) aSecondLater() {
	k.t.Helper()
	k.await(func() error {
		w, err := k.workload()
		if err == nil && time.Now().Unix() <= w.CreationTimestamp.Unix() {
			err = fmt.Errorf("the clock stands still at %s", w.CreationTimestamp)
		}
		return err
	})
}

// admitted lists those of some tasks that are admitted now.
func admitted(tasks []*task) (now []*task) {
	for _, k := range tasks {
		if w, err := k.workload(); err == nil && meta.IsStatusConditionTrue(w.Status.Conditions, "Admitted") {
			now = append(now, k)
		}
	}
	return now
}

// evictions counts how often a task lost its place.
func evictions(w *kueue.Workload) (n int32) {
	if w.Status.SchedulingStats != nil {
		for _, e := range w.Status.SchedulingStats.Evictions {
			n += e.Count
		}
	}
	return n
}
