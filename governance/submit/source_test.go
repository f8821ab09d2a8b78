package submit

import (
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// read plans the manifest of a text.
func read(t *testing.T, text string) (Plan, []string, []string) {
	t.Helper()
	object, wrong := ReadSource([]byte(text))
	if object == nil || len(wrong) > 0 {
		t.Fatalf("got %v, %v\n%s", object, wrong, text)
	}
	plan, changed, wrong := vision().PlanSource(object)
	var at, not []string
	for _, c := range changed {
		at = append(at, c.Path)
	}
	for _, w := range wrong {
		not = append(not, w.Path)
	}
	return plan, at, not
}

// What the form writes as a manifest it reads again: the same object, and the same request.
func TestManifestsAreReadAgain(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"as it is":        func(*Request) {},
		"one pod":         func(r *Request) { r.Pods = 1 },
		"the runtime":     func(r *Request) { r.Runtime = fullRuntime() },
		"only a pool":     func(r *Request) { *r = Request{Name: "a", Image: "b", Kind: r.Kind, Pool: "ml.c5.2xlarge", Pods: 2} },
		"a time limit":    func(r *Request) { r.Class, r.TimeLimit = "dev-priority", 60 },
		"a default limit": func(r *Request) { r.Class = "dev-priority" },
		"amounts":         func(r *Request) { r.PerPod.VCPU, r.PerPod.Memory = amount("3"), amount("5Gi") },
		"part of a GPU": func(r *Request) {
			r.PerPod = v1alpha1.Quantities{Partition: &v1alpha1.Partition{Profile: "mig-1g.10gb", Count: 2}}
		},
		"fewest pods": func(r *Request) {
			if r.Kind == Job {
				r.MinPods = 2
			}
		},
	} {
		for _, kind := range []Kind{Job, PyTorchJob, RayJob, JobSet} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				r := train()
				r.Kind = kind
				change(&r)
				plan := planned(t, r)
				m, err := plan.Manifest()
				if err != nil {
					t.Fatal(err)
				}
				source, changed, wrong := read(t, m.Text)
				if len(changed) > 0 || len(wrong) > 0 {
					t.Fatalf("got changes at %v and errors at %v, want none\n%s", changed, wrong, m.Text)
				}
				again := planned(t, source.Express())
				differ, err := again.Differences(source)
				if err != nil || len(differ) > 0 {
					t.Errorf("the form differs at %v (%v)\n%s", differ, err, m.Text)
				}
				if diff := cmp.Diff(r, source.Express(), cmp.Comparer(func(a, b v1alpha1.Quantities) bool { return true })); diff != "" && name != "the runtime" && name != "only a pool" {
					t.Errorf("request (-typed +read):\n%s", diff)
				}
				if want := plan.proposal(4).PodSets[0].Requests; source.podSets()[0].Requests["nvidia.com/gpu"] != want["nvidia.com/gpu"] || source.Pods != r.Pods {
					t.Errorf("got %d pods with %v, want %d with %v", source.Pods, source.podSets()[0].Requests, r.Pods, want)
				}
			})
		}
	}
}

// What the form has no field for is named by its path.
func TestDifferencesAreNamed(t *testing.T) {
	m, err := planned(t, train()).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"a field of the pods": {"      restartPolicy: Never", "      restartPolicy: OnFailure", "spec.template.spec.restartPolicy"},
		"a label":             {"  labels:", "  labels:\n    mine: yes-it-is", "metadata.labels.mine"},
		"another command":     {"        - sh\n", "        - bash\n", "spec.template.spec.containers[0].command"},
		"an amount in Mi":     {"memory: 512Gi", "memory: 524288Mi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(m.Text, tc.old, tc.new)
			if text == m.Text {
				t.Fatalf("no %q in\n%s", tc.old, text)
			}
			source, _, wrong := read(t, text)
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			differ, err := planned(t, source.Express()).Differences(source)
			if err != nil || tc.want == "" && len(differ) > 0 || tc.want != "" && !slices.Contains(differ, tc.want) {
				t.Errorf("got %v (%v), want %s", differ, err, tc.want)
			}
		})
	}
}

