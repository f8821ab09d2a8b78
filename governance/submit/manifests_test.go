package submit

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/kueue/enforcement"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/yaml"
)

// vision is a team with tainted p5 nodes.
func vision() Team {
	pool := poolOf("ml.p5.48xlarge", p5Node)
	pool.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	return Team{
		Name: "vision", Namespace: "hyperpod-ns-vision", Queue: "hyperpod-ns-vision-localqueue", Pools: []QueuePool{pool, poolOf("ml.c5.2xlarge")},
		Classes: []PriorityClass{{Name: "training-priority", Priority: 60}, {Name: "dev-priority", DefaultTimeLimit: 3600, MaximumTimeLimit: 7200}, {Name: "short-priority", DefaultTimeLimit: 600, MaximumTimeLimit: 600}}, Kinds: []Kind{Job, PyTorchJob, RayJob, JobSet, ElasticJob}, KindsKnown: true, MaySubmit: true,
	}
}

func train() Request {
	return Request{Name: "train", Class: "training-priority", Pool: "ml.p5.48xlarge", Pods: 4, PerPod: v1alpha1.Quantities{Accelerators: p(int64(2))}, Image: "train:1", Command: "python 'train.py'"}
}

func planned(t *testing.T, r Request) Plan {
	t.Helper()
	plan, wrong := vision().Plan(r)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return plan
}

// The manifest of a Job equals the Job that the console would create, and has no field
// that the API server would ignore.
func TestJobManifest(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"as it is":      func(*Request) {},
		"only the pool": func(r *Request) { *r = Request{Pool: r.Pool, Pods: 1} },
		"minimum pods":  func(r *Request) { r.MinPods = 2 },
		"part of a GPU": func(r *Request) {
			r.PerPod = v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 2}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := train()
			change(&r)
			plan := planned(t, r)
			all, err := plan.Manifests()
			if err != nil {
				t.Fatal(err)
			}
			var job batchv1.Job
			if err := yaml.UnmarshalStrict([]byte(all[0].Text), &job); err != nil {
				t.Fatalf("%v\n%s", err, all[0].Text)
			}
			if diff := cmp.Diff(plan.Job(), &job); diff != "" {
				t.Error(diff)
			}
			for _, useless := range []string{"status", "creationTimestamp", "null", "{}"} {
				if strings.Contains(all[0].Text, useless) {
					t.Errorf("got %q in\n%s", useless, all[0].Text)
				}
			}
		})
	}
}

// policy returns a policy from 4 pods, the number that train requests.
func policy(change func(*v1alpha1.ElasticPolicy)) *v1alpha1.ElasticPolicy {
	p := v1alpha1.DefaultElasticPolicy()
	change(&p)
	return &p
}

// The only manifest of an elastic task is the ElasticJob that the console would create.
func TestElasticManifest(t *testing.T) {
	r := train()
	r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas, p.ScalingTimeoutInSeconds = 16, 0 })
	plan := planned(t, r)
	all, err := plan.Manifests()
	if err != nil || len(all) != 1 || all[0].Kind != ElasticJob {
		t.Fatalf("got %v, %v, want one ElasticJob", all, err)
	}
	var job v1alpha1.ElasticJob
	if err := yaml.UnmarshalStrict([]byte(all[0].Text), &job); err != nil {
		t.Fatalf("%v\n%s", err, all[0].Text)
	}
	if diff := cmp.Diff(plan.ElasticJob(), &job); diff != "" {
		t.Error(diff)
	}
	want := policy(func(p *v1alpha1.ElasticPolicy) {
		p.MinReplicas, p.MaxReplicas, p.ReplicaIncrementStep, p.ScalingTimeoutInSeconds = 4, 16, new(int32(4)), 0
	})
	if diff := cmp.Diff(*want, job.Spec.ElasticPolicy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plan.Job().Spec.Template.Spec.Containers, job.Spec.Template.Spec.Containers); diff != "" {
		t.Errorf("containers (-of a Job +got):\n%s", diff)
	}
	if text := all[0].Text; strings.Contains(text, "status") || strings.Contains(text, "null") || strings.Contains(text, "suspend") {
		t.Errorf("got\n%s", text)
	}
}

