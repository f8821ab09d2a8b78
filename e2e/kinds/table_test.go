package kinds_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// TestLife takes tasks of each kind through their life: a task that uses all quota, one
// that waits, and one of a higher priority class.
func TestLife(t *testing.T) {
	for _, k := range kinds {
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
					of.is(t, k, "first", tasks.Running, nil)
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
					if err := of.kubectl("", "wait", "--for=delete", k.resource+"/first", "-n", of.namespace, "--timeout=30s"); err != nil {
						t.Error(err)
					}
				}},
				{"history", func(t *testing.T) {
					want := map[string]string{"first": "deleted", "second": "deleted", "third": "deleted"}
					short := object{name: "short", pods: 1, metadata: of.labels("dev"), podMetadata: "annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1s},"}
					if k.completes {
						if err := of.create(k.manifest(short)); err != nil {
							t.Fatal(err)
						}
						of.is(t, k, "short", tasks.Succeeded, nil)
						want["short"] = string(tasks.Succeeded)
					}
					clustertest.Eventually(t, soon, func(ctx context.Context) error {
						all, err := of.history.Tasks(ctx, history.Query{Namespace: of.namespace, Kind: k.name})
						got := map[string]string{}
						for _, task := range all {
							if got[task.Name] = task.State; !task.DeletedAt.IsZero() {
								got[task.Name] = "deleted"
							}
						}
						if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
							err = fmt.Errorf("got the tasks %v, want %v", got, want)
						}
						return err
					})
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
				"a forged podset":  {object{metadata: queued, podMetadata: "labels: {kueue.x-k8s.io/podset: main},"}, "reserved for Kueue"},
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
				for _, patch := range []string{
					`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`,
					`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}`,
					`{"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}}`,
					`{"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "controller": true}]}}`,
					k.resume,
				} {
					if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", patch, "--as", of.member.Name); err == nil {
						t.Errorf("the member changes %s", patch)
					}
				}
				// Kueue suspends it again after a cluster admin resumed it, and until then its
				// pods lack Kueue's label.
				if err := of.kubectl("", "patch", k.resource, "waits", "-n", of.namespace, "--type=merge", "-p", k.resume); err != nil {
					t.Logf("a cluster admin resumes it: %v", err)
				}
				for range 40 { // no pod may appear in the meantime
					if out := of.Kubectl(t, "", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(k.pods, "waits"), "-o", "name"); out != "" {
						t.Fatalf("a waiting task got pods %s", out)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
			if k.managedBy != "" {
				t.Run("managedBy", func(t *testing.T) {
					if err := of.create(k.manifest(object{name: "managed", pods: 1, metadata: queued, fields: k.managedBy})); err != nil {
						t.Fatal(err)
					}
					for range 40 {
						if out := of.Kubectl(t, "", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(k.pods, "managed"), "-o", "name"); out != "" {
							t.Fatalf("a task of another controller got pods %s", out)
						}
						time.Sleep(50 * time.Millisecond)
					}
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
	rayJob := func(submitter, spec string) string {
		o := object{name: "submits", metadata: of.labels("dev")}
		pod := object{podMetadata: submitter, spec: spec}
		return fmt.Sprintf("{%s, spec: {entrypoint: none, shutdownAfterJobFinishes: true, submitterPodTemplate: %s, rayClusterSpec: {rayVersion: 2.46.0, headGroupSpec: {rayStartParams: {}, template: %s}}}}", o.head("ray.io/v1", "RayJob"), pod.template("ray-job-submitter"), o.template("ray"))
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"a priority":    {rayJob("", "priorityClassName: system-node-critical,"), "priorityClassName"},
		"a podset":      {rayJob("labels: {kueue.x-k8s.io/podset: main},", ""), "reserved for Kueue"},
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
