package training_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	realNode = "real-node" // its name and its instance type
	image    = "localhost/elastic-train:1"
	base     = "localhost/kuota-torch:trixie" // by install.sh
	user     = 65532                          // of the Dockerfile
)

// lab is a cluster with a real node, and the console beside it.
type lab struct {
	*testing.T
	*clustertest.Cluster
	cpu int64 // of the real node, in thousandths
}

// newLab returns a cluster with a console and two teams, which have half of the node each.
func newLab(t *testing.T) (*lab, *consoles.Replica) {
	t.Helper()
	l := &lab{T: t, Cluster: clustertest.Get(t)}
	l.importImage()
	console := consoles.New(t, l.Cluster, clustertest.Name("training"), "none", "KUOTA_OIDC_COMMAND_LINE_CLIENT_ID=kuota-cli")
	console.WaitReady()
	var node corev1.Node
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: realNode}, &node); err != nil {
		t.Fatal(err)
	}
	l.cpu = node.Status.Allocatable.Cpu().MilliValue()
	l.team("training", 50)
	l.team("other", 50)
	return l, console
}

// importImage builds the image of the docs on Debian's PyTorch, and imports it into the
// node.
func (l *lab) importImage() {
	l.Helper()
	images, archive := os.Getenv("KUOTA_IMAGES"), filepath.Join(l.TempDir(), "train.tar")
	run := func(name string, args ...string) {
		l.Helper()
		command := exec.Command(name, args...)
		command.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+filepath.Join(images, "storage.conf"))
		if out, err := command.CombinedOutput(); err != nil {
			l.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("buildah", "build", "--isolation", "chroot", "--pull=never", "--quiet", "--build-arg", "BASE="+base, "--tag", image, "--file", filepath.Join(docs(), "Dockerfile"), clustertest.Root())
	run("buildah", "push", "--quiet", "--disable-compression", image, "oci-archive:"+archive+":"+image)
	run(filepath.Join(clustertest.Root(), ".local", "bin", "localcluster"), "import", archive, "--dir", l.Dir)
}

func docs() string { return filepath.Join(clustertest.Root(), "docs", "examples", "elastic") }

func namespace(team string) string { return desired.DefaultNaming.Namespace(team) }

// share returns a share of the node's CPU.
func (l *lab) share(percent int64) *resource.Quantity {
	return resource.NewMilliQuantity(l.cpu*percent/100, resource.DecimalSI)
}

// team creates an allocation of a share of the node.
func (l *lab) team(name string, percent int64) {
	l.Helper()
	allocation := &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ComputeAllocationSpec{Quota: []v1alpha1.QuotaRow{{InstanceType: realNode, Quantities: v1alpha1.Quantities{VCPU: l.share(percent)}}}},
	}
	allocation.Spec.Sharing.Unlimited = true
	if err := l.Client.Create(l.Context(), allocation); err != nil && !apierrors.IsAlreadyExists(err) {
		l.Fatal(err)
	}
	l.wait("team "+name, func(ctx context.Context) error {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(allocation), allocation); err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionQueueActive} {
			if !meta.IsStatusConditionTrue(allocation.Status.Conditions, condition) {
				return fmt.Errorf("%s: %+v", condition, meta.FindStatusCondition(allocation.Status.Conditions, condition))
			}
		}
		return nil
	})
}

// submit creates a Job of one pod of the image.
func (l *lab) submit(team, name string, percent int64, command ...string) *batchv1.Job {
	l.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(team), Name: name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": desired.DefaultNaming.LocalQueue(team)}},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{Name: "main", Image: image, Command: command, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *l.share(percent)}}}},
		}}},
	}
	if err := l.Client.Create(l.Context(), job); err != nil {
		l.Fatal(err)
	}
	return job
}

func (l *lab) remove(job *batchv1.Job) {
	l.Helper()
	if err := l.Client.Delete(l.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		l.Fatal(err)
	}
}

