package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shell is a person's shell in a team of their own.
type shell struct {
	*testing.T
	tenant
	address, token string
}

// openShell waits until the person sees their team.
func openShell(t *testing.T, prefix string) shell {
	t.Helper()
	address := console(t) // which makes the team
	s := shell{t, makeTenant(t, prefix, "vision-team"), address, personToken(t, "ada")}
	s.until(func() error {
		_, err := s.try("tasks", "--team", s.team)
		return err
	})
	return s
}

// try runs a command of kuota, and returns what it prints.
func (s shell) try(args ...string) (string, error) {
	out, messages, err := kuotaBefore(s.T, s.address, append([]string{args[0], "--token", s.token}, args[1:]...)...)
	if err != nil {
		err = fmt.Errorf("kuota %s: %w\n%s%s", strings.Join(args, " "), err, out, messages)
	}
	return out, err
}

func (s shell) run(args ...string) string {
	s.Helper()
	out, err := s.try(args...)
	must(s.T, err)
	return out
}

func (s shell) until(done func() error) {
	s.Helper()
	clustertest.Eventually(s.T, clustertest.Patience, func(context.Context) error { return done() })
}

// task submits a task by flags.
func (s shell) task(name string, flags ...string) string {
	s.Helper()
	args := slices.Concat([]string{"run", "--team", s.team, "--name", name, "--image", "example.com/train:1", "--cpu", "0.1", "--memory", "0.1", "-d"}, flags, []string{"--", "python", "train.py"})
	return strings.TrimSpace(s.run(args...))
}

// says waits until a command prints a text.
func (s shell) says(text string, args ...string) {
	s.Helper()
	s.until(func() error {
		out, err := s.try(args...)
		if err == nil && !strings.Contains(out, text) {
			err = fmt.Errorf("kuota %s has no %q:\n%s", strings.Join(args, " "), text, out)
		}
		return err
	})
}

// end ends the pods of a Job that run, of one index unless it is negative.
func (s shell) end(job string, index int, code int32) {
	s.Helper()
	s.until(func() error {
		var pods corev1.PodList
		must(s.T, clustertest.Get(s.T).Client.List(s.Context(), &pods, client.InNamespace("hyperpod-ns-"+s.team), client.MatchingLabels{"batch.kubernetes.io/job-name": job}))
		ended := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodRunning || index >= 0 && pod.Annotations["batch.kubernetes.io/job-completion-index"] != fmt.Sprint(index) {
				continue
			}
			before := pod.DeepCopy()
			if pod.Status.Phase = corev1.PodSucceeded; code != 0 {
				pod.Status.Phase = corev1.PodFailed
			}
			now := metav1.Now()
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", StartedAt: now, FinishedAt: now}}}}
			if err := clustertest.Get(s.T).Client.Status().Patch(s.Context(), &pod, client.MergeFrom(before)); err != nil {
				return err
			}
			ended++
		}
		if ended == 0 {
			return fmt.Errorf("no pod of %s runs", job)
		}
		return nil
	})
}

// TestAfter submits tasks that start after others: one that has succeeded, one however it ended. What
// can never start says so.
func TestAfter(t *testing.T) {
	t.Parallel()
	s := openShell(t, "after")
	namespace := "hyperpod-ns-" + s.team
	gates := func(kind, name string) string {
		return clustertest.Get(t).Kubectl(t, "", "get", kind, name, "-n", namespace, "-o", `jsonpath={.metadata.annotations.kueue\.x-k8s\.io/admission-gated-by}`)
	}
	for name, want := range map[string]string{"missing": "there is no task missing in namespace", "prep:maybe": "NAME:any"} {
		if _, err := s.try("run", "--team", s.team, "--after", name, "-d", "--image", "a", "--", "true"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v, want %q", name, err, want)
		}
	}

	s.task("prep")
	s.task("train", "--after", "prep")
	file := filepath.Join(t.TempDir(), "elastic.yaml")
	must(t, os.WriteFile(file, []byte(afterElastic), 0o600))
	s.run("submit", "-f", file, "--team", s.team, "--after", "job/prep", "--after", "train:any")
	s.says("It starts after prep.", "why", "train")
	s.says("It starts after prep, train.", "why", "grow")
	if gate := gates("job", "train"); !strings.HasPrefix(gate, "kuota.dev/after-ok-") {
		t.Errorf("the gate of train is %q", gate)
	}
	if out, err := clustertest.Get(t).TryKubectl("", "annotate", "job", "train", "-n", namespace, "kueue.x-k8s.io/admission-gated-by-", "--as", "ada@example.com", "--as-group", "vision-team", "--as-group", "system:authenticated"); err == nil || !strings.Contains(out+err.Error(), "can be changed") {
		t.Errorf("a member removes a gate: %s %v", out, err)
	}
	s.end("prep", -1, 0)
	s.says("Running", "tasks", "--team", s.team, "--text", "train")
	s.says("It starts after train.", "why", "grow")
	if gate := gates("job", "train"); gate != "" {
		t.Errorf("train runs with the gate %q", gate)
	}

	s.task("evaluate", "--after", "train", "--tries", "1")
	s.task("clean", "--after", "train:any", "--tries", "1")
	s.run("delete", "train", "--team", s.team, "--yes") // it never succeeds
	s.says("It starts after a task that was deleted.", "why", "evaluate")
	s.task("fails", "--tries", "1")
	s.task("report", "--after", "fails")
	s.end("fails", -1, 3)
	s.says("It never starts: fails failed.", "why", "report")
	s.says("Running", "tasks", "--team", s.team, "--text", "clean")
	s.says("Running", "tasks", "--team", s.team, "--text", "grow")
	if gate := gates("elasticjob", "grow"); gate != "" {
		t.Errorf("grow runs with the gate %q", gate)
	}
	s.says("Pending", "tasks", "--team", s.team, "--text", "evaluate")
}