// The team's namespace and queue apply. What the API server sets, and a status, are left out.
func TestPlanSource(t *testing.T) {
	const text = `
apiVersion: batch/v1
kind: Job
metadata: {name: mine, namespace: other, uid: a, resourceVersion: "1", labels: {kueue.x-k8s.io/queue-name: theirs, kueue.x-k8s.io/priority-class: dev-priority}, annotations: {a: b}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, resources: {requests: {nvidia.com/gpu: 2}}}]}}}
status: {active: 1}
`
	plan, changed, wrong := read(t, text)
	slices.Sort(changed)
	want := []string{"metadata.labels[kueue.x-k8s.io/queue-name]", "metadata.namespace", "metadata.resourceVersion", "metadata.uid", "status"}
	if diff := cmp.Diff(want, changed); diff != "" || len(wrong) > 0 {
		t.Errorf("changes (-want +got):\n%s\nerrors at %v", diff, wrong)
	}
	m, err := plan.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(m.Text), &got); err != nil {
		t.Fatal(err)
	}
	metadata := map[string]any{
		"name": "mine", "namespace": "hyperpod-ns-vision", "annotations": map[string]any{"a": "b"},
		"labels": map[string]any{"kueue.x-k8s.io/queue-name": "hyperpod-ns-vision-localqueue", "kueue.x-k8s.io/priority-class": "dev-priority", "kueue.x-k8s.io/max-exec-time-seconds": "3600"},
	}
	if diff := cmp.Diff(metadata, got["metadata"]); diff != "" || got["status"] != nil {
		t.Errorf("metadata (-want +got):\n%s\nstatus %v", diff, got["status"])
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"no name":              {"name: mine, ", "", "metadata.name"},
		"a wrong name":         {"name: mine", "name: Mine", "metadata.name"},
		"an unknown class":     {"dev-priority", "none", "metadata.labels[kueue.x-k8s.io/priority-class]"},
		"too long":             {"priority-class: dev-priority", "priority-class: dev-priority, kueue.x-k8s.io/max-exec-time-seconds: '9000'", "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]"},
		"no number":            {"priority-class: dev-priority", "priority-class: dev-priority, kueue.x-k8s.io/max-exec-time-seconds: soon", "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]"},
		"no container":         {"containers: [{name: a, image: b, resources: {requests: {nvidia.com/gpu: 2}}}]", "nodeName: a", "spec.template.spec.containers"},
		"no template":          {"template: ", "other: ", "spec"},
		"a template of text":   {"template: {spec:", "template: {spec: a}, other: {spec:", "spec.template"},
		"a field of the top":   {"status:", "stats:", "stats"},
		"containers as a text": {"containers: [{", "containers: [{env: a, ", "spec.template"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, wrong := read(t, strings.Replace(text, tc.old, tc.new, 1)); !slices.Equal(wrong, []string{tc.want}) {
				t.Errorf("got errors at %v, want one at %s", wrong, tc.want)
			}
		})
	}
}

