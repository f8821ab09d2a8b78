package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func TestLoadTellsAllThatIsWrong(t *testing.T) {
	replace := func(pairs ...string) string {
		changed := strings.NewReplacer(pairs...).Replace(testLoad)
		if changed == testLoad {
			t.Fatalf("nothing is replaced by %q", pairs)
		}
		return changed
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":               {"steps: [", []string{"this is no load"}},
		"a field nobody knows":  {replace("pods: 3", "pod: 3"), []string{"this is no load", `"pod"`}},
		"nothing":               {"", []string{"steps: there are none", `repeat: "" is no length of time`, `keep: "" is no length of time`}},
		"lengths without units": {replace("10m", "10", "90s", "90"), []string{`repeat: "10" is no length of time; write one such as 90s or 4m`, `step 1 (later): runs: "90"`}},
		"too short":             {replace("10m", "1s", "90s", "0s"), []string{"repeat: 1s is too short; use 1m0s or more", "step 1 (later): runs: 0s is too short"}},
		"kept for too long":     {replace("keep: 2m", "keep: 11m"), []string{"keep: 11m0s is longer than a round of 10m0s"}},
		"before the round":      {replace("at: 0s", "at: -1s"), []string{"step 2 (first): at: -1s is too short"}},
		"after the round":       {replace("at: 30s", "at: 10m"), []string{"step 1 (later): at 10m it would come after the next round began; repeat is 10m"}},
		"names that are none":   {replace("vision", "Vision!", "name: later, ", ""), []string{`step 2 (first): team "Vision!": use at most 40 lower-case letters`, `step 1 (without a name): name ""`}},
		"a name too long":       {replace("later", strings.Repeat("x", 41)), []string{"use at most 40"}},
		"a name twice":          {replace("speech", "vision", "later", "first"), []string{"step 2 (first): team vision has a step of this name already"}},
		"no such accelerator":   {replace("of: H100, each: 8", "of: H200, each: 8"), []string{`step 2 (first): of "H200": name one of the accelerators above`}},
		"counts":                {replace("each: 8", "each: 0", "pods: 3", "pods: 101"), []string{"step 2 (first): each: 0 is not from 1 to 100", "step 1 (later): pods: 101"}},
		"an accelerator":        {replace("128Gi", "much", "resource: nvidia.com/gpu, ", ""), []string{"accelerators.H100: say its instanceType and resource", `accelerators.H100.memory: "much" is no amount`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseLoad([]byte(tc.text))
			if err == nil {
				t.Fatal("taken")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not told in: %v", want, err)
				}
			}
		})
	}
}

// The sample's load speaks of teams, classes and instances that the sample has.
func TestSampleLoad(t *testing.T) {
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
	for path, want := range map[string]any{
		"metadata.name":                "first-3",
		"metadata.namespace":           "hyperpod-ns-vision",
		"spec.suspend":                 true,
		"spec.parallelism":             int64(1),
		"spec.ttlSecondsAfterFinished": int64(120),
	} {
		if got, _, _ := unstructured.NestedFieldNoCopy(job.Object, strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %v, not %v", path, got, want)
		}
	}
	if labels := job.GetLabels(); labels["kueue.x-k8s.io/queue-name"] != "hyperpod-ns-vision-localqueue" || labels["kueue.x-k8s.io/priority-class"] != "training-priority" {
		t.Errorf("its labels are %v", labels)
	}
	if delay, _, _ := unstructured.NestedString(job.Object, "spec", "template", "metadata", "annotations", "pod-complete.stage.kwok.x-k8s.io/delay"); delay != "4m0s" {
		t.Errorf("its pods end after %q", delay)
	}
	containers, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	if got := fmt.Sprint(containers[0].(map[string]any)["resources"]); !strings.Contains(got, "cpu:96 memory:1Ti nvidia.com/gpu:8") {
		t.Errorf("they ask for %s", got)
	}
}

// fakeJobs keeps jobs, and what became of each attempt to make one.
type fakeJobs struct {
	began time.Time
	log   []string // what was made, and after how long
	ended map[string]bool
	fails []error // what the next attempts answer
	tries int
}

func (f *fakeJobs) create(_ context.Context, u *unstructured.Unstructured) error {
	f.tries++
	if len(f.fails) > 0 {
		err := f.fails[0]
		f.fails = f.fails[1:]
		return err
	}
	f.log = append(f.log, fmt.Sprintf("%s %s", time.Since(f.began), u.GetName()))
	return nil
}

func (f *fakeJobs) get(_ context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ended, known := f.ended[u.GetName()]
	if !known {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, u.GetName())
	}
	is := u.DeepCopy()
	if ended {
		is.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	}
	return is, nil
}

// played runs the test's load for so long, and returns what was made and said.
func played(t *testing.T, f *fakeJobs, long time.Duration) (said []string) {
	t.Helper()
	l, err := parseLoad([]byte(testLoad))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	f.began = time.Now()
	l.play(ctx, f, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	return said
}

func TestLoadIsPlayed(t *testing.T) {
	for name, tc := range map[string]struct {
		ended map[string]bool // what is there of the first round
		want  []string
	}{
		"where jobs end and are deleted":     {nil, []string{"0s first", "30s later", "10m0s first-2", "10m30s later-2", "20m0s first-3", "20m30s later-3"}},
		"where they end and are there":       {map[string]bool{"first": true, "later": true}, []string{"0s first", "30s later", "10m0s first-2", "10m30s later-2", "20m0s first-3", "20m30s later-3"}},
		"where one goes on, and the next is": {map[string]bool{"first": false}, []string{"0s first", "30s later", "10m30s later-2", "20m30s later-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeJobs{ended: tc.ended}
				said := played(t, f, 21*time.Minute)
				if !slices.Equal(f.log, tc.want) || len(said) > 0 {
					t.Errorf("made %q, said %q", f.log, said)
				}
			})
		})
	}
}

// A job is tried again while nobody answers, and not when it is refused; what
// comes after goes on.
func TestLoadWhereJobsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeJobs{fails: []error{fmt.Errorf("connection refused"), apierrors.NewInternalError(fmt.Errorf("webhook away"))}}
		if said := played(t, f, time.Minute); len(said) > 0 || f.tries != 4 || len(f.log) != 2 || f.log[0] != "100ms first" {
			t.Errorf("made %q by %d attempts, said %q", f.log, f.tries, said)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakeJobs{fails: []error{apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "first", fmt.Errorf("no"))}}
		said := played(t, f, time.Minute)
		if len(said) != 1 || !strings.Contains(said[0], "first of team vision is left out") || !slices.Equal(f.log, []string{"30s later"}) {
			t.Errorf("made %q, said %q", f.log, said)
		}
	})
}
