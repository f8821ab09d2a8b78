package trainingjobs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/imports/trainingjobs"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// read converts the only job of a text.
func read(t *testing.T, text string) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	t.Helper()
	documents, wrong := document.Read([]byte(text))
	if len(documents) != 1 || len(wrong) > 0 || !trainingjobs.Matches(documents[0]) {
		t.Fatalf("got %d documents, %v, want a job", len(documents), wrong)
	}
	return trainingjobs.Read(documents[0], "")
}

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each job becomes the ElasticJob of its golden file, and each part that is missing in it
// is reported.
func TestRead(t *testing.T) {
	for name, want := range map[string][]string{
		"hyperpod": {
			"spec.template.spec.containers[0]: runs hyperpodrun",
			"metadata.annotations, spec.replicaSpecs[0].spares, spec.runPolicy.cleanPodPolicy, spec.runPolicy.restartPolicy.evalPeriodSeconds have no equivalent",
		},
		"pytorch": {
			"spec.elasticPolicy.maxRestarts: is ignored: each change of size can end the workers",
			"spec.elasticPolicy.rdzvPort, spec.runPolicy.suspend have no equivalent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, problems := read(t, file(t, name))
			if diff := cmp.Diff(file(t, name+"-elasticjob"), manifest.ElasticJobYAML(e)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(problems) != len(want) {
				t.Errorf("got the problems %s, want %q", governance.JoinFieldErrors(problems), want)
			}
			for _, text := range want {
				if got := governance.JoinFieldErrors(problems); !strings.Contains(got, text) {
					t.Errorf("%q lacks %q", got, text)
				}
			}
			documents, _ := document.Read([]byte(manifest.ElasticJobYAML(e)))
			again, problems := manifest.ReadElasticJob(documents[0], "")
			if diff := cmp.Diff(e, again); diff != "" || len(problems) > 0 {
				t.Errorf("read again with %v (-want +got):\n%s", problems, diff)
			}
		})
	}
}

const pods = `template: {spec: {containers: [{name: a, image: a}]}}`

func hyperPod(spec string) string {
	return "apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\nmetadata: {name: a}\nspec: {" + spec + "}"
}

func pyTorch(elastic, specs string) string {
	return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {elasticPolicy: {" + elastic + "}, pytorchReplicaSpecs: {" + specs + "}}"
}