// The labels that Kueue reads of a task are moved to it from its pods, and checked there.
func TestLabelsOfPodsAreMoved(t *testing.T) {
	const at = "spec.template.metadata.labels"
	for name, tc := range map[string]struct {
		kind                   string // without spec
		labels, task           string // of the pods and of the task
		wantClass, wantChanged string
		wantWrong              []string
	}{
		"queue and class":  {labels: "kueue.x-k8s.io/queue-name: theirs, kueue.x-k8s.io/priority-class: dev-priority", wantClass: "dev-priority", wantChanged: at + "[kueue.x-k8s.io/queue-name] " + at + "[kueue.x-k8s.io/priority-class] metadata.labels[kueue.x-k8s.io/queue-name]"},
		"an unknown class": {labels: "kueue.x-k8s.io/priority-class: none", wantChanged: at + "[kueue.x-k8s.io/priority-class]", wantWrong: []string{"metadata.labels[kueue.x-k8s.io/priority-class]"}},
		"another class":    {labels: "kueue.x-k8s.io/priority-class: dev-priority", task: "kueue.x-k8s.io/priority-class: training-priority", wantClass: "training-priority", wantChanged: at + "[kueue.x-k8s.io/priority-class]"},
		"a time limit":     {labels: "kueue.x-k8s.io/max-exec-time-seconds: '9000', kueue.x-k8s.io/priority-class: dev-priority", wantChanged: at + "[kueue.x-k8s.io/priority-class] " + at + "[kueue.x-k8s.io/max-exec-time-seconds]", wantWrong: []string{"metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]"}},
		"other labels":     {labels: "app: train"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, changed, wrong := read(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: mine, labels: {`+tc.task+`}}
spec: {template: {metadata: {labels: {app: a, `+strings.TrimPrefix(tc.labels, "app: train")+`}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`)
			if got := strings.Join(changed, " "); got != tc.wantChanged || !slices.Equal(wrong, tc.wantWrong) || plan.Class != tc.wantClass {
				t.Errorf("got class %q, changes at %q and errors at %q; want class %q, %q and %q", plan.Class, got, wrong, tc.wantClass, tc.wantChanged, tc.wantWrong)
			}
			if len(wrong) > 0 {
				return
			}
			m, err := plan.Manifest()
			if _, pods, _ := strings.Cut(m.Text, "\nspec:"); err != nil || strings.Contains(pods, "kueue.x-k8s.io") || !strings.Contains(pods, "app: a") {
				t.Errorf("the pods keep labels of Kueue, or lose others: %v\n%s", err, m.Text)
			}
			if len(plan.templates[0].Labels) != 1 {
				t.Errorf("the pods are tried with %v", plan.templates[0].Labels)
			}
		})
	}
}

// A priority by number becomes the class of the number, and the number of a request replaces that of
// the manifest.
func TestNumberOfManifest(t *testing.T) {
	const label, annotation, pods, class = "metadata.labels[kuota.dev/priority]", "metadata.annotations[kuota.dev/priority]", "spec.template.metadata.labels[kuota.dev/priority]", "metadata.labels[kueue.x-k8s.io/priority-class]"
	for name, tc := range map[string]struct {
		labels, annotations, pods, priority string
		wantClass                           string
		wantChanged, wantWrong              []string
	}{
		"a label":         {labels: `kuota.dev/priority: "42"`, wantClass: "kuota-priority-42", wantChanged: []string{label}},
		"an annotation":   {annotations: `kuota.dev/priority: "42"`, wantClass: "kuota-priority-42", wantChanged: []string{annotation}},
		"of pods":         {pods: `kuota.dev/priority: "42"`, wantClass: "kuota-priority-42", wantChanged: []string{pods, label}},
		"of the request":  {annotations: `kuota.dev/priority: "42"`, priority: "7", wantClass: "kuota-priority-7", wantChanged: []string{label}},
		"too high":        {labels: `kuota.dev/priority: "100"`, wantWrong: []string{label}},
		"no number":       {labels: `kuota.dev/priority: high`, wantWrong: []string{label}},
		"beside a class":  {labels: `kuota.dev/priority: "42", kueue.x-k8s.io/priority-class: training-priority`, wantWrong: []string{label}},
		"two numbers":     {labels: `kuota.dev/priority: "42"`, annotations: `kuota.dev/priority: "43"`, wantChanged: []string{label}, wantWrong: []string{annotation}},
		"not allowed":     {labels: `kuota.dev/priority: "50"`, wantChanged: []string{label}, wantWrong: []string{class}},
		"its class":       {labels: `kueue.x-k8s.io/priority-class: kuota-priority-42`, wantClass: "kuota-priority-42"},
		"a class as text": {labels: `kueue.x-k8s.io/priority-class: "42"`, wantWrong: []string{class}},
	} {
		t.Run(name, func(t *testing.T) {
			object, _ := ReadSource([]byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: mine, labels: {` + tc.labels + `}, annotations: {` + tc.annotations + `}}
spec: {template: {metadata: {labels: {` + tc.pods + `}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`))
			team := vision()
			team.Numbers, team.Priority = []PriorityClass{{Name: "kuota-priority-7", Priority: 7}, {Name: "kuota-priority-42", Priority: 42}}, tc.priority
			plan, changed, wrong := team.PlanSource(object)
			paths := func(of governance.FieldErrors) (list []string) {
				for _, one := range of {
					list = append(list, one.Path)
				}
				return list
			}
			if !slices.Equal(paths(changed), tc.wantChanged) || !slices.Equal(paths(wrong), tc.wantWrong) || plan.Class != tc.wantClass {
				t.Errorf("got class %q, changes %+v and errors %+v", plan.Class, changed, wrong)
			}
			if len(wrong) > 0 {
				return
			}
			if m, err := plan.Manifest(); err != nil || strings.Contains(m.Text, "kuota.dev/priority") || !strings.Contains(m.Text, "kueue.x-k8s.io/priority-class: "+tc.wantClass) {
				t.Errorf("%v, the manifest is %s", err, m.Text)
			}
		})
	}
}

// Manifests of other kinds, and several at once, get one sentence about what they are.
func TestOtherKinds(t *testing.T) {
	const task = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}}":    "kind: a Pod cannot be submitted from a manifest: write a Job",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: b}}": "kind: a Deployment cannot be submitted from a manifest: inference services",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}}":        "kind: a CronJob cannot be submitted from a manifest: write a Job with the spec of its jobTemplate",
		"{apiVersion: batch/v1beta1, kind: Job}":                            `apiVersion: is "batch/v1beta1", which is not read here; write batch/v1`,
		"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob}":                  `kind: "MPIJob" of "kubeflow.org/v2beta1" is no kind of task`,
		task + "---\n" + task: "The text has 2 objects: Job a, Job a. Submit one task at a time",
		task + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}": "The text has 2 objects: Job a, ConfigMap b",
	} {
		object, wrong := ReadSource([]byte(text))
		if object != nil || len(wrong) != 1 || !strings.HasPrefix(strings.TrimPrefix(wrong[0].Path+": "+wrong[0].Message, ": "), want) {
			t.Errorf("%s: got %v, %v, want %q", text, object, wrong, want)
		}
	}
	for metadata, want := range map[string]string{"name: y": "is read as true, which is no text"} { // y is a boolean in YAML 1.1
		object, wrong := ReadSource([]byte("{apiVersion: batch/v1, kind: Job, metadata: {" + metadata + "}, spec: {template: {spec: {containers: [{name: a, image: b}]}}}}"))
		if object == nil {
			t.Fatal(wrong)
		}
		if _, changed, wrong := vision().PlanSource(object); len(changed) > 0 || len(wrong) != 1 || !strings.Contains(wrong[0].Message, want) {
			t.Errorf("%s: got %v, %v", metadata, changed, wrong)
		}
	}
	script, rest := CutScript("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n---\n" + task + "spec: {template: {spec: {containers: [{name: a, image: b}]}}}")
	object, wrong := ReadSource([]byte(rest))
	if object == nil || script == nil {
		t.Fatal(object, script, wrong)
	}
	plan, _, _ := vision().PlanSource(object)
	if _, wrong := plan.WithScript(script); len(wrong) != 1 || !strings.Contains(wrong[0].Message, "ConfigMap settings cannot be submitted") {
		t.Errorf("of a ConfigMap without a script: got %v", wrong)
	}
}

