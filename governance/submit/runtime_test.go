package submit

import (
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func secretKey(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}}}
}

func fromSecret(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// fullRuntime has all fields.
func fullRuntime() Runtime {
	return Runtime{
		Env:     []corev1.EnvVar{{Name: "EPOCHS", Value: "10"}, secretKey("HF_TOKEN", "hugging-face", "token")},
		EnvFrom: []corev1.EnvFromSource{fromSecret("wandb")}, Volumes: []ClaimMount{{"/data", "datasets", true}, {"/out", "checkpoints", false}},
		SharedMemory: amount("8Gi"), ServiceAccount: "trainer", Processes: 2, Tries: 3,
	}
}

func TestRuntimeOfJob(t *testing.T) {
	r := train()
	r.Runtime = fullRuntime()
	job := planned(t, r).Job()
	spec := job.Spec.Template.Spec
	c := spec.Containers[0]
	want := append(fullRuntime().Env, corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: "2"})
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.EnvFromSource{fromSecret("wandb")}, c.EnvFrom); diff != "" {
		t.Errorf("envFrom (-want +got):\n%s", diff)
	}
	mounts := []corev1.VolumeMount{{Name: "volume-1", MountPath: "/data", ReadOnly: true}, {Name: "volume-2", MountPath: "/out"}, {Name: "shared-memory", MountPath: "/dev/shm"}}
	if diff := cmp.Diff(mounts, c.VolumeMounts); diff != "" {
		t.Errorf("volumeMounts (-want +got):\n%s", diff)
	}
	if v := spec.Volumes; len(v) != 3 || v[0].PersistentVolumeClaim.ClaimName != "datasets" || v[2].EmptyDir.Medium != corev1.StorageMediumMemory || v[2].EmptyDir.SizeLimit.String() != "8Gi" {
		t.Errorf("got volumes %+v", v)
	}
	if spec.ServiceAccountName != "trainer" || *job.Spec.BackoffLimit != 2 {
		t.Errorf("got service account %q and backoffLimit %d", spec.ServiceAccountName, *job.Spec.BackoffLimit)
	}
}

// Each kind has the retries and the processes where its API has them.
func TestRuntimeOfKinds(t *testing.T) {
	r := train()
	r.Runtime = fullRuntime()
	all, err := planned(t, r).Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		wants := []string{"backoffLimit: 2", "claimName: datasets", "serviceAccountName: trainer", "key: token"}
		if m.Kind == PyTorchJob {
			wants = append(wants, `nprocPerNode: "2"`)
		}
		for _, want := range wants {
			if !strings.Contains(m.Text, want) {
				t.Errorf("%s lacks %q:\n%s", m.Kind, want, m.Text)
			}
		}
		if named := strings.Contains(m.Text, "PET_NPROC_PER_NODE"); named == (m.Kind == PyTorchJob) {
			t.Errorf("%s: the variable is set: %v", m.Kind, named)
		}
	}
	r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 8 })
	if got := planned(t, r).ElasticJob().Spec.Template.Spec; len(got.Volumes) != 3 {
		t.Errorf("ElasticJob: got volumes %+v", got.Volumes)
	}
}

func TestInvalidRuntime(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Runtime)
		want   string
	}{
		"a name with a space":   {func(r *Runtime) { r.Env[0].Name = "A B" }, "env"},
		"a variable twice":      {func(r *Runtime) { r.Env[0].Name = "HF_TOKEN" }, "secrets"},
		"the processes' name":   {func(r *Runtime) { r.Env[0].Name = "PET_NPROC_PER_NODE" }, "env"},
		"no key":                {func(r *Runtime) { r.Env[1] = secretKey("A", "secret", "") }, "secrets"},
		"no Secret":             {func(r *Runtime) { r.EnvFrom[0] = fromSecret("A_B") }, "secrets"},
		"a relative path":       {func(r *Runtime) { r.Volumes[0].Path = "data" }, "volumes"},
		"the root":              {func(r *Runtime) { r.Volumes[0].Path = "/" }, "volumes"},
		"a path twice":          {func(r *Runtime) { r.Volumes[1].Path = "/data" }, "volumes"},
		"shared memory twice":   {func(r *Runtime) { r.Volumes[1].Path = "/dev/shm" }, "volumes"},
		"no claim":              {func(r *Runtime) { r.Volumes[1].Claim = "" }, "volumes"},
		"no shared memory":      {func(r *Runtime) { r.SharedMemory = amount("0") }, "sharedMemory"},
		"another object's name": {func(r *Runtime) { r.ServiceAccount = "Trainer" }, "serviceAccount"},
		"more than can be given": {func(r *Runtime) {
			r.EnvFrom = make([]corev1.EnvFromSource, 0, 101)
			for range 101 {
				r.EnvFrom = append(r.EnvFrom, fromSecret("a"))
			}
		}, "env"},
	} {
		t.Run(name, func(t *testing.T) {
			r := train()
			r.Runtime = fullRuntime()
			tc.change(&r.Runtime)
			if _, wrong := vision().Plan(r); len(wrong) != 1 || wrong[0].Path != tc.want {
				t.Errorf("got errors %v, want one at %s", wrong, tc.want)
			}
		})
	}
}

func TestHyperPodCommandOfRuntime(t *testing.T) {
	r := train()
	r.PerPod.Accelerators = p(int64(8))
	r.Runtime = fullRuntime()
	plan := planned(t, r)
	if line, why := plan.HyperPodCommand(); !strings.Contains(line, "--tasks-per-node 2") {
		t.Errorf("got %q, %q", line, why)
	}
	if diff := cmp.Diff([]string{"the environment", "volumes", "shared memory", "the service account", "tries"}, plan.HyperPodLeavesOut()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