// What is missing, wrong or of other types is reported; the rest is converted.
func TestReadReports(t *testing.T) {
	for name, tc := range map[string]struct {
		text         string
		wantProblems []string
		wantNone     bool // no ElasticJob
		wantPolicy   string
	}{
		"not elastic":       {text: hyperPod("replicaSpecs: [{" + pods + "}]"), wantNone: true, wantProblems: []string{"spec.elasticPolicy: is missing: the job is not elastic"}},
		"a policy of text":  {text: hyperPod("elasticPolicy: yes, replicaSpecs: [{" + pods + "}]"), wantNone: true, wantProblems: []string{"is text, expected an object", "not elastic"}},
		"no spec":           {text: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob", wantNone: true, wantProblems: []string{"not elastic"}},
		"no pods":           {text: hyperPod("elasticPolicy: {minReplicas: 1}"), wantNone: true, wantProblems: []string{"spec.replicaSpecs: is missing"}},
		"sizes of replicas": {text: hyperPod("elasticPolicy: {}, replicaSpecs: [{replicas: 2, maxReplicas: 4, " + pods + "}]"), wantPolicy: "2 to 4 by 1", wantProblems: []string{"minReplicas: is missing; the number of replicas, 2, is used", "maxReplicas: is missing; 4 is used"}},
		"many sizes":        {text: pyTorch("minReplicas: 1, maxReplicas: 129", "Worker: {"+pods+"}"), wantPolicy: "1 to 129 by 4", wantProblems: []string{"allows more than 64 sizes; it grows in steps of 4"}},
		"other maximum":     {text: hyperPod("elasticPolicy: {minReplicas: 1, maxReplicas: 4, replicaIncrementStep: 3}, replicaSpecs: [{maxReplicas: 8, " + pods + "}]"), wantPolicy: "1 to 4 by 3", wantProblems: []string{"spec.replicaSpecs[0].maxReplicas: is 8; that of elasticPolicy, 4, is used"}},
		"more replicas":     {text: hyperPod("elasticPolicy: {minReplicas: 1, maxReplicas: 4, replicaIncrementStep: 1}, replicaSpecs: [{replicas: 4, " + pods + "}]"), wantPolicy: "1 to 4 by 1", wantProblems: []string{"has 4 replicas; an ElasticJob starts with its minimum, 1"}},
		"steps that miss":   {text: hyperPod("elasticPolicy: {minReplicas: 1, maxReplicas: 4, replicaIncrementStep: 2}, replicaSpecs: [{" + pods + "}]"), wantPolicy: "1 to 4 by 2", wantProblems: []string{"spec.elasticPolicy.replicaIncrementStep: steps of 2 from 1 do not reach 4; use 1 or 3"}},
		"different pods": {
			text:     pyTorch("minReplicas: 1, maxReplicas: 2", "Master: {"+pods+"}, Worker: {template: {spec: {containers: [{name: a, image: b}]}}}"),
			wantNone: true, wantProblems: []string{"spec.pytorchReplicaSpecs.Worker: has other pods than spec.pytorchReplicaSpecs.Master"},
		},
		"etcd": {text: pyTorch("rdzvBackend: etcd-v2, rdzvHost: etcd, minReplicas: 1, maxReplicas: 2", "Worker: {"+pods+", restartPolicy: ExitCode}"), wantPolicy: "1 to 2 by 1", wantProblems: []string{"rdzvBackend: is \"etcd-v2\"", "restartPolicy: is \"ExitCode\"", "spec.elasticPolicy.rdzvHost has no equivalent"}},
		"wrong types": {
			text:       hyperPod("elasticPolicy: {minReplicas: two, maxReplicas: 4, replicaIncrementStep: 1, Scaling: 1}, replicaSpecs: [{replicas: 1, template: {spec: {containers: [{name: a, image: [b], env: {a: b}}], nodes: 1}}}]"),
			wantPolicy: "1 to 4 by 1", wantProblems: []string{"minReplicas: is text, expected a number", "unknown field \"Scaling\"", "containers[0].image: is a list", "containers[0].env: is an object", "unknown field \"nodes\""},
		},
		"another queue of pods": {
			text:       hyperPod("elasticPolicy: {minReplicas: 1, maxReplicas: 1, replicaIncrementStep: 1}, replicaSpecs: [{template: {metadata: {labels: {kueue.x-k8s.io/queue-name: other}}, spec: {containers: [{name: a}]}}}]") + "\n---\n",
			wantPolicy: "1 to 1 by 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, problems := read(t, tc.text)
			got := governance.JoinFieldErrors(problems)
			for _, want := range tc.wantProblems {
				if !strings.Contains(got, want) {
					t.Errorf("%q lacks %q", got, want)
				}
			}
			if len(tc.wantProblems) == 0 && got != "" {
				t.Errorf("got the problems %q, want none", got)
			}
			if (e == nil) != tc.wantNone {
				t.Fatalf("got %+v, want none: %t", e, tc.wantNone)
			}
			if e != nil {
				p := e.Spec.ElasticPolicy
				if diff := cmp.Diff(tc.wantPolicy, fmt.Sprintf("%d to %d by %d", p.MinReplicas, p.MaxReplicas, *p.ReplicaIncrementStep)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	e, _ := read(t, hyperPod("elasticPolicy: {}, replicaSpecs: [{template: {metadata: {labels: {kueue.x-k8s.io/queue-name: theirs}}}}]"))
	if e.Labels[constants.QueueLabel] != "theirs" || len(e.Spec.Template.Labels) != 0 {
		t.Errorf("got the labels %v and of pods %v, want the queue at the job", e.Labels, e.Spec.Template.Labels)
	}
}

// HyperPod's launcher is replaced wherever a command has it.
func TestHyperpodrun(t *testing.T) {
	for command, want := range map[string]string{
		`["hyperpodrun", "--nnodes", "2", "--nproc-per-node", "8", "train.py"]`:                                     `["python3", "-m", "kuota.elastic.run", "--nproc-per-node", "8", "train.py"]`,
		`["/usr/bin/hyperpodrun", "--rdzv_backend=hyperpod", "a b.py"]`:                                             `["python3", "-m", "kuota.elastic.run", "a b.py"]`,
		`["sh", "-c", "cd /x && hyperpodrun --nnodes=2 --rdzv-backend hyperpod --nproc-per-node=8 train.py; date"]`: `["sh", "-c", "cd /x && python3 -m kuota.elastic.run --nproc-per-node=8 train.py; date"]`,
		`["torchrun", "hyperpodrun.py"]`:                                                                            `["torchrun", "hyperpodrun.py"]`,
	} {
		e, _ := read(t, strings.NewReplacer("command: [hyperpodrun]", "command: "+command, "args: [--nnodes=2, --nproc-per-node=8, --rdzv-backend=hyperpod, train.py]", "args: []").Replace(file(t, "hyperpod")))
		var words []string
		if err := json.Unmarshal([]byte(want), &words); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(words, e.Spec.Template.Spec.Containers[0].Command); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}
