package kinds_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// TestLife takes tasks of each kind through their life: a task that uses all quota, one
// that waits, and one of a higher priority class.
func TestLife(t *testing.T) {
	for _, k := range kinds {
		if k.gated { // TestServices
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			of := newTeam(t)
			submit := func(t *testing.T, name string, pods int, class string) {
				t.Helper()
				if err := of.create(k.manifest(object{name: name, pods: pods, metadata: of.labels(class)})); err != nil {
					t.Fatal(err)
				}
			}
			for _, cell := range []struct {
				name string
				run  func(*testing.T)
			}{
				{"create as member", func(t *testing.T) { submit(t, "first", 4, "dev") }},
				{"admit", func(t *testing.T) {
					of.is(t, k, "first", tasks.Running, func(d queries.Detail) error {
						if !time.Now().Truncate(time.Second).After(d.Submitted) {
							return fmt.Errorf("Kueue orders by chance what was submitted in the same second")
						}
						if len(d.Pods) < 4 {
							return fmt.Errorf("the page lists %d pods, want 4", len(d.Pods))
						}
						return nil
					})
					of.runs(t, k, "first", 4)
				}},
				{"wait with the right reason", func(t *testing.T) {
					submit(t, "second", 1, "dev")
					of.is(t, k, "second", tasks.Pending, func(d queries.Detail) error {
						if d.Verdict == nil || d.Verdict.Constraint != explain.Quota || d.Agreement != explain.Agrees {
							return fmt.Errorf("got the verdict %+v, which %s with Kueue's reason, want Quota", d.Verdict, d.Agreement)
						}
						return nil
					})
					of.runs(t, k, "second", 0)
				}},
				{"preempt", func(t *testing.T) {
					submit(t, "third", 4, "training")
					of.is(t, k, "third", tasks.Running, nil)
					of.is(t, k, "first", tasks.Preempted, nil)
					of.runs(t, k, "third", 4)
					of.runs(t, k, "first", 0)
				}},
				{"requeue", func(t *testing.T) {
					if err := of.actions.Delete(t.Context(), of.member, of.at(k, "third")); err != nil {
						t.Fatal(err)
					}
					of.is(t, k, "first", tasks.Running, nil)
					of.runs(t, k, "first", 4)
				}},
				{"stop", func(t *testing.T) {
					if err := of.actions.Stop(t.Context(), of.member, of.at(k, "first")); err != nil {
						t.Fatal(err)
					}
					of.is(t, k, "first", tasks.Stopped, nil)
					of.runs(t, k, "first", 0)
					of.runs(t, k, "second", 1)
				}},
				{"resume", func(t *testing.T) {
					if err := of.actions.Resume(t.Context(), of.member, of.at(k, "first")); err != nil {
						t.Fatal(err)
					}
					if err := of.actions.Delete(t.Context(), of.member, of.at(k, "second")); err != nil {
						t.Fatal(err)
					}
					of.is(t, k, "first", tasks.Running, nil)
					of.runs(t, k, "first", 4)
				}},
				{"delete", func(t *testing.T) {
					if err := of.actions.Delete(t.Context(), of.member, of.at(k, "first")); err != nil {
						t.Fatal(err)
					}
					of.runs(t, k, "first", 0)
					if err := of.kubectl("", "wait", "--for=delete", k.resource+"/first", "-n", of.namespace, "--timeout=180s"); err != nil {
						t.Error(err)
					}
				}},
				{"history", func(t *testing.T) {
					want := map[string]string{"first": "deleted", "second": "deleted", "third": "deleted"}
					var first history.Task
					if of.end(t, k, "short") {
						want["short"] = string(tasks.Succeeded)
						if k.ends == failsWithNoRay {
							want["short"] = string(tasks.Failed)
						}
						if k.page {
							want["short-next"] = "deleted"
						}
					}
					clustertest.Eventually(t, soon, func(ctx context.Context) error {
						all, err := of.history.Tasks(ctx, history.Query{Namespace: of.namespace, Kind: k.name})
						got := map[string]string{}
						for _, task := range all {
							if got[task.Name] = task.State; !task.DeletedAt.IsZero() {
								got[task.Name] = "deleted"
							}
							if task.Name == "first" {
								first = task
							}
						}
						if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
							err = fmt.Errorf("got the tasks %v, want %v", got, want)
						}
						return err
					})
					of.remembers(t, first)
				}},
			} {
				if !t.Run(cell.name, cell.run) {
					t.FailNow() // the next ones depend on it
				}
			}
		})
	}
}

