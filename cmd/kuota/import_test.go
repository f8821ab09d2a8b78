package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImport(t *testing.T) {
	folder := t.TempDir()
	path := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	quota := path("quota.json", `{"Name": "n", "ClusterArn": "arn", "ComputeQuotaTarget": {"TeamName": "vision", "FairShareWeight": 300}}`)
	policy := path("policy.json", `{"SchedulerConfig": {"FairShare": "Disabled"}}`)
	broken := path("broken.json", `{"SchedulerConfig": `)
	pytorch := path("pytorch.yaml", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: bert}\nspec: {elasticPolicy: {minReplicas: 1, maxReplicas: 2}, pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: a, image: a}]}}}}}")
	const bert = "apiVersion: kuota.dev/v1alpha1\nkind: ElasticJob\nmetadata:\n  name: bert\nspec:\n  elasticPolicy:\n    backoffMaxSeconds: 3600\n    faultyScaleDownTimeoutInSeconds: 30\n    gracefulShutdownTimeoutInSeconds: 30\n    growth: ExistingNodes\n    maxReplicas: 2\n    minReplicas: 1\n    minStablePeriodSeconds: 60\n    provisionTimeoutInSeconds: 600\n    replicaIncrementStep: 1\n    scalingTimeoutInSeconds: 60\n  template:\n    spec:\n      containers:\n      - image: a\n        name: a\n        resources: {}\n"
	const vision = "apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata:\n  name: vision\nspec:\n  displayName: \"n\"\n"
	const settings = "apiVersion: kuota.dev/v1alpha1\nkind: ClusterPolicy\nmetadata:\n  name: default\nspec:\n  idleCompute:\n    strategy: FirstComeFirstServe\n  taskPrioritization: FirstComeFirstServe\n"
	for name, tc := range map[string]struct {
		args         []string
		in           string
		out, message string // message is a part of the messages
		fails        string
	}{
		"two files":              {args: []string{quota, policy}, out: vision + "---\n" + settings, message: quota + ": ComputeQuotaTarget.FairShareWeight: must be a whole number from 0 to 100"},
		"of one kind":            {args: []string{"--kind", "policy", quota, policy}, out: settings, message: "team vision was skipped: it is of another kind"},
		"from stdin":             {args: []string{"-"}, in: settings, out: settings},
		"twice the same team":    {args: []string{quota, quota}, out: vision, message: "team vision was skipped: it is already in " + quota},
		"one of two is broken":   {args: []string{broken, policy}, out: settings, message: broken + ": line 1: not valid JSON"},
		"all is broken":          {args: []string{broken}, message: "not valid JSON", fails: "nothing could be imported"},
		"an elastic job":         {args: []string{pytorch, quota}, out: bert + "---\n" + vision, message: pytorch + ": elastic task bert has no queue: set the label kueue.x-k8s.io/queue-name before you apply it"},
		"elastic jobs only":      {args: []string{"--kind", "elasticjob", quota, pytorch}, out: bert, message: "team vision was skipped"},
		"the same elastic job":   {args: []string{pytorch, pytorch}, out: bert, message: "elastic task bert was skipped: it is already in " + pytorch},
		"no team":                {args: []string{"-"}, in: `{"ComputeQuotaConfig": {}}`, message: "an allocation without a team name cannot be written", fails: "nothing could be imported"},
		"more than import reads": {args: []string{"-"}, in: strings.Repeat(" ", 2<<20), message: "longer than 1 MiB", fails: "nothing could be imported"},
		"no file":                {fails: "name at least one file"},
		"a file that is not":     {args: []string{filepath.Join(folder, "none")}, fails: "no such file"},
		"an unknown kind":        {args: []string{"--kind", "pod", quota}, fails: `kind "pod"`},
		"a flag of --apply":      {args: []string{"--dry-run", quota}, fails: "--dry-run goes with --apply"},
		"no console":             {args: []string{"--apply", "--server", "kuota", quota}, fails: "no address of a console"},
		"an unknown flag":        {args: []string{"--force"}, fails: "unknown flag: --force"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, messages bytes.Buffer
			err := func() error {
				root := newRoot(streams{in: strings.NewReader(tc.in), out: &out, messages: &messages})
				root.SetArgs(append([]string{"import"}, tc.args...))
				return root.ExecuteContext(t.Context())
			}()
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error %v, want %q", err, tc.fails)
			}
			if out.String() != tc.out {
				t.Errorf("wrote:\n%s\nwant:\n%s", out.String(), tc.out)
			}
			if !strings.Contains(messages.String(), tc.message) || tc.message == "" && messages.Len() > 0 {
				t.Errorf("messages %q, want %q", messages.String(), tc.message)
			}
		})
	}
}