// What package imports reads, and texts without an object, have no source and no error.
func TestReadSourceOfOthers(t *testing.T) {
	for _, text := range []string{
		"", "a: [", "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {elasticPolicy: {}}}", "{apiVersion: kuota.dev/v1alpha1, kind: ClusterPolicy}",
		"{apiVersion: sagemaker.amazonaws.com/v1, kind: HyperPodPyTorchJob}", "{apiVersion: kuota.dev/v1alpha1, kind: ElasticJob}\n---\n{apiVersion: kuota.dev/v1alpha1, kind: ElasticJob}",
	} {
		if object, wrong := ReadSource([]byte(text)); object != nil || len(wrong) > 0 {
			t.Errorf("%s: got %v, %v, want none", text, object, wrong)
		}
	}
}

func TestQueueDefaults(t *testing.T) {
	team := Team{Queue: "own", DefaultClass: "dev-priority", Shares: []Share{{Name: "ray", Queue: "ray", Class: "training-priority", Kinds: []string{"RayJob"}}, {Name: "plain", Queue: "plain"}}}
	for _, name := range []string{"dev-priority", "training-priority"} {
		team.Classes = append(team.Classes, PriorityClass{Name: name})
	}
	for name, tc := range map[string]struct{ request, want Request }{
		"nothing named":       {Request{Kind: Job}, Request{Kind: Job, Class: "dev-priority"}},
		"a kind with a share": {Request{Kind: "RayJob"}, Request{Kind: "RayJob", Share: "ray", Class: "training-priority"}},
		"the share named":     {Request{Kind: "RayJob", Share: "plain"}, Request{Kind: "RayJob", Share: "plain"}},
		"the class named":     {Request{Kind: Job, Class: "training-priority"}, Request{Kind: Job, Class: "training-priority"}},
	} {
		if diff := cmp.Diff(tc.want, team.withDefaults(tc.request)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSourceDefaults gives a manifest the queue of its kind and that queue's class, as the form does.
func TestSourceDefaults(t *testing.T) {
	team := Team{Namespace: "ns", Queue: "own", Kinds: []Kind{Job}, DefaultClass: "dev-priority", Classes: []PriorityClass{{Name: "dev-priority"}, {Name: "training-priority"}},
		Shares: []Share{{Name: "nights", Queue: "nights", Class: "training-priority", Kinds: []string{"Job"}}, {Name: "plain", Queue: "plain"}}}
	for name, tc := range map[string]struct{ labels, queue, class string }{
		"nothing named":   {`{}`, "nights", "training-priority"},
		"the queue named": {`{kueue.x-k8s.io/queue-name: plain}`, "plain", ""},
		"the team's own":  {`{kueue.x-k8s.io/queue-name: own}`, "own", "dev-priority"},
		"the class named": {`{kueue.x-k8s.io/priority-class: dev-priority}`, "nights", "dev-priority"},
	} {
		object, wrong := ReadSource([]byte("{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: " + tc.labels + "}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: train, resources: {requests: {cpu: 1}}}]}}}}"))
		if object == nil || len(wrong) > 0 {
			t.Fatalf("%s: %v", name, wrong)
		}
		plan, _, wrong := team.PlanSource(object)
		if plan.source == nil {
			t.Fatalf("%s: %v", name, wrong)
		}
		labels := plan.source.GetLabels()
		if queue, class := labels["kueue.x-k8s.io/queue-name"], labels["kueue.x-k8s.io/priority-class"]; queue != tc.queue || class != tc.class {
			t.Errorf("%s: got the queue %q and the class %q (%v), want %q and %q", name, queue, class, wrong, tc.queue, tc.class)
		}
	}
}
