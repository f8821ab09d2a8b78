package submit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/imports"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/submit"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// growing returns plan as an elastic task of up to most pods.
func growing(t *testing.T, plan submit.Plan, most int32) submit.Plan {
	t.Helper()
	r := plan.Request
	policy := v1alpha1.DefaultElasticPolicy()
	policy.MaxReplicas, policy.ReplicaIncrementStep = most, new(int32(1))
	r.Elastic = &policy
	elastic, wrong := plan.Team.Plan(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return elastic
}

// An elastic task is submitted as an ElasticJob, with the queue and the class of the team.
// Its verdict is that of the minimum, and beside it the size that quota and nodes allow.
func TestSubmitElastic(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	for name, tc := range map[string]struct {
		pods, most int32
		gpus       int64
		wantReach  int32
	}{
		"grows to its maximum":    {pods: 1, most: 3, gpus: 1, wantReach: 3},
		"grows to the quota":      {pods: 1, most: 16, gpus: 1, wantReach: 4},
		"grows by pods of two":    {pods: 1, most: 16, gpus: 2, wantReach: 2},
		"starts, and cannot grow": {pods: 4, most: 16, gpus: 1, wantReach: 4},
	} {
		t.Run(name, func(t *testing.T) {
			w.awaitStart(t, growing(t, w.plan(t, "asks", tc.pods, tc.gpus), tc.most), tc.wantReach)
		})
	}
	if v := w.check(t, growing(t, w.plan(t, "asks", 5, 1), 16)); v.Outcome != submit.Never || v.Reach != 0 { // only its minimum is tried
		t.Errorf("got %s up to %d pods, want %s up to 0", v.Outcome, v.Reach, submit.Never)
	}

	plan := growing(t, w.plan(t, "grows", 1, 1), 4)
	done, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "form-grows")
	if err != nil || done.Kind != submit.ElasticJob || done.Name != "grows" {
		t.Fatalf("got %+v, %v", done, err)
	}
	if _, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "form-grows"); err != nil {
		t.Errorf("the same form again: %v", err)
	}
	if _, err := w.Submit(t.Context(), w.member, plan.Team, plan.Request, "form-other"); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "name: ") {
		t.Errorf("another form with its name: got %v, want an error at name", err)
	}
	var job v1alpha1.ElasticJob
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: plan.Team.Namespace, Name: "grows"}, &job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.ElasticJob().Spec.ElasticPolicy, job.Spec.ElasticPolicy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plan.ElasticJob().Labels, job.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if text := auditLog.String(); !strings.Contains(text, "name=grows") {
		t.Errorf("got the audit log %s", text)
	}
}

// A job of HyperPod is checked and submitted as the ElasticJob that it becomes.
func TestSubmitImportedJob(t *testing.T) {
	t.Parallel()
	w := setup(t, 32)
	team := w.plan(t, "any", 1, 1).Team
	text, err := os.ReadFile("../imports/trainingjobs/testdata/hyperpod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := imports.Read(text)
	if len(read.Objects) != 1 {
		t.Fatalf("got %+v", read)
	}
	e := read.Objects[0].ElasticJob
	if _, _, wrong := team.PlanElasticJob(e); len(wrong) != 1 || !strings.Contains(wrong[0].Message, "training-priority") {
		t.Errorf("got %v, want an error about the priority class", wrong)
	}
	delete(e.Labels, constants.WorkloadPriorityClassLabel)
	plan, changed, wrong := team.PlanElasticJob(e)
	if len(wrong) > 0 || len(changed) != 2 { // namespace and queue
		t.Fatalf("got %v, changed %v", wrong, changed)
	}
	w.awaitStart(t, plan, 2) // there are two nodes
	done, err := w.submitElasticJob(t, team, e, "form-llama")
	if err != nil || done.Kind != submit.ElasticJob {
		t.Fatalf("got %+v, %v", done, err)
	}
	var job v1alpha1.ElasticJob
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: team.Namespace, Name: "llama"}, &job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Spec.ElasticPolicy, job.Spec.ElasticPolicy); diff != "" || job.Spec.Template.Spec.Volumes[0].EmptyDir == nil {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	e.Name, e.Spec.Template.Spec.Containers[0].Name = "no-container-name", ""
	if _, err := w.submitElasticJob(t, team, e, "form-bad"); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "spec.template") {
		t.Errorf("without a container's name: got %v, want an error at spec.template", err)
	}
	container := &e.Spec.Template.Spec.Containers[0]
	e.Name, container.Name = "no-volume", "train" // valid for the schema, and not for a Job
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "missing", MountPath: "/missing"})
	if _, err := w.submitElasticJob(t, team, e, "form-worse"); governance.KindOf(err) != governance.Invalid || !strings.Contains(err.Error(), "missing") {
		t.Errorf("with a mount of no volume: got %v, want an error that names it", err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: team.Namespace, Name: "no-volume"}, &job); !apierrors.IsNotFound(err) {
		t.Errorf("the ElasticJob with a mount of no volume: got %v, want not found", err)
	}
}

// The error of a user who can create Jobs and no ElasticJobs names the permission.
func TestSubmitElasticWithoutPermission(t *testing.T) {
	t.Parallel()
	w := setup(t, 4)
	other := setup(t, 1)
	plan := growing(t, w.plan(t, "grows", 1, 1), 4)
	_, err := w.Submit(t.Context(), other.member, plan.Team, plan.Request, "x")
	if governance.KindOf(err) != governance.Forbidden || !strings.Contains(err.Error(), "create an ElasticJob") {
		t.Errorf("got %v, want Forbidden", err)
	}
}

