package elastic_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// lab is a pool of simulated nodes of one test, and its teams.
type lab struct {
	*testing.T
	*clustertest.Cluster
	pool string
}

// newLab creates nodes of eight GPUs.
func newLab(t *testing.T, nodes int) *lab {
	t.Helper()
	l := &lab{T: t, Cluster: setup(t), pool: clustertest.Name("lab.elastic")}
	for i := range nodes {
		l.node(i)
	}
	return l
}

// node creates a node of eight GPUs.
func (l *lab) node(i int) {
	l.Helper()
	l.Node(l, fmt.Sprintf("%s-%d", l.pool, i), map[string]string{"node.kubernetes.io/instance-type": l.pool, corev1.LabelOSStable: "linux"},
		clustertest.Resources(map[corev1.ResourceName]string{corev1.ResourceCPU: "64", corev1.ResourceMemory: "512Gi", corev1.ResourcePods: "110", gpu: "8"}))
}

// team creates an allocation of GPUs, waits until it is ready and returns its name.
func (l *lab) team(role string, gpus int64, change func(*v1alpha1.ComputeAllocationSpec)) string {
	l.Helper()
	allocation := &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name(role)},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: l.pool, Quantities: v1alpha1.Quantities{Accelerators: &gpus}}}},
	}
	allocation.Spec.Sharing.Unlimited = true
	if change != nil {
		change(&allocation.Spec)
	}
	if err := l.Client.Create(l.Context(), allocation); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = l.Client.Delete(context.Background(), allocation) })
	clustertest.Eventually(l, clustertest.Patience, func(ctx context.Context) error {
		var now v1alpha1.ComputeAllocation
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(allocation), &now); err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive} {
			if !meta.IsStatusConditionTrue(now.Status.Conditions, condition) {
				return fmt.Errorf("%s of %s: %+v", condition, role, meta.FindStatusCondition(now.Status.Conditions, condition))
			}
		}
		return nil
	})
	return allocation.Name
}

func namespace(team string) string { return desired.DefaultNaming.Namespace(team) }

// labels returns the labels of a task of a team.
func labels(team, class string) map[string]string {
	all := map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(team)}
	if class != "" {
		all["kueue.x-k8s.io/priority-class"] = class
	}
	return all
}

// pods returns a pod template of one container that runs until it is deleted. KWOK waits
// out the grace period of a deleted pod.
func pods(gpus int64) corev1.PodTemplateSpec {
	each := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "train", Image: "example.com/train:1", Resources: corev1.ResourceRequirements{Requests: each, Limits: each}}},
		},
	}
}

// submit creates a Job of pods of one GPU, which is deleted when the test ends.
func (l *lab) submit(team, name, class string, n int32) *batchv1.Job {
	l.Helper()
	return l.submitPods(team, name, class, n, 1)
}

// submitPods creates a Job of n pods of some GPUs each.
func (l *lab) submitPods(team, name, class string, n int32, gpus int64) *batchv1.Job {
	l.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(team), Name: name, Labels: labels(team, class)},
		Spec:       batchv1.JobSpec{Suspend: ptr.To(true), Parallelism: &n, Completions: &n, Template: pods(gpus)},
	}
	if err := l.Client.Create(l.Context(), job); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { l.remove(job) })
	return job
}

func (l *lab) remove(job *batchv1.Job) {
	_ = l.Client.Delete(context.Background(), job, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// elastic creates an ElasticJob of pods of one GPU. When the test ends it is deleted, and
// nothing of it may be left.
func (l *lab) elastic(team, name, class string, policy v1alpha1.ElasticPolicy) *v1alpha1.ElasticJob {
	l.Helper()
	return l.elasticOf(team, name, class, policy, pods(1))
}

// elasticOf creates an ElasticJob of a template.
func (l *lab) elasticOf(team, name, class string, policy v1alpha1.ElasticPolicy, template corev1.PodTemplateSpec) *v1alpha1.ElasticJob {
	l.Helper()
	e := &v1alpha1.ElasticJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(team), Name: name, Labels: labels(team, class)},
		Spec:       v1alpha1.ElasticJobSpec{ElasticPolicy: policy, Template: template},
	}
	l.create(e)
	return e
}