const afterElastic = `apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: grow}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1}
  template: {spec: {containers: [{name: main, image: "example.com/train:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}]}}
`

// TestArray runs a command once for each index: a failed one ends no other, and has its log, its
// exit code, and another try.
func TestArray(t *testing.T) {
	t.Parallel()
	s := openShell(t, "array")
	for array, want := range map[string]string{"5": "FIRST-LAST", "4-1": "before it begins", "1-99999": "at most 10000", "1-4%0": "at least 1"} {
		if _, err := s.try("run", "--team", s.team, "--array", array, "-d", "--image", "a", "--", "true"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("array %s: %v, want %q", array, err, want)
		}
	}
	s.task("sweep", "--array", "1-3%3")
	s.end("sweep", 0, 3)
	s.end("sweep", 1, 0)
	s.end("sweep", 2, 0)
	s.says("2/3", "tasks", "--team", s.team, "--text", "sweep", "--tab", "finished")
	pods := strings.Join(strings.Fields(s.run("pods", "sweep")), " ")
	for _, want := range []string{" 1 Failed 3 ", " 2 Succeeded 0 ", " 3 Succeeded 0 "} {
		if !strings.Contains(pods, want) {
			t.Errorf("pods has no %q: %s", want, pods)
		}
	}
	again := strings.TrimSpace(s.run("again", "sweep", "--index", "1"))
	if !strings.HasSuffix(again, "/job/sweep-i1") {
		t.Errorf("again is %s", again)
	}
	if env := clustertest.Get(t).Kubectl(t, "", "get", "job", "sweep-i1", "-n", "hyperpod-ns-"+s.team, "-o", `jsonpath={.spec.completions} {range .spec.template.spec.containers[0].env[*]}{.name}={.value} {end}`); env != "1 JOB_COMPLETION_INDEX=0 KUOTA_ARRAY_INDEX=1 " {
		t.Errorf("the index is submitted again as %q", env)
	}
	if _, err := s.try("again", "sweep", "--index", "4"); err == nil || !strings.Contains(err.Error(), "want 1 to 3") {
		t.Errorf("index 4: %v", err)
	}
	s.end("sweep-i1", -1, 0)
	s.says("Succeeded", "tasks", "--team", s.team, "--tab", "finished", "--text", "sweep-i1")
}

// TestLaunchPost runs the line that the HyperPod CLI's command of the launch post becomes.
func TestLaunchPost(t *testing.T) {
	t.Parallel()
	s := openShell(t, "launch")
	line := s.run("translate", "--", "hyp", "create", "hyp-pytorch-job", "--job-name", "sample-job1", "--image", "example.com/train:1", "--pull-policy", "Always", "--tasks-per-node", "1", "--max-retry", "1",
		"--namespace", "hyperpod-ns-"+s.team, "--queue-name", "hyperpod-ns-"+s.team+"-localqueue", "--instance-type", "ml.p5.48xlarge", "--accelerators", "1", "--vcpu", "4", "--memory", "1", "--accelerators-limit", "1", "--vcpu-limit", "5", "--memory-limit", "2")
	s.run(strings.Fields(line)[1:]...)
	job := clustertest.Get(t).Kubectl(t, "", "get", "job", "sample-job1", "-n", "hyperpod-ns-"+s.team, "-o", `jsonpath={.spec.backoffLimit} {range .spec.template.spec.containers[0]}{.image} {.command}{.resources.requests.nvidia\.com/gpu} {.resources.requests.cpu} {.resources.requests.memory}{end} {.spec.template.spec.nodeSelector}`)
	if want := `1 example.com/train:1 1 4 1Gi {"node.kubernetes.io/instance-type":"ml.p5.48xlarge"}`; job != want {
		t.Errorf("the Job is\n%s\nwant\n%s", job, want)
	}
	s.says("sample-job1", "tasks", "--team", s.team)
}