// elastic creates the objects of the docs, with the image, the quantities and the times of
// this test, and the volume that an admin provides for the claim.
func (l *lab) elastic(team string, percent int64, change func(*v1alpha1.ElasticJob)) *v1alpha1.ElasticJob {
	l.Helper()
	folder := filepath.Join(l.Dir, "data", "node", "lib", "checkpoints") // /var/lib/checkpoints of the node
	if err := os.MkdirAll(folder, 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.Chown(folder, user, user); err != nil {
		l.Fatal(err)
	}
	file, err := os.Open(filepath.Join(docs(), "elasticjob.yaml"))
	if err != nil {
		l.Fatal(err)
	}
	defer file.Close()
	var claim corev1.PersistentVolumeClaim
	e := &v1alpha1.ElasticJob{}
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for _, object := range []any{&claim, e} {
		if err := documents.Decode(object); err != nil {
			l.Fatal(err)
		}
	}
	if err := documents.Decode(&struct{}{}); err != io.EOF {
		l.Fatalf("elasticjob.yaml has more than two objects: %v", err)
	}
	claim.Namespace, claim.Spec.StorageClassName, claim.Spec.VolumeName = namespace(team), ptr.To(""), "checkpoints"
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "checkpoints"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/checkpoints", Type: ptr.To(corev1.HostPathDirectory)}},
		},
	}
	e.Namespace, e.Labels["kueue.x-k8s.io/queue-name"] = namespace(team), desired.DefaultNaming.LocalQueue(team)
	policy := &e.Spec.ElasticPolicy
	policy.ScalingTimeoutInSeconds, policy.FaultyScaleDownTimeoutInSeconds = 2, 120
	policy.MinStablePeriodSeconds, policy.BackoffMaxSeconds = 5, 5
	container := &e.Spec.Template.Spec.Containers[0]
	container.Image = image
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *l.share(percent)}
	for name, value := range map[string]string{
		"SAMPLES": fmt.Sprint(samples), "EPOCHS": fmt.Sprint(epochs), "GLOBAL_BATCH": fmt.Sprint(globalBatch), "CHECKPOINT_STEPS": fmt.Sprint(interval),
		"MIN_STEP_SECONDS": "0.1", // so that the steps are of a model that needs several pods
	} {
		container.Env = slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	change(e)
	for _, object := range []client.Object{volume, &claim, e} {
		if err := l.Client.Create(l.Context(), object); err != nil && (object == e || !apierrors.IsAlreadyExists(err)) {
			l.Fatal(err)
		}
	}
	return e
}

// wait waits for a state. If it does not come, the test fails with what is in the cluster.
func (l *lab) wait(what string, check func(context.Context) error) {
	l.Helper()
	began := time.Now()
	for {
		err := check(l.Context())
		if err == nil {
			l.Logf("%s: after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		if time.Since(began) > clustertest.Patience {
			state, _ := l.TryKubectl("", "get", "elasticjobs,jobs,workloads,pods,events", "-A", "-o", "wide")
			logs, _ := l.TryKubectl("", "logs", "-n", namespace("training"), "-l", v1alpha1.LabelElasticJob, "--tail=40", "--prefix")
			l.Fatalf("%s: %v\n%s\n%s", what, err, state, logs)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (l *lab) waitSize(e *v1alpha1.ElasticJob, want int32) {
	l.Helper()
	l.wait(fmt.Sprintf("size %d", want), func(ctx context.Context) error {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if e.Status.Replicas != want {
			return fmt.Errorf("the size is %d (%s)", e.Status.Replicas, e.Status.State)
		}
		return nil
	})
}

func (l *lab) waitEnd(e *v1alpha1.ElasticJob) {
	l.Helper()
	l.wait("the end", func(ctx context.Context) error {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if e.Status.State == v1alpha1.ElasticFailed {
			l.Fatalf("the training failed:\n%s", l.log(e))
		}
		if e.Status.State != v1alpha1.ElasticSucceeded {
			return fmt.Errorf("the training is %s", e.Status.State)
		}
		return nil
	})
}

// waitPod waits until the pod of a Job runs or has succeeded.
func (l *lab) waitPod(job *batchv1.Job) {
	l.Helper()
	l.wait("the pod of "+job.Name, func(context.Context) error {
		phase := l.Kubectl(l.T, "", "get", "pods", "-n", job.Namespace, "-l", "job-name="+job.Name, "-o", "jsonpath={.items[*].status.phase}")
		if phase != "Running" && phase != "Succeeded" {
			return fmt.Errorf("the pod is %q", phase)
		}
		return nil
	})
}

// log returns the log of the first pod of the base, where rank 0 is: torchrun orders pods
// by name. It is empty until its container starts.
func (l *lab) log(e *v1alpha1.ElasticJob) string {
	l.Helper()
	out, err := l.TryKubectl("", "logs", "-n", e.Namespace, "-l", "job-name="+e.Name+"-base,batch.kubernetes.io/job-completion-index=0", "--tail=-1")
	if err != nil {
		return ""
	}
	return out
}

// asMember binds the sample provider's admin group to the role of a member of a
// namespace: admins of Kuota may not read logs.
const asMember = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-logs, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: kuota-admins}]
`

// workload returns the UID of the Workload of a Job.
func (l *lab) workload(of *batchv1.Job) types.UID {
	l.Helper()
	var list kueue.WorkloadList
	if err := l.Client.List(l.Context(), &list, client.InNamespace(of.Namespace)); err != nil {
		l.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(w kueue.Workload) bool {
		owner := metav1.GetControllerOf(&w)
		return owner != nil && owner.UID == of.UID
	})
	if i < 0 {
		l.Fatalf("Job %s has no Workload", of.Name)
	}
	return list.Items[i].UID
}

// waitJob waits until a Job has succeeded.
func (l *lab) waitJob(job *batchv1.Job) {
	l.Helper()
	l.wait("the end of "+job.Name, func(ctx context.Context) error {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.Status.Failed > 0 {
			l.Fatalf("%s failed:\n%s", job.Name, l.Kubectl(l.T, "", "logs", "-n", job.Namespace, "job/"+job.Name, "--tail=50"))
		}
		if job.Status.Succeeded != 1 {
			return fmt.Errorf("active %d", job.Status.Active)
		}
		return nil
	})
}