// Whatever bounds are typed, the step that is filled in reaches the maximum.
func TestFillElasticStep(t *testing.T) {
	for pods := range int32(70) {
		for most := range int32(140) {
			filled := FillElastic(v1alpha1.ElasticPolicy{MaxReplicas: most}, pods)
			step := *filled.ReplicaIncrementStep
			if step < 1 || filled.MaxReplicas >= pods && (filled.MaxReplicas-pods)%step != 0 {
				t.Errorf("from %d to %d: got steps of %d to %d", pods, most, step, filled.MaxReplicas)
			}
			if most == 0 && pods > 0 && (filled.MaxReplicas != 2*pods || step != pods) {
				t.Errorf("from %d: got steps of %d to %d", pods, step, filled.MaxReplicas)
			}
		}
	}
	sizes := FillElastic(v1alpha1.ElasticPolicy{ReplicaDiscreteValues: []int32{4, 16, 8}}, 4)
	if sizes.MaxReplicas != 16 || sizes.ReplicaIncrementStep != nil {
		t.Errorf("of sizes: got %+v, want a maximum of 16 and no step", sizes)
	}
}

// The manifest of every kind has the requested number of pods, the team's queue, the
// pool, and the filled-in resources of each pod.
func TestManifestOfEveryKind(t *testing.T) {
	all, err := planned(t, train()).Manifests()
	if err != nil {
		t.Fatal(err)
	}
	templates := map[Kind]int{Job: 1, PyTorchJob: 2, RayJob: 2, JobSet: 1}
	for _, m := range all {
		var tree map[string]any
		if err := yaml.Unmarshal([]byte(m.Text), &tree); err != nil {
			t.Fatal(err)
		}
		if tree["kind"] != string(m.Kind) || !strings.Contains(m.Text, "suspend: true") {
			t.Errorf("got the %s\n%s", m.Kind, m.Text)
		}
		for text, want := range map[string]int{
			"kueue.x-k8s.io/queue-name: hyperpod-ns-vision-localqueue": 1, "kueue.x-k8s.io/priority-class: training-priority": 1, "namespace: hyperpod-ns-vision": 1,
			"node.kubernetes.io/instance-type: ml.p5.48xlarge": templates[m.Kind], "memory: 512Gi": 2 * templates[m.Kind], `nvidia.com/gpu: "2"`: 2 * templates[m.Kind],
			"effect: NoSchedule": templates[m.Kind], "image: train:1": templates[m.Kind],
		} {
			if got := strings.Count(m.Text, text); got != want {
				t.Errorf("%s has %d × %q, want %d\n%s", m.Kind, got, text, want, m.Text)
			}
		}
	}
	workers := map[Kind]string{Job: "parallelism: 4", PyTorchJob: "replicas: 3", RayJob: "maxReplicas: 3", JobSet: "completions: 4"}
	for _, m := range all {
		if !strings.Contains(m.Text, workers[m.Kind]) {
			t.Errorf("%s lacks %q\n%s", m.Kind, workers[m.Kind], m.Text)
		}
	}
}

func TestHyperPodCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*Request)
		want    []string
		wantNot []string
		wantWhy string
	}{
		"one pod": {
			change: func(r *Request) { r.Pods = 1 },
			want: []string{"--job-name train", "--priority training-priority", "--queue-name hyperpod-ns-vision-localqueue", "--instance-type ml.p5.48xlarge", "--accelerators 2", "--accelerators-limit 2",
				"--vcpu 48", "--memory 512", `--command '["sh","-c","python '\''train.py'\''"]'`},
			wantNot: []string{"--node-count"},
		},
		"whole instances": {
			change: func(r *Request) { r.PerPod.Accelerators = p(int64(8)) },
			want:   []string{"--node-count 4", "--tasks-per-node 8"}, wantNot: []string{"--vcpu", "--accelerators"},
		},
		"several pods of a part": {change: func(*Request) {}, wantWhy: "whole instances"},
		"elastic by steps": {
			change: func(r *Request) {
				r.PerPod.Accelerators, r.Elastic = p(int64(8)), policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 16 })
			},
			want: []string{"--node-count 4", "--max-node-count 16", "--elastic-replica-increment-step 4", "--elastic-graceful-shutdown-timeout-in-seconds 30", "--elastic-scaling-timeout-in-seconds 60"},
		},
		"elastic by sizes, from one": {
			change: func(r *Request) {
				r.Pods, r.PerPod.Accelerators, r.Elastic = 1, p(int64(8)), policy(func(p *v1alpha1.ElasticPolicy) { p.ReplicaDiscreteValues = []int32{1, 2, 8} })
			},
			want: []string{"--node-count 1", "--max-node-count 8", "--elastic-replica-discrete-values '[1,2,8]'"}, wantNot: []string{"increment", "--vcpu"},
		},
		"several without accelerators": {change: func(r *Request) { r.Pool, r.PerPod = "ml.c5.2xlarge", v1alpha1.Quantities{} }, wantWhy: "with accelerators only"},
		"elastic of a part":            {change: func(r *Request) { r.Pods, r.Elastic = 1, policy(func(*v1alpha1.ElasticPolicy) {}) }, wantWhy: "whole instances"},
		"part of a GPU": {
			change: func(r *Request) {
				r.Pods, r.PerPod = 1, v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 2}}
			},
			want: []string{"--accelerator-partition-type mig-1g.10gb", "--accelerator-partition-count 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := train()
			tc.change(&r)
			line, why := planned(t, r).HyperPodCommand()
			if (why != "") != (tc.wantWhy != "") || !strings.Contains(why, tc.wantWhy) {
				t.Errorf("got the reason %q, want %q", why, tc.wantWhy)
			}
			for _, text := range tc.want {
				if !strings.Contains(line, text) {
					t.Errorf("%q lacks %q", line, text)
				}
			}
			for _, text := range tc.wantNot {
				if strings.Contains(line, text) {
					t.Errorf("%q contains %q", line, text)
				}
			}
		})
	}
}