// create creates an ElasticJob, which is deleted when the test ends.
func (l *lab) create(e *v1alpha1.ElasticJob) {
	l.Helper()
	if err := l.Client.Create(l.Context(), e); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		ctx := context.Background()
		if err := client.IgnoreNotFound(l.Client.Delete(ctx, e)); err != nil {
			l.Error(err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			var jobs batchv1.JobList
			var services corev1.ServiceList
			of := []client.ListOption{client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name}}
			err := l.Client.Get(ctx, client.ObjectKeyFromObject(e), &v1alpha1.ElasticJob{})
			_, _ = l.Client.List(ctx, &jobs, of...), l.Client.List(ctx, &services, of...)
			if client.IgnoreNotFound(err) == nil && err != nil && len(jobs.Items)+len(services.Items) == 0 {
				return
			}
			if time.Now().After(deadline) {
				l.Errorf("%d Jobs and %d Services of the deleted ElasticJob %s are left (%v)", len(jobs.Items), len(services.Items), e.Name, err)
				return
			}
		}
	})
}

// size waits until an ElasticJob has a size, and returns how long that took.
func (l *lab) size(e *v1alpha1.ElasticJob, want int32, limit time.Duration) time.Duration {
	l.Helper()
	began := time.Now()
	for {
		if err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			l.Fatal(err)
		}
		if e.Status.Replicas == want {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			l.Fatalf("%s has size %d after %s, want %d; status %+v\n%s", e.Name, e.Status.Replicas, limit, want, e.Status, l.report(e.Namespace))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// admitted waits until Kueue has admitted a Job, and returns how long that took.
func (l *lab) admitted(job *batchv1.Job, limit time.Duration) time.Duration {
	l.Helper()
	began := time.Now()
	for {
		var list kueue.WorkloadList
		if err := l.Client.List(l.Context(), &list, client.InNamespace(job.Namespace)); err != nil {
			l.Fatal(err)
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == job.UID && meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kueue.WorkloadAdmitted) {
				return time.Since(began)
			}
		}
		if time.Since(began) > limit {
			l.Fatalf("Kueue has not admitted %s after %s\n%s", job.Name, limit, l.report(job.Namespace))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// running waits until n pods of an ElasticJob run, and returns the UIDs of all that do,
// by their increments.
func (l *lab) running(e *v1alpha1.ElasticJob, n int, limit time.Duration) map[string][]types.UID {
	l.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var list corev1.PodList
		if err := l.Client.List(l.Context(), &list, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelElasticJob: e.Name}); err != nil {
			l.Fatal(err)
		}
		found, count := map[string][]types.UID{}, 0
		for i := range list.Items {
			p := &list.Items[i]
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				found[p.Labels[v1alpha1.LabelElasticIncrement]] = append(found[p.Labels[v1alpha1.LabelElasticIncrement]], p.UID)
				count++
			}
		}
		if count == n {
			for _, uids := range found {
				slices.Sort(uids)
			}
			return found
		}
		if time.Since(began) > limit {
			l.Fatalf("%d pods of %s run after %s, want %d\n%s", count, e.Name, limit, n, l.report(e.Namespace))
		}
	}
}

// report returns the Jobs and Workloads of a namespace.
func (l *lab) report(namespace string) string {
	var text strings.Builder
	var jobs batchv1.JobList
	var workloads kueue.WorkloadList
	_ = l.Client.List(context.Background(), &jobs, client.InNamespace(namespace))
	_ = l.Client.List(context.Background(), &workloads, client.InNamespace(namespace))
	for i := range jobs.Items {
		j := &jobs.Items[i]
		fmt.Fprintf(&text, "Job %s pods=%d suspend=%v active=%d ready=%d failed=%d\n", j.Name, *j.Spec.Parallelism, *j.Spec.Suspend, j.Status.Active, ptr.Deref(j.Status.Ready, 0), j.Status.Failed)
	}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		fmt.Fprintf(&text, "Workload %s priority=%s", w.Name, strconv.Itoa(int(ptr.Deref(w.Spec.Priority, 0))))
		for _, c := range w.Status.Conditions {
			fmt.Fprintf(&text, " %s=%s(%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// class creates a WorkloadPriorityClass of a value, and returns its name.
func (l *lab) class(value int32) string {
	l.Helper()
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: clustertest.Name("class")}, Value: value}
	if err := l.Client.Create(l.Context(), class); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = l.Client.Delete(context.Background(), class) })
	return class.Name
}

func (l *lab) refresh(e *v1alpha1.ElasticJob) {
	l.Helper()
	if err := l.Client.Get(l.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) workloads(namespace string) []kueue.Workload {
	l.Helper()
	var list kueue.WorkloadList
	if err := l.Client.List(l.Context(), &list, client.InNamespace(namespace)); err != nil {
		l.Fatal(err)
	}
	return list.Items
}
