package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// as returns a client that impersonates a user.
func as(t *testing.T, c *clustertest.Cluster, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	person, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return person
}

// waitExists waits until an object exists, or does not if want is false, and reads
// it.
func waitExists(t *testing.T, c *clustertest.Cluster, object client.Object, want bool) {
	t.Helper()
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			return fmt.Errorf("%T %s exists: %v, want %v", object, object.GetName(), err == nil, want)
		}
		return nil
	})
}

// Members have their role in the team's namespace while the allocation lists them. A
// manual change of the binding is corrected.
func TestMembers(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("members")
	namespace := "hyperpod-ns-" + team
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Members = []v1alpha1.Member{{Kind: "User", Name: "mia@example.com"}, {Kind: "Group", Name: "ml-engineers"}, {Kind: "Group", Name: "ml-engineers"}}
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	lists := func(user string, groups ...string) error {
		return as(t, c, user, groups...).List(t.Context(), &kueue.WorkloadList{}, client.InNamespace(namespace))
	}
	eventually := func(want bool, user string, groups ...string) {
		t.Helper()
		clustertest.Eventually(t, soon, func(context.Context) error {
			if err := lists(user, groups...); (err == nil) != want || err != nil && !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s can list tasks: %v, want %v", user, err, want)
			}
			return nil
		})
	}
	eventually(true, "mia@example.com")
	eventually(true, "max@example.com", "ml-engineers")
	eventually(false, "eve@example.com", "others")

	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: desired.MembersName}}
	waitExists(t, c, binding, true)
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "eve@example.com"})
	if err := c.Client.Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	eventually(false, "eve@example.com")
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var allocation v1alpha1.ComputeAllocation
		if err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		if fix := allocation.Status.LastCorrection; fix == nil || !strings.Contains(fix.Object, "RoleBinding") {
			return fmt.Errorf("last correction is %+v", fix)
		}
		return nil
	})
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		found, err := record.store.Activity(ctx, history.ActivityQuery{Teams: []string{team}, Action: string(audit.Correct)})
		if err == nil && (len(found) != 1 || len(found[0].Changes) != 1 || !strings.HasPrefix(found[0].Changes[0], "RoleBinding ") || !strings.HasSuffix(found[0].Changes[0], " and corrected")) {
			err = fmt.Errorf("activity is %+v, want the correction once", found)
		}
		return err
	})

	spec.Members = nil
	setQuota(t, c, team, spec)
	waitExists(t, c, binding, false)
	eventually(false, "mia@example.com")
}

// A member can pause and resume a task, and change nothing else of its Workload.
func TestMemberCanOnlyPause(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("pauses")
	namespace := "hyperpod-ns-" + team
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Members = []v1alpha1.Member{{Kind: "User", Name: "mia@example.com"}}
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	submitWith(t, c, team, "task", "", 0, "100")
	mia := as(t, c, "mia@example.com")
	patch := func(text string) error {
		task := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "task"}}
		return mia.Patch(t.Context(), task, client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	clustertest.Eventually(t, soon, func(context.Context) error { return patch(`{"spec": {"active": false}}`) })
	if err := patch(`{"spec": {"active": true}}`); err != nil {
		t.Errorf("the task cannot be resumed: %v", err)
	}
	for name, text := range map[string]string{
		"priority":   `{"spec": {"priority": 1000}}`,
		"class":      `{"spec": {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "x"}, "priority": 5}}`,
		"queue":      `{"spec": {"queueName": "other"}}`,
		"time limit": `{"spec": {"maximumExecutionTimeSeconds": 5}}`,
		"boost":      `{"metadata": {"annotations": {"kueue.x-k8s.io/priority-boost": "9"}}}`,
		"labels":     `{"metadata": {"labels": {"kueue.x-k8s.io/job-uid": "1"}}}`,
	} {
		if err := patch(text); err == nil || !strings.Contains(err.Error(), "kuota-workloads") {
			t.Errorf("%s: %v, want a rejection by the admission policy", name, err)
		}
	}
}