// A task has the default time limit of its class in all its manifests, unless it names
// another one.
func TestTimeLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		class string
		typed int32
		want  string // empty for no time limit
	}{
		"no limit":                   {"training-priority", 0, ""},
		"a limit in any class":       {"training-priority", 90000, "90000"},
		"the default":                {"dev-priority", 0, "3600"},
		"a limit within the maximum": {"dev-priority", 7200, "7200"},
	} {
		t.Run(name, func(t *testing.T) {
			r := train()
			r.Class, r.TimeLimit = tc.class, tc.typed
			all, err := planned(t, r).Manifests()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				var meta metav1.PartialObjectMetadata
				if err := yaml.Unmarshal([]byte(m.Text), &meta); err != nil {
					t.Fatal(err)
				}
				if got := meta.Labels["kueue.x-k8s.io/max-exec-time-seconds"]; got != tc.want {
					t.Errorf("%s: got a time limit of %q, want %q", m.Kind, got, tc.want)
				}
			}
			r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 16 })
			job := planned(t, r).ElasticJob()
			got := ""
			if s := job.Spec.ActiveDeadlineSeconds; s != nil {
				got = strconv.FormatInt(*s, 10)
			}
			if got != tc.want || job.Labels["kueue.x-k8s.io/max-exec-time-seconds"] != "" {
				t.Errorf("ElasticJob: got activeDeadlineSeconds %q and labels %v, want %q and no label of it", got, job.Labels, tc.want)
			}
		})
	}
	r := train()
	r.Class, r.TimeLimit = "short-priority", 601
	if _, wrong := vision().Plan(r); len(wrong) != 1 || wrong[0].Path != "timeLimit" || wrong[0].Message != "must be at most 10m in priority class short-priority" {
		t.Errorf("a time limit above the maximum: got %v", wrong)
	}
}

// A manifest that was read has the default time limit too, and its own is checked.
func TestTimeLimitOfManifest(t *testing.T) {
	read := func(class string, seconds *int64) (Plan, []string) {
		r := train()
		r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 16 })
		job := planned(t, r).ElasticJob()
		job.Labels[constants.WorkloadPriorityClassLabel], job.Spec.ActiveDeadlineSeconds = class, seconds
		plan, _, wrong := vision().PlanElasticJob(job)
		var paths []string
		for _, w := range wrong {
			paths = append(paths, w.Path)
		}
		return plan, paths
	}
	if plan, wrong := read("dev-priority", nil); len(wrong) > 0 || *plan.ElasticJob().Spec.ActiveDeadlineSeconds != 3600 {
		t.Errorf("without a time limit: got errors at %v", wrong)
	}
	if _, wrong := read("short-priority", p(int64(601))); len(wrong) != 1 || wrong[0] != "spec.activeDeadlineSeconds" {
		t.Errorf("above the maximum: got errors at %v, want one at spec.activeDeadlineSeconds", wrong)
	}
}