// importConsole answers the requests of kuota import --apply, and keeps them.
type importConsole struct {
	objects map[string]string // by path, without /api/v1
	answers map[string]string // of reviews and saves, by method and path; default {}
	status  map[string]int    // by method and path
	asked   []string          // writes: method, path and query
	sent    map[string]string // the last body, by path
}

func (c *importConsole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	if r.Method == http.MethodGet {
		if c.objects[path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, c.objects[path])
		return
	}
	key := r.Method + " " + path
	body, _ := io.ReadAll(r.Body)
	c.asked, c.sent[path] = append(c.asked, strings.TrimSuffix(key+"?"+r.URL.RawQuery, "?")), string(body)
	if status := c.status[key]; status != 0 {
		w.WriteHeader(status)
	}
	answer := c.answers[key]
	if answer == "" {
		answer = "{}"
	}
	_, _ = io.WriteString(w, answer)
}

func TestImportApply(t *testing.T) {
	const (
		vision = `{"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2}]}, "ComputeQuotaTarget": {"TeamName": "vision", "FairShareWeight": 10}}`
		speech = `{"ComputeQuotaTarget": {"TeamName": "speech"}}`
		fair   = `{"SchedulerConfig": {"PriorityClasses": [{"Name": "training", "Weight": 70}]}}`
		saved  = `{"apiVersion": "kuota.dev/v1alpha1", "kind": "ComputeAllocation", "metadata": {"name": "vision", "resourceVersion": "7"}, "spec": {"members": [{"kind": "Group", "name": "vision-team"}], "namespaceCeiling": true, "cohortName": "research", "quota": [{"instanceType": "ml.p5.48xlarge", "instances": 1}]}, "status": {}}`
		policy = `{"metadata": {"name": "default", "resourceVersion": "9"}, "spec": {"cohortName": "research", "idleCompute": {"shareUnallocated": true}, "gangScheduling": {"enabled": true}, "priorityClasses": [{"name": "training", "weight": 1, "description": "Trains"}]}}`
		bert   = "apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\nmetadata: {name: bert, namespace: hyperpod-ns-vision}\nspec: {elasticPolicy: {minReplicas: 1, maxReplicas: 2}, replicaSpecs: [{name: pod, replicas: 1, maxReplicas: 2, template: {spec: {containers: [{name: a, image: a}]}}}]}"
	)
	for name, tc := range map[string]struct {
		text, answer string
		args         []string
		console      importConsole
		asked        []string
		sent         map[string]string // part of a body, by path
		message      string
		fails        string
	}{
		"a new team": {
			text: vision, asked: []string{"POST /allocations?dryRun=true", "POST /allocations"},
			sent: map[string]string{"/allocations": `"quota":[{"instanceType":"ml.g6.12xlarge","accelerators":2}]`}, message: "team vision:\n",
		},
		"a team that exists": {
			text: vision, args: []string{"--reason", "moved"}, console: importConsole{objects: map[string]string{"/allocations/vision": saved}},
			asked: []string{"PUT /allocations/vision?dryRun=true&reason=moved", "PUT /allocations/vision?reason=moved"},
			sent:  map[string]string{"/allocations/vision": `"resourceVersion":"7"},"spec":{"members":[{"kind":"Group","name":"vision-team"}],"fairShareWeight":10,"quota":[{"instanceType":"ml.g6.12xlarge","accelerators":2}],"namespaceCeiling":true,"cohortName":"research"}`},
		},
		"a review": {text: vision, args: []string{"--dry-run"}, asked: []string{"POST /allocations?dryRun=true"}},
		"nothing changes": {
			text: vision, console: importConsole{answers: map[string]string{"POST /allocations": `{"unchanged": true}`}},
			asked: []string{"POST /allocations?dryRun=true"}, message: "Saving changes nothing.",
		},
		"tasks are interrupted": {
			text: vision, answer: "no\n", console: importConsole{answers: map[string]string{"POST /allocations": `{"interrupts": true}`}},
			asked: []string{"POST /allocations?dryRun=true"}, message: "Save it? [y/N]", fails: "nothing was changed",
		},
		"tasks are interrupted, without a question": {
			text: vision, args: []string{"-y"}, console: importConsole{answers: map[string]string{"POST /allocations": `{"interrupts": true}`}},
			asked: []string{"POST /allocations?dryRun=true", "POST /allocations"},
		},
		"no permission": {
			text: vision, console: importConsole{status: map[string]int{"POST /allocations": 403}, answers: map[string]string{"POST /allocations": `{"detail": "You may not change compute allocations."}`}},
			asked: []string{"POST /allocations?dryRun=true"}, fails: "You may not change compute allocations.",
		},
		"one of two fails": {
			text: "[" + speech + "," + vision + "]", args: []string{"--dry-run"}, console: importConsole{objects: map[string]string{"/allocations/vision": saved}, status: map[string]int{"POST /allocations": 422}},
			asked: []string{"POST /allocations?dryRun=true", "PUT /allocations/vision?dryRun=true"}, message: "422", fails: "1 of 2 objects were not saved",
		},
		"the first policy": {
			text: fair, asked: []string{"PUT /policy?dryRun=true", "PUT /policy"}, sent: map[string]string{"/policy": `"priorityClasses":[{"name":"training","weight":70}]`},
		},
		"a policy that exists": {
			text: fair, console: importConsole{objects: map[string]string{"/policy": policy}}, asked: []string{"PUT /policy?dryRun=true", "PUT /policy"},
			sent:    map[string]string{"/policy": `"spec":{"taskPrioritization":"TaskRanking","priorityClasses":[{"name":"training","weight":70,"description":"Trains"}],"cohortName":"research","idleCompute":{"strategy":"FairShare"},"gangScheduling":{"enabled":true}}`},
			message: "turns off lending of unallocated compute",
		},
		"a newer console": {
			text: vision, console: importConsole{objects: map[string]string{"/allocations/vision": `{"spec": {"colour": "red"}}`}}, fails: "saving would lose a part of it",
		},
		"all kinds, the policy first and tasks last": {
			text: "apiVersion: v1\nkind: List\nitems: []\n---\n" + bert + "\n---\n" + vision + "\n---\n" + fair, args: []string{"--dry-run"},
			console: importConsole{answers: map[string]string{"POST /teams/vision/tasks": `{"tasks": [{"name": "bert", "changed": [{"field": "metadata.labels", "message": "is the queue of the team"}], "verdict": {"headline": "Starts now."}}]}`}},
			asked:   []string{"PUT /policy?dryRun=true", "POST /allocations?dryRun=true", "POST /teams/vision/tasks?dryRun=true"},
			message: "bert: Starts now.",
		},
		"a task that preempts": {
			text: bert, args: []string{"--team", "speech"}, answer: "n\n",
			console: importConsole{answers: map[string]string{"POST /teams/speech/tasks": `{"tasks": [{"name": "bert", "verdict": {"headline": "Preempts.", "preempted": ["other"]}}]}`}},
			asked:   []string{"POST /teams/speech/tasks?dryRun=true"}, message: "It would preempt other.", fails: "nothing was changed",
		},
		"a task": {
			text: bert, console: importConsole{answers: map[string]string{"POST /teams/vision/tasks": `{"tasks": [{"namespace": "hyperpod-ns-vision", "kind": "ElasticJob", "name": "bert", "created": true}]}`}},
			asked: []string{"POST /teams/vision/tasks?dryRun=true", "POST /teams/vision/tasks"}, sent: map[string]string{"/teams/vision/tasks": "kind: ElasticJob"},
		},
		"of one kind": {text: "[" + vision + "," + fair + "]", args: []string{"--kind", "policy", "--dry-run"}, asked: []string{"PUT /policy?dryRun=true"}},
		"a table": {
			text: "team,weight,ml.g6.12xlarge\nvision,5,4\n", args: []string{"--dry-run"}, console: importConsole{objects: map[string]string{"/allocations/vision": saved}}, asked: []string{"PUT /allocations/vision?dryRun=true"},
			sent: map[string]string{"/allocations/vision": `"fairShareWeight":5,"quota":[{"instanceType":"ml.p5.48xlarge","instances":1},{"instanceType":"ml.g6.12xlarge","accelerators":4}]`},
		},
		"a table with a mistake": {
			text: "team,weight\nvision,many\nspeech,2\n", args: []string{"--dry-run"}, asked: []string{"POST /allocations?dryRun=true"}, message: "team vision is not saved: correct its line first", fails: "1 of 2 objects were not saved",
		},
		"an adopted team elsewhere": {
			text: "apiVersion: kuota.dev/v1alpha1\nkind: ComputeAllocation\nmetadata: {name: vision}\nspec: {clusterQueueName: research, management: Adopted}", fails: "kuota adopt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.console.sent = map[string]string{}
			server := httptest.NewServer(&tc.console)
			defer server.Close()
			file := filepath.Join(t.TempDir(), "objects")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, messages bytes.Buffer
			root := newRoot(streams{in: strings.NewReader(tc.answer), out: &out, messages: &messages})
			root.SetArgs(append([]string{"import", file, "--apply", "--server", server.URL, "--token", "secret"}, tc.args...))
			err := root.ExecuteContext(t.Context())
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("error %v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.asked, tc.console.asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for path, want := range tc.sent {
				if !strings.Contains(tc.console.sent[path], want) && !strings.Contains(strings.ReplaceAll(tc.console.sent[path], `,"sharing":{},"preemption":{}`, ""), want) {
					t.Errorf("sent to %s:\n%s\nwant\n%s", path, tc.console.sent[path], want)
				}
			}
			if !strings.Contains(messages.String(), tc.message) {
				t.Errorf("messages %q, want %q", messages.String(), tc.message)
			}
		})
	}
}