// TestBypasses tries to run pods of each kind without the quota of the team. A member's
// own attempts and those of a cluster admin are rejected.
func TestBypasses(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			of := newTeam(t)
			queued := of.labels("dev")
			if err := of.create("{apiVersion: batch/v1, kind: Job, metadata: {name: real, namespace: NAMESPACE, " + queued + "}, spec: {template: " + object{}.template("main") + "}}"); err != nil {
				t.Fatal(err)
			}
			uid := of.Kubectl(t, "", "get", "job", "real", "-n", of.namespace, "-o", "jsonpath={.metadata.uid}")
			of.Kubectl(t, "", "patch", "computeallocation", of.name, "--type=merge", "-p", `{"spec": {"shares": [{"name": "nightly", "weight": 1, "members": [{"kind": "User", "name": "grace@example.com"}]}]}}`)
			share := desired.DefaultNaming.ShareQueue(of.name, "nightly")
			clustertest.Eventually(t, soon, func(context.Context) error {
				return of.kubectl("", "get", "localqueue", share, "-n", of.namespace)
			})
			forged := " ownerReferences: [{apiVersion: batch/v1, kind: Job, name: real, uid: " + uid + ", controller: true}],"
			for name, tc := range map[string]struct {
				object
				want string
			}{
				"no queue":         {object{}, "a queue is missing"},
				"an empty queue":   {object{metadata: `labels: {kueue.x-k8s.io/queue-name: ""},`}, "a queue is missing"},
				"an unknown class": {object{metadata: "labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: bogus},"}, "unknown priority class bogus"},
				"a share":          {object{metadata: "labels: {kueue.x-k8s.io/queue-name: " + share + "},"}, "only the members of its share can use queue"},
				"a forged owner":   {object{metadata: queued + forged}, "remove metadata.ownerReferences"},
				"a pod's priority": {object{metadata: queued, spec: "priorityClassName: system-node-critical,"}, "priorityClassName"},
				"a forged podset":  {object{metadata: queued, labels: "kueue.x-k8s.io/podset: main,"}, "reserved for Kueue"},
				"a type of a pool": {object{metadata: queued, spec: "nodeSelector: {node.kubernetes.io/instance-type: ml.g6.12xlarge},"}, "are in pool small"},
			} {
				t.Run(name, func(t *testing.T) {
					tc.name, tc.pods = "bypass", 1
					for user, args := range map[string][]string{"the member": {"--as", of.member.Name}, "a cluster admin": nil} {
						if err := of.kubectl(of.fill(k.manifest(tc.object)), append([]string{"create", "-f", "-"}, args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
							t.Errorf("%s: got %v, want a rejection with %q", user, err, tc.want)
						}
					}
				})
			}
			t.Run("the queue of another team", func(t *testing.T) {
				if err := of.create(k.manifest(object{name: "foreign", pods: 1, metadata: "labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-other-localqueue},"})); err != nil {
					t.Fatal(err)
				}
				of.is(t, k, "foreign", tasks.Pending, func(d queries.Detail) error {
					if d.Verdict == nil || d.Verdict.Constraint != explain.NoQueue {
						return fmt.Errorf("got the verdict %+v, want NoQueue", d.Verdict)
					}
					return nil
				})
				of.runs(t, k, "foreign", 0)
			})
			t.Run("changes", func(t *testing.T) {
				if err := of.create(k.manifest(object{name: "waits", pods: 9, metadata: queued})); err != nil {
					t.Fatal(err)
				}
				patches := []string{
					`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`,
					`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}`,
					`{"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}}`,
					`{"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "controller": true}]}}`,
				}
				if k.resume != "" {
					patches = append(patches, k.resume)
				}
				for _, patch := range patches {
					if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", patch, "--as", of.member.Name); err == nil {
						t.Errorf("the member changes %s", patch)
					}
				}
				toShare := `{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "` + share + `"}}}`
				if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", toShare, "--as", of.member.Name); err == nil {
					t.Error("the member moves it to a share")
				}
				if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", toShare); err == nil || !strings.Contains(err.Error(), "only the members of its share can use queue") {
					t.Errorf("a cluster admin moves it to a share: got %v, want a rejection", err)
				}
				// Kueue would release its quota, and its pods would run on.
				if err := of.kubectl("", "delete", k.resource, "waits", "-n", of.namespace, "--cascade=orphan", "--as", of.member.Name); err == nil || !strings.Contains(err.Error(), "its pods would run on without quota") {
					t.Errorf("the member deletes it without its pods: got %v, want a rejection", err)
				}
				// Kueue suspends it again after a cluster admin resumed it, and until then its
				// pods lack Kueue's label.
				if k.resume != "" {
					if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", k.resume); err != nil {
						t.Logf("a cluster admin resumes it: %v", err)
					}
				}
				of.neverStarts(t, k, "waits")
			})
			if k.managedBy != "" {
				t.Run("managedBy", func(t *testing.T) {
					if err := of.create(k.manifest(object{name: "managed", pods: 1, metadata: queued, fields: k.managedBy})); err != nil {
						t.Fatal(err)
					}
					of.neverStarts(t, k, "managed")
				})
			}
			t.Run("pods", func(t *testing.T) {
				const pod = "{apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: NAMESPACE}, spec: {containers: [{name: main, image: none}]}}"
				if err := of.create(pod); err == nil || !strings.Contains(err.Error(), "forbidden") {
					t.Errorf("the member creates a pod: got %v, want it to be forbidden", err)
				}
				if err := of.kubectl(of.fill(pod), "create", "-f", "-"); err == nil {
					t.Error("a cluster admin creates a pod without a queue")
				}
			})
		})
	}
}

