package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	const bert = "apiVersion: kuota.dev/v1alpha1\nkind: ElasticJob\nmetadata:\n  name: bert\nspec:\n  elasticPolicy:\n    backoffMaxSeconds: 3600\n    faultyScaleDownTimeoutInSeconds: 30\n    gracefulShutdownTimeoutInSeconds: 30\n    maxReplicas: 2\n    minReplicas: 1\n    minStablePeriodSeconds: 60\n    replicaIncrementStep: 1\n    scalingTimeoutInSeconds: 60\n  template:\n    spec:\n      containers:\n      - image: a\n        name: a\n        resources: {}\n"
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
		"no file":                {fails: "usage: kuota import"},
		"a file that is not":     {args: []string{filepath.Join(folder, "none")}, fails: "no such file"},
		"an unknown kind":        {args: []string{"--kind", "pod", quota}, fails: `kind "pod"`},
		"an unknown flag":        {args: []string{"--force"}, fails: "usage: kuota import"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, messages bytes.Buffer
			err := commands()["import"].run(context.Background(), tc.args, streams{in: strings.NewReader(tc.in), out: &out, messages: &messages})
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