// randomPolicy returns a policy that is often at a bound of a rule.
func randomPolicy(random *rand.Rand) v1alpha1.ElasticPolicy {
	p := v1alpha1.DefaultElasticPolicy()
	number := func(of ...int32) int32 { return of[random.IntN(len(of))] }
	p.MinReplicas, p.MaxReplicas = number(1, 2, 4, 4, 7, 0, 10_000), number(1, 4, 8, 16, 16, 67, 68, 10_000, 10_001)
	if random.IntN(4) > 0 {
		p.ReplicaIncrementStep = new(number(1, 2, 3, 4, 6, 12, 0, -1))
	}
	if random.IntN(3) == 0 || p.ReplicaIncrementStep == nil && random.IntN(8) > 0 {
		for range random.IntN(5) {
			p.ReplicaDiscreteValues = append(p.ReplicaDiscreteValues, number(1, 2, 4, 8, 16, 0))
		}
		if random.IntN(3) > 0 && p.MinReplicas < p.MaxReplicas {
			p.ReplicaDiscreteValues = []int32{p.MaxReplicas, p.MinReplicas}
		}
		if random.IntN(8) == 0 { // too many
			for i := range int32(63) {
				p.ReplicaDiscreteValues = append(p.ReplicaDiscreteValues, 100+i)
			}
		}
	}
	if random.IntN(6) == 0 {
		for _, timeout := range []*int32{&p.GracefulShutdownTimeoutInSeconds, &p.ScalingTimeoutInSeconds, &p.FaultyScaleDownTimeoutInSeconds, &p.MinStablePeriodSeconds} {
			*timeout = number(0, 1, 86_400, 86_400, 86_401, -1)
		}
		p.BackoffMaxSeconds = number(0, 1, 86_400, 604_800, 604_801)
	}
	return p
}

// CheckElasticPolicy and CheckElasticJobName reject exactly what the API server rejects.
func TestRulesAreTheServers(t *testing.T) {
	current := clustertest.Get(t)
	random := rand.New(rand.NewPCG(21, 4))
	names := []string{"a", "a-b", "train-1", "1a", "a-", "-a", "A", "a.b", "a_b", strings.Repeat("a", 47), strings.Repeat("a", 48)}
	accepted := 0
	for i := range 1500 {
		name, policy := "train", randomPolicy(random)
		if i < len(names) {
			name = names[i]
			policy = v1alpha1.DefaultElasticPolicy()
			policy.MinReplicas, policy.MaxReplicas, policy.ReplicaIncrementStep = 1, 2, new(int32(1))
		}
		job := &v1alpha1.ElasticJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": "main"}},
			Spec:       v1alpha1.ElasticJobSpec{ElasticPolicy: policy, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "train", Image: "train:1"}}}}},
		}
		wrong := manifest.CheckElasticPolicy(&policy, "spec.elasticPolicy")
		if problem := manifest.CheckElasticJobName(name); problem != "" {
			wrong = append(wrong, governance.FieldError{Path: "metadata.name", Message: problem})
		}
		err := current.Client.Create(t.Context(), job, client.DryRunAll)
		if err != nil && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
		if (err == nil) != (len(wrong) == 0) {
			t.Errorf("%s %+v: the server's answer is %v, and ours %v", name, policy, err, wrong)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 200 || accepted > 1300 {
		t.Errorf("%d of 1500 policies were accepted, which compares little", accepted)
	}
}

// DefaultElasticPolicy has the defaults of the CRD.
func TestDefaultsAreTheServers(t *testing.T) {
	c := clustertest.Get(t)
	out, err := c.TryKubectl(`
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: defaults, namespace: default, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1}
  template: {spec: {containers: [{name: a, image: a}]}}
`, "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.elasticPolicy}")
	if err != nil {
		t.Fatal(out)
	}
	want := v1alpha1.DefaultElasticPolicy()
	for field, value := range map[string]int32{
		"gracefulShutdownTimeoutInSeconds": want.GracefulShutdownTimeoutInSeconds, "scalingTimeoutInSeconds": want.ScalingTimeoutInSeconds,
		"faultyScaleDownTimeoutInSeconds": want.FaultyScaleDownTimeoutInSeconds, "minStablePeriodSeconds": want.MinStablePeriodSeconds, "backoffMaxSeconds": want.BackoffMaxSeconds,
	} {
		if text := fmt.Sprintf("%q:%d", field, value); !strings.Contains(out, text+",") && !strings.Contains(out, text+"}") {
			t.Errorf("the server's defaults %s lack %s", out, text)
		}
	}
}

// submitElasticJob submits an ElasticJob that was read from a manifest.
func (w world) submitElasticJob(t *testing.T, team submit.Team, e *v1alpha1.ElasticJob, form string) (submit.Submitted, error) {
	t.Helper()
	plan, _, wrong := team.PlanElasticJob(e)
	if len(wrong) > 0 {
		return submit.Submitted{}, &governance.Error{Kind: governance.Invalid, Fields: wrong}
	}
	return w.SubmitPlan(t.Context(), w.member, plan, form)
}