// Each invalid value is reported at its field.
func TestInvalidFields(t *testing.T) {
	for field, change := range map[string]func(*Request){
		"name":                func(r *Request) { r.Name = "Train!" },
		"kind":                func(r *Request) { r.Kind = LeaderWorkerSet },
		"pool":                func(r *Request) { r.Pool = "ml.g5.2xlarge" },
		"class":               func(r *Request) { r.Class = "none-priority" },
		"timeLimit":           func(r *Request) { r.Class, r.TimeLimit = "dev-priority", 7201 },
		"pods":                func(r *Request) { r.Pods = 0 },
		"least":               func(r *Request) { r.MinPods = 9 },
		"image":               func(r *Request) { r.Image = "two words" },
		"command":             func(r *Request) { r.Command = "\x00" },
		"instances":           func(r *Request) { r.PerPod = v1alpha1.Quantities{Instances: p(int64(1))} },
		"accelerators":        func(r *Request) { r.Pool, r.PerPod.Accelerators = "ml.c5.2xlarge", p(int64(1)) },
		"elastic.maxReplicas": func(r *Request) { r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 3 }) },
		"elastic.replicaIncrementStep": func(r *Request) {
			r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas, p.ReplicaIncrementStep = 16, new(int32(5)) })
		},
		"elastic.replicaDiscreteValues": func(r *Request) {
			r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.ReplicaDiscreteValues = []int32{8, 16} })
		},
		"vCPU": func(r *Request) { r.PerPod.VCPU = amount("-1") },
		"partition.profile": func(r *Request) {
			r.PerPod = v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.1gb", Count: 2}}
		},
	} {
		t.Run(field, func(t *testing.T) {
			r := train()
			change(&r)
			_, wrong := vision().Complete(r)
			if len(wrong) != 1 || wrong[0].Path != field || wrong[0].Message == "" {
				t.Errorf("got %v, want one error at %s", wrong, field)
			}
		})
	}
	for _, r := range []Request{{Pool: "ml.p5.48xlarge", Pods: 1}} { // enough for a manifest, and for no task
		if _, wrong := vision().Complete(r); len(wrong) != 2 || wrong[0].Path != "name" || wrong[1].Path != "image" {
			t.Errorf("got %v, want errors at name and image", wrong)
		}
	}
}

// The kinds are those in Kueue's configuration, or only Job before it was read.
func TestKindsOf(t *testing.T) {
	seen := func(integrations ...string) *v1alpha1.ClusterPolicy {
		return &v1alpha1.ClusterPolicy{Status: v1alpha1.ClusterPolicyStatus{Kueue: &v1alpha1.KueueStatus{Integrations: integrations}}}
	}
	for name, tc := range map[string]struct {
		policy    *v1alpha1.ClusterPolicy
		want      []Kind
		wantKnown bool
	}{
		"no policy":        {want: []Kind{Job, ElasticJob}},
		"not read yet":     {policy: &v1alpha1.ClusterPolicy{}, want: []Kind{Job, ElasticJob}},
		"some":             {policy: seen("ray.io/rayjob", "batch/job", "pod"), want: []Kind{Job, RayJob, ElasticJob}, wantKnown: true},
		"without Jobs":     {policy: seen("kubeflow.org/pytorchjob", "jobset.x-k8s.io/jobset"), want: []Kind{PyTorchJob, JobSet}, wantKnown: true},
		"nothing of these": {policy: seen("pod"), wantKnown: true},
	} {
		t.Run(name, func(t *testing.T) {
			if kinds, known := kindsOf(tc.policy); !cmp.Equal(kinds, tc.want) || known != tc.wantKnown {
				t.Errorf("got %v, known %t, want %v, %t", kinds, known, tc.want, tc.wantKnown)
			}
		})
	}
}

// A kind whose operator is not installed is not served, and one whose discovery fails may be.
func TestIsServed(t *testing.T) {
	answers := map[string]error{"RayJob": &meta.NoKindMatchError{}, "JobSet": errors.New("unavailable")}
	for kind, want := range map[Kind]bool{Job: true, RayJob: false, JobSet: true} {
		k, ok := enforcement.TaskKind(string(kind))
		got := isServed(k, func(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
			return &meta.RESTMapping{}, answers[kind.Kind]
		})
		if !ok || got != want {
			t.Errorf("%s: got %t, want %t", kind, got, want)
		}
	}
}

// A user who may not create ElasticJobs cannot submit an elastic task.
func TestElasticNeedsPermission(t *testing.T) {
	team, r := vision(), train()
	team.Kinds = []Kind{Job}
	r.Elastic = policy(func(p *v1alpha1.ElasticPolicy) { p.MaxReplicas = 16 })
	if _, wrong := team.Plan(r); len(wrong) != 1 || wrong[0].Path != "elastic" || team.MaySubmitElastic() {
		t.Errorf("got %v, submits %t, want one error at elastic", wrong, team.MaySubmitElastic())
	}
}

// A task is created: apply of its file again would suspend it, which admission refuses. A
// service is applied.
func TestKubectl(t *testing.T) {
	p := planned(t, train())
	if m, err := p.Manifest(); err != nil || !strings.HasPrefix(p.KubectlCommand(m), "kubectl create -f - <<'EOF'\napiVersion: batch/v1") {
		t.Errorf("got %q, %v", p.KubectlCommand(m), err)
	}
	p.Serving = &Serving{}
	if p.Kubectl() != "kubectl apply -f" {
		t.Errorf("got %q for a service", p.Kubectl())
	}
}