// Each share has a LocalQueue with its weight while the allocation has the share, and
// Kueue orders the tasks of the ClusterQueue by usage while there are shares.
func TestShares(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("shares")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(2)})
	spec.Shares = []v1alpha1.Share{{Name: "high", Weight: 15}, {Name: "low", Weight: 3}}
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	queueOf := func(share string) *kueue.LocalQueue {
		return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: desired.DefaultNaming.ShareQueue(team, share)}}
	}
	high, low := queueOf("high"), queueOf("low")
	waitExists(t, c, high, true)
	waitExists(t, c, low, true)
	if high.Spec.FairSharing == nil || high.Spec.FairSharing.Weight == nil || high.Spec.FairSharing.Weight.Value() != 15 {
		t.Errorf("the LocalQueue of a share with weight 15 has fair sharing %+v", high.Spec.FairSharing)
	}
	clusterQueue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: desired.DefaultNaming.ClusterQueue(team)}}
	waitExists(t, c, clusterQueue, true)
	if scope := clusterQueue.Spec.AdmissionScope; scope == nil || scope.AdmissionMode != kueue.UsageBasedAdmissionFairSharing {
		t.Errorf("the ClusterQueue of a team with shares has the admission scope %+v", scope)
	}

	spec.Shares = spec.Shares[:1]
	setQuota(t, c, team, spec)
	waitExists(t, c, low, false)
	waitExists(t, c, high, true)

	spec.Shares = nil
	setQuota(t, c, team, spec)
	waitExists(t, c, high, false)
	waitExists(t, c, clusterQueue, true)
	if scope := clusterQueue.Spec.AdmissionScope; scope != nil {
		t.Errorf("the ClusterQueue of a team without shares has the admission scope %+v", scope)
	}
}

// The queues of a team that is released stay, without Kuota's labels: those of its shares, too.
func TestReleaseShares(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("released")
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Shares = []v1alpha1.Share{{Name: "high", Weight: 15}}
	create(t, c, team, spec)
	allocation := conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	c.Kubectl(t, "", "annotate", "computeallocation", team, v1alpha1.AnnotationRelease+"=true")
	c.Kubectl(t, "", "delete", "computeallocation", team, "--wait=false")
	waitDeleted(t, c, &allocation)
	for _, name := range []string{desired.DefaultNaming.LocalQueue(team), desired.DefaultNaming.ShareQueue(team, "high")} {
		queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "hyperpod-ns-" + team, Name: name}}
		waitExists(t, c, queue, true)
		if len(queue.Labels) > 0 {
			t.Errorf("LocalQueue %s: got labels %v, want none", name, queue.Labels)
		}
	}
	c.Kubectl(t, "", "delete", "localqueue", "--all", "-n", "hyperpod-ns-"+team, "--wait=false")
	c.Kubectl(t, "", "delete", "clusterqueue", desired.DefaultNaming.ClusterQueue(team), "--wait=false")
}

// The ceiling of a namespace is quota plus borrow limit, and admits a pod without
// requests. The default queue takes jobs without a queue. Both are deleted when the
// allocation no longer has them.
func TestCeilingAndDefaultQueue(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("ceiling")
	namespace := "hyperpod-ns-" + team
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(2)})
	spec.NamespaceCeiling, spec.DefaultQueue = true, true
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	bound := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: desired.CeilingName}}
	defaults := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: desired.CeilingName}}
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: desired.DefaultQueueName}}
	waitExists(t, c, bound, true)
	waitExists(t, c, defaults, true)
	waitExists(t, c, queue, true)
	for name, want := range map[string]string{"requests.nvidia.com/gpu": "3", "requests.cpu": "24", "requests.memory": "96Gi", "requests.aws.amazon.com/neurondevice": "0"} {
		if got := bound.Spec.Hard[corev1.ResourceName(name)]; got.String() != want {
			t.Errorf("the ceiling of %s is %s, want %s", name, got.String(), want)
		}
	}
	silent := fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: silent, namespace: %s}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.com/train:1}]
`, namespace)
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // Kueue sets the queue of a Job when it is created
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(queue.Status.Conditions, kueue.LocalQueueActive) {
			return fmt.Errorf("Kueue has not seen the queue: %+v", queue.Status.Conditions)
		}
		return nil
	})
	c.Apply(t, silent)
	admitted(t, c, team, 1)
	clustertest.Eventually(t, soon, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
			return fmt.Errorf("got pods %v", pods.Items)
		}
		return nil
	})
	c.Kubectl(t, "", "delete", "job", "silent", "-n", namespace)

	setQuota(t, c, team, specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(2)}))
	waitExists(t, c, bound, false)
	waitExists(t, c, defaults, false)
	waitExists(t, c, queue, false)
}

// Objects of others with the names of the ceiling or the default queue stay, and the
// condition reports them.
func TestForeignObjectsInNamespace(t *testing.T) {
	c := setup(t)
	team := clustertest.Name("theirs")
	if err := c.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})
	})
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: desired.DefaultQueueName}}
	queue.Spec.ClusterQueue = "theirs"
	if err := c.Client.Create(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	spec := specOf(v1alpha1.QuotaRow{InstanceType: "ml.g5.2xlarge", Quantities: accelerators(1)})
	spec.Namespace, spec.DefaultQueue = team, true
	create(t, c, team, spec)
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionFalse, "spec.defaultQueue: LocalQueue default exists and is not managed by Kuota")
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil || queue.Spec.ClusterQueue != "theirs" {
		t.Errorf("the LocalQueue was changed: %v, %+v", err, queue.Spec)
	}
	if err := c.Client.Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, c, team, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}