// TestManifestsAreAccepted creates each manifest that a team's page shows to a member,
// unchanged, with the member's permissions.
func TestManifestsAreAccepted(t *testing.T) {
	of := newTeam(t)
	shown, err := of.submit.Team(t.Context(), of.member, of.name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, kind := range shown.Kinds {
		got[string(kind)] = true
	}
	for _, k := range kinds {
		if k.page && !got[k.name] {
			t.Errorf("the page offers %v, want %s among them", shown.Kinds, k.name)
		}
	}
	gpus := int64(1)
	for _, elastic := range []bool{false, true} {
		plan := plan(t, shown, gpus, elastic)
		manifests, err := plan.Manifests()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manifests {
			t.Run(string(m.Kind), func(t *testing.T) {
				if err := of.create(m.Text); err != nil {
					t.Errorf("%v\n%s", err, m.Text)
				}
			})
		}
	}
}

// The pod that submits a RayJob is checked as the pods of its cluster are.
func TestSubmitterOfRayJob(t *testing.T) {
	if !slices.ContainsFunc(kinds, func(k kind) bool { return k.operator == "ray" }) {
		t.Skip("KubeRay does not run")
	}
	of := newTeam(t)
	rayJob := func(labels, spec string) string {
		o := object{name: "submits", pods: 1, metadata: of.labels("dev")}
		submitter := object{name: "submits", labels: labels, spec: spec}
		return fmt.Sprintf("{%s, spec: {entrypoint: none, shutdownAfterJobFinishes: true, submitterPodTemplate: %s, rayClusterSpec: {%s}}}", o.head("ray.io/v1", "RayJob"), submitter.submitter(), o.cluster())
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"a priority":    {rayJob("", "priorityClassName: system-node-critical,"), "priorityClassName"},
		"a podset":      {rayJob("kueue.x-k8s.io/podset: main,", ""), "reserved for Kueue"},
		"a pool's type": {rayJob("", "nodeSelector: {node.kubernetes.io/instance-type: ml.g6.12xlarge},"), "are in pool small"},
	} {
		if err := of.create(tc.manifest); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want a rejection with %q", name, err, tc.want)
		}
	}
	if err := of.create(rayJob("", "")); err != nil {
		t.Errorf("without these: %v", err)
	}
}

// The pods of a TrainJob are those of its runtime, of which users may create some of
// their own. They are checked as pods of jobs are.
func TestTrainingRuntime(t *testing.T) {
	if !slices.ContainsFunc(kinds, func(k kind) bool { return k.operator == "trainer" }) {
		t.Skip("the Trainer does not run")
	}
	of := newTeam(t)
	runtime := func(labels, spec string) string {
		o := object{name: "runtime", labels: labels, spec: spec}
		return of.fill(fmt.Sprintf("{%s, spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: %s}}}]}}}}", o.head("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"), o.template("node")))
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"a priority":    {runtime("", "priorityClassName: system-node-critical,"), "priorityClassName"},
		"a podset":      {runtime("kueue.x-k8s.io/podset: main,", ""), "reserved for Kueue"},
		"a pool's type": {runtime("", "nodeSelector: {node.kubernetes.io/instance-type: ml.g6.12xlarge},"), "are in pool small"},
	} {
		if err := of.kubectl(tc.manifest, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want a rejection with %q", name, err, tc.want)
		}
	}
	if err := of.kubectl(runtime("", ""), "create", "-f", "-"); err != nil {
		t.Errorf("without these: %v", err)
	}
	if err := of.kubectl("", "patch", "trainingruntime", "runtime", "-n", of.namespace, "--type=json", "-p", `[{"op": "add", "path": "/spec/template/spec/replicatedJobs/0/template/spec/template/metadata/labels/kueue.x-k8s.io~1podset", "value": "main"}]`); err == nil || !strings.Contains(err.Error(), "reserved for Kueue") {
		t.Errorf("a podset is added: got %v, want a rejection", err)
	}
}
