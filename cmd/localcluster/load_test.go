package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const testLoad = `
repeat: 10m
keep: 2m
accelerators:
  H100: {instanceType: ml.p5.48xlarge, resource: nvidia.com/gpu, cpu: "12", memory: 128Gi}
steps:
- {at: 30s, team: speech, name: later, of: H100, each: 1, pods: 3, runs: 90s}
- {at: 0s, team: vision, name: first, class: training, of: H100, each: 8, runs: 4m}
`

func TestParseLoadReportsAllMistakes(t *testing.T) {
	replace := func(pairs ...string) string {
		changed := strings.NewReplacer(pairs...).Replace(testLoad)
		if changed == testLoad {
			t.Fatalf("%q replaces nothing", pairs)
		}
		return changed
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":                 {"steps: [", []string{"not a load"}},
		"an unknown field":        {replace("pods: 3", "pod: 3"), []string{"not a load", `"pod"`}},
		"nothing":                 {"", []string{"steps: list at least one", `repeat: "" is not a duration`, `keep: "" is not a duration`}},
		"durations without units": {replace("10m", "10", "90s", "90"), []string{`repeat: "10" is not a duration; use one such as 90s or 4m`, `step 1 (later): runs: "90"`}},
		"too short":               {replace("10m", "1s", "90s", "0s"), []string{"repeat: 1s is too short; use 1m0s or more", "step 1 (later): runs: 0s is too short"}},
		"kept for too long":       {replace("keep: 2m", "keep: 11m"), []string{"keep: 11m0s is longer than a round of 10m0s"}},
		"before the round":        {replace("at: 0s", "at: -1s"), []string{"step 2 (first): at: -1s is too short"}},
		"after the round":         {replace("at: 30s", "at: 10m"), []string{"step 1 (later): at 10m is after the start of the next round; repeat is 10m"}},
		"invalid names":           {replace("vision", "Vision!", "name: later, ", ""), []string{`step 2 (first): team "Vision!": use at most 40 lower-case letters`, `step 1 (without a name): name ""`}},
		"a name too long":         {replace("later", strings.Repeat("x", 41)), []string{"use at most 40"}},
		"a name twice":            {replace("speech", "vision", "later", "first"), []string{"step 2 (first): team vision already has a step of this name"}},
		"no such accelerator":     {replace("of: H100, each: 8", "of: H200, each: 8"), []string{`step 2 (first): of "H200": use the name of an accelerator above`}},
		"counts":                  {replace("each: 8", "each: 0", "pods: 3", "pods: 101"), []string{"step 2 (first): each: 0 is not from 1 to 100", "step 1 (later): pods: 101"}},
		"an accelerator":          {replace("128Gi", "much", "resource: nvidia.com/gpu, ", ""), []string{"accelerators.H100: set instanceType and resource", `accelerators.H100.memory: "much" is not a quantity`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseLoad([]byte(tc.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// The sample's load uses teams, priority classes and instance types of the sample.
func TestSampleLoadMatchesTheOtherSamples(t *testing.T) {
	l, err := readLoad(filepath.Join("samples", "load.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	teams, classes, types := map[string]bool{}, map[string]bool{"": true}, map[string]bool{}
	for _, file := range []string{"teams.yaml", "policy.yaml", "nodes.yaml"} {
		objs, err := readManifest(filepath.Join("samples", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objs {
			switch u.GetKind() {
			case "ComputeAllocation":
				teams[u.GetName()] = true
			case "Node":
				types[u.GetLabels()["node.kubernetes.io/instance-type"]] = true
			case "ClusterPolicy":
				named, _, _ := unstructured.NestedSlice(u.Object, "spec", "priorityClasses")
				for _, class := range named {
					classes[class.(map[string]any)["name"].(string)] = true
				}
			}
		}
	}
	for _, s := range l.steps {
		if !teams[s.team] || !classes[s.class] || !types[l.accelerators[s.of].InstanceType] {
			t.Errorf("step %s of team %s, class %q, on %q: not in the sample", s.name, s.team, s.class, s.of)
		}
	}
}

func TestJobOfAStep(t *testing.T) {
	l, err := parseLoad([]byte(testLoad))
	if err != nil {
		t.Fatal(err)
	}
	job := l.job(l.steps[0], 3)
	pod := job.Spec.Template
	if job.Name != "first-3" || job.Namespace != "hyperpod-ns-vision" || !*job.Spec.Suspend || *job.Spec.Parallelism != 1 || *job.Spec.Completions != 1 ||
		*job.Spec.BackoffLimit != 0 || *job.Spec.TTLSecondsAfterFinished != 120 || pod.Spec.NodeSelector["node.kubernetes.io/instance-type"] != "ml.p5.48xlarge" {
		t.Errorf("got %+v", job)
	}
	if job.Labels["kueue.x-k8s.io/queue-name"] != "hyperpod-ns-vision-localqueue" || job.Labels["kueue.x-k8s.io/priority-class"] != "training-priority" {
		t.Errorf("its labels are %v", job.Labels)
	}
	if delay := pod.Annotations["pod-complete.stage.kwok.x-k8s.io/delay"]; delay != "4m0s" {
		t.Errorf("its pods end after %q", delay)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8"} {
		resources := pod.Spec.Containers[0].Resources
		if request, limit := resources.Requests[name], resources.Limits[name]; request.String() != want || limit.String() != want {
			t.Errorf("a pod requests %s of %s, limit %s, want %s", &request, name, &limit, want)
		}
	}
}

// fakeJobs is a cluster that records the creation of Jobs.
type fakeJobs struct {
	begin time.Time
	log   []string        // created Jobs, each with its time
	ended map[string]bool // state of the existing Jobs
	fails []error         // errors of the next attempts
	tries int
}

func (f *fakeJobs) Create(_ context.Context, job client.Object, _ ...client.CreateOption) error {
	f.tries++
	if len(f.fails) > 0 {
		err := f.fails[0]
		f.fails = f.fails[1:]
		return err
	}
	f.log = append(f.log, fmt.Sprintf("%s %s", time.Since(f.begin), job.GetName()))
	return nil
}

func (f *fakeJobs) Get(_ context.Context, key client.ObjectKey, job client.Object, _ ...client.GetOption) error {
	ended, exists := f.ended[key.Name]
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, key.Name)
	}
	if ended {
		job.(*batchv1.Job).Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	return nil
}

// runLoad runs the test's load for a time and returns what it prints.
func runLoad(t *testing.T, f *fakeJobs, d time.Duration) (printed []string) {
	t.Helper()
	l, err := parseLoad([]byte(testLoad))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	f.begin = time.Now()
	l.run(ctx, f, func(format string, args ...any) { printed = append(printed, fmt.Sprintf(format, args...)) })
	return printed
}

func TestLoadCreatesTheJobsOfEachRound(t *testing.T) {
	all := []string{"0s first", "30s later", "10m0s first-2", "10m30s later-2", "20m0s first-3", "20m30s later-3"}
	for name, tc := range map[string]struct {
		ended map[string]bool // existing Jobs of the first round
		want  []string
	}{
		"Jobs end and are deleted": {nil, all},
		"Jobs end and exist":       {map[string]bool{"first": true, "later": true}, all},
		"one Job does not end":     {map[string]bool{"first": false}, []string{"0s first", "30s later", "10m30s later-2", "20m30s later-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeJobs{ended: tc.ended}
				printed := runLoad(t, f, 21*time.Minute)
				if !slices.Equal(f.log, tc.want) || len(printed) > 0 {
					t.Errorf("created %q, printed %q, want %q", f.log, printed, tc.want)
				}
			})
		})
	}
}

// The creation of a Job is repeated while the API server or a webhook does not
// answer, and not when it is refused. Later steps follow in both cases.
func TestLoadRepeatsFailedCreations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeJobs{fails: []error{fmt.Errorf("connection refused"), apierrors.NewInternalError(fmt.Errorf("webhook does not answer"))}}
		if printed := runLoad(t, f, time.Minute); len(printed) > 0 || f.tries != 4 || len(f.log) != 2 || f.log[0] != "100ms first" {
			t.Errorf("created %q by %d attempts, printed %q", f.log, f.tries, printed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakeJobs{fails: []error{apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "first", fmt.Errorf("no"))}}
		printed := runLoad(t, f, time.Minute)
		if len(printed) != 1 || !strings.Contains(printed[0], "first of team vision is skipped") || !slices.Equal(f.log, []string{"30s later"}) {
			t.Errorf("created %q, printed %q", f.log, printed)
		}
	})
}

// The samples show the effects of quota within a minute; other tests run at the
// same time here, so the limit is two.
func TestSampleLoadShowsBorrowingAndPreemption(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	l := startInstance(t, "--crds", "../../deploy/crds", "--rbac", "../../deploy/rbac", "--users", "users.yaml",
		"--console", filepath.Join(bin, "kuota"), "--console-port", "0", "--samples", "samples")
	api, err := newAPIClient(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
		var objs unstructured.UnstructuredList
		objs.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind})
		err := api.List(ctx, &objs)
		return objs.Items, err
	}
	seen := map[string]bool{}
	err = waitFor(t.Context(), 2*time.Minute, func(ctx context.Context) error {
		workloads, err := list(ctx, "WorkloadList")
		if err != nil {
			return err
		}
		for i := range workloads {
			w := &workloads[i]
			waits := true
			for _, c := range conditionsOf(w) {
				seen[fmt.Sprint(c["type"], " ", c["status"], " ", c["reason"])] = true
				if c["status"] == "True" {
					seen[fmt.Sprint(c["type"])] = true
				}
				waits = waits && !(c["status"] == "True" && (c["type"] == "QuotaReserved" || c["type"] == "Evicted" || c["type"] == "Finished"))
			}
			seen["waits"] = seen["waits"] || waits
		}
		queues, err := list(ctx, "ClusterQueueList")
		if err != nil {
			return err
		}
		for i := range queues {
			seen["borrows"] = seen["borrows"] || borrows(&queues[i])
		}
		for what, is := range map[string]bool{
			"borrows":                              seen["borrows"],
			"was preempted within its team":        seen["Preempted True InClusterQueue"],
			"was preempted by the team that lends": seen["Preempted True InCohortReclamation"],
			"ended":                                seen["Finished"],
			"waits":                                seen["waits"],
		} {
			if !is {
				return fmt.Errorf("no task %s; conditions: %v", what, seen)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func conditionsOf(u *unstructured.Unstructured) (conditions []map[string]any) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		conditions = append(conditions, c.(map[string]any))
	}
	return conditions
}

// borrows reports whether a ClusterQueue borrows accelerators.
func borrows(queue *unstructured.Unstructured) bool {
	flavors, _, _ := unstructured.NestedSlice(queue.Object, "status", "flavorsUsage")
	for _, f := range flavors {
		resources, _, _ := unstructured.NestedSlice(f.(map[string]any), "resources")
		for _, r := range resources {
			if r := r.(map[string]any); r["name"] == "nvidia.com/gpu" && fmt.Sprint(r["borrowed"]) != "0" && r["borrowed"] != nil {
				return true
			}
		}
	}
	return false
}
