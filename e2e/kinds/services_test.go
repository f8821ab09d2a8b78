package kinds_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service is a kind that serves. The operator lws runs LeaderWorkerSets, and Kueue then
// manages the others, too.
type service struct {
	kind
	replicas           int   // more than the quota is sufficient for, if each starts by itself
	podsEach           int   // pods of a replica
	admitted, together int64 // replicas that start with 3 GPUs, and with 4
}

const servicesOperator = "lws"

// servicesRun reports whether tests of services run.
var servicesRun = clustertest.Verify

var services = []service{{
	kind: kind{
		name: "Deployment", resource: "deployments.apps", pods: "app=%s",
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {replicas: %d, selector: {matchLabels: {app: %s}}, template: %s}}", o.head("apps/v1", "Deployment"), o.pods, o.name, o.serves())
		},
	}, replicas: 5, podsEach: 1, admitted: 3, together: 4,
}, {
	kind: kind{
		name: "StatefulSet", resource: "statefulsets.apps", pods: "app=%s",
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {replicas: %d, podManagementPolicy: Parallel, selector: {matchLabels: {app: %s}}, template: %s}}", o.head("apps/v1", "StatefulSet"), o.pods, o.name, o.serves())
		},
	}, replicas: 3, podsEach: 1, admitted: 3, together: 3,
}, {
	kind: kind{
		name: "LeaderWorkerSet", resource: "leaderworkersets.leaderworkerset.x-k8s.io", pods: "leaderworkerset.sigs.k8s.io/name=%s",
		manifest: func(o object) string {
			return fmt.Sprintf("{%s, spec: {replicas: %d, leaderWorkerTemplate: {size: 2, workerTemplate: %s}}}", o.head("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), o.pods, o.serves())
		},
	}, replicas: 3, podsEach: 2, admitted: 1, together: 2,
}}

// serves returns a pod template of a service.
func (o object) serves() string {
	return fmt.Sprintf("{metadata: {labels: {app: %s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}]}}", o.name)
}

// hasReplicas waits until this many replicas of a service have quota, of all that it
// wants, and the list shows it as one task.
func (of team) hasReplicas(t *testing.T, s service, admitted, wanted int64, check func(queries.Detail) error) {
	t.Helper()
	of.is(t, s.kind, "serve", tasks.Running, func(d queries.Detail) error {
		if got, all := d.Replicas(); got != admitted || all != wanted {
			return fmt.Errorf("%d of %d replicas have quota, want %d of %d", got, all, admitted, wanted)
		}
		if want := int64(admitted) * int64(s.podsEach); int64(d.Usage["nvidia.com/gpu"]) != want {
			return fmt.Errorf("it uses %v, want %d GPUs", d.Usage, want)
		}
		list, err := of.submit.Tasks.List(t.Context(), of.member, index.Query{Phase: index.Active, Text: "serve"}, nil)
		if err != nil {
			return err
		}
		if list.Total != 1 || list.Items[0].UID != d.UID {
			return fmt.Errorf("the list has %d tasks: %+v, want one", list.Total, list.Items)
		}
		scope, err := of.submit.Tasks.Scope(t.Context(), of.member)
		if err != nil {
			return err
		}
		owners, err := of.submit.Tasks.PodOwners(t.Context(), scope)
		if err != nil {
			return err
		}
		for _, p := range d.Pods {
			if owner, known := owners(index.PodName{Namespace: of.namespace, Name: p.Name}); !known || owner.Task.Kind != s.name {
				return fmt.Errorf("pod %s belongs to %+v", p.Name, owner)
			}
		}
		if check == nil {
			return nil
		}
		return check(d)
	})
	of.serving(t, s, int(admitted)*s.podsEach)
}

// TestServices takes each kind that serves through its life, as a member of the team.
func TestServices(t *testing.T) {
	if !servicesRun {
		t.Skip("needs the operator of LeaderWorkerSets: run by make verify")
	}
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			of := newTeam(t)
			job := func(t *testing.T, name string, pods int, class string) {
				t.Helper()
				o := object{name: name, metadata: of.labels(class)}
				if err := of.create(fmt.Sprintf("{%s, spec: {parallelism: %d, completions: %[2]d, template: %s}}", o.head("batch/v1", "Job"), pods, o.template("main"))); err != nil {
					t.Fatal(err)
				}
			}
			batch := kind{name: "Job", pods: "batch.kubernetes.io/job-name=%s"}
			remove := func(t *testing.T, name string) {
				t.Helper()
				if err := of.actions.Delete(t.Context(), of.member, of.at(batch, name)); err != nil {
					t.Fatal(err)
				}
			}
			replicas := func(want int) {
				t.Helper()
				if got := of.Kubectl(t, "", "get", s.resource, "serve", "-n", of.namespace, "-o", "jsonpath={.spec.replicas}"); got != fmt.Sprint(want) {
					t.Errorf("it has %s replicas, want %d", got, want)
				}
			}
			wanted := int64(s.replicas)
			waits := func(d queries.Detail) error {
				if s.admitted == wanted { // none does
					return nil
				}
				if d.Verdict == nil || d.Verdict.Constraint != explain.Quota || d.Agreement != explain.Agrees {
					return fmt.Errorf("got the verdict %+v, which %s with Kueue's reason, want Quota", d.Verdict, d.Agreement)
				}
				return nil
			}
			for _, cell := range []struct {
				name string
				run  func(*testing.T)
			}{
				{"create as member", func(t *testing.T) {
					job(t, "other", 1, "dev")
					of.is(t, batch, "other", tasks.Running, nil)
					if err := of.create(s.manifest(object{name: "serve", pods: s.replicas, metadata: of.labels("dev")})); err != nil {
						t.Fatal(err)
					}
				}},
				{"admit, and wait with the right reason", func(t *testing.T) { of.hasReplicas(t, s, s.admitted, wanted, waits) }},
				{"another replica starts", func(t *testing.T) {
					remove(t, "other")
					of.hasReplicas(t, s, s.together, wanted, nil)
				}},
				{"stop", func(t *testing.T) {
					if err := of.actions.Stop(t.Context(), of.member, of.at(s.kind, "serve")); err != nil {
						t.Fatal(err)
					}
					of.is(t, s.kind, "serve", tasks.Stopped, func(d queries.Detail) error {
						if int64(d.StoppedReplicas) != wanted || d.Verdict == nil || d.Verdict.Constraint != explain.Deactivated || d.Agreement == explain.Disagrees {
							return fmt.Errorf("%d replicas are remembered (%+v, %s), want %d", d.StoppedReplicas, d.Verdict, d.Agreement, wanted)
						}
						return nil
					})
					replicas(0)
					// Kuota's own account can annotate a service of a team, and change nothing else.
					for _, patch := range []string{`{"spec": {"replicas": 9}}`, `{"metadata": {"labels": {"a": "b"}}}`, `{"metadata": {"annotations": {"a": "b"}}}`, `{"metadata": {"finalizers": ["a.example.com/b"]}}`} {
						if err := of.patchAsKuota(t, s, patch); err == nil || !strings.Contains(err.Error(), "kuota-services") {
							t.Errorf("Kuota's account changes %s: got %v, want a rejection", patch, err)
						}
					}
					of.serving(t, s, 0)
					job(t, "fills", 4, "dev")
					of.is(t, batch, "fills", tasks.Running, nil)
				}},
				{"resume", func(t *testing.T) {
					r, err := of.actions.Review(t.Context(), of.member, of.at(s.kind, "serve"), actions.Resume)
					if err != nil || r.Obstacle != "" || int64(r.Replicas) != wanted {
						t.Errorf("the review has %d replicas and the obstacle %q (%v)", r.Replicas, r.Obstacle, err)
					}
					if err := of.actions.Resume(t.Context(), of.member, of.at(s.kind, "serve")); err != nil {
						t.Fatal(err)
					}
					of.is(t, s.kind, "serve", tasks.Pending, waits)
					replicas(s.replicas)
					remove(t, "fills")
					of.hasReplicas(t, s, s.together, wanted, nil)
				}},
				{"preempt", func(t *testing.T) {
					job(t, "urgent", 4, "training")
					of.is(t, batch, "urgent", tasks.Running, nil)
					of.is(t, s.kind, "serve", tasks.Preempted, func(d queries.Detail) error {
						if d.Preemptions == 0 {
							return fmt.Errorf("it was never preempted")
						}
						return nil
					})
				}},
				{"requeue", func(t *testing.T) {
					remove(t, "urgent")
					of.hasReplicas(t, s, s.together, wanted, nil)
				}},
				{"delete", func(t *testing.T) {
					if err := of.kubectl("", "delete", s.resource, "serve", "-n", of.namespace, "--as", of.member.Name); err != nil {
						t.Fatal(err)
					}
					of.serving(t, s, 0)
				}},
				{"history", func(t *testing.T) {
					clustertest.Eventually(t, soon, func(ctx context.Context) error {
						all, err := of.history.Tasks(ctx, history.Query{Namespace: of.namespace})
						var got []string
						for _, task := range all {
							if task.Kind != "Job" {
								got = append(got, fmt.Sprintf("%s %s %t", task.Kind, task.Name, task.DeletedAt.IsZero()))
							}
						}
						if want := s.name + " serve false"; err == nil && strings.Join(got, ", ") != want {
							err = fmt.Errorf("got the tasks %v, want %s", got, want)
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

// patchAsKuota patches the service serve with the console's own account.
func (of team) patchAsKuota(t *testing.T, s service, patch string) error {
	t.Helper()
	console, err := client.New(current.Console, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: "serve"}}
	resource, group, _ := strings.Cut(s.resource, ".")
	kind, err := console.RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
	if err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(kind)
	return console.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// Kueue manages pods of services without its integration pod, and no other pods. So a
// pod that names a service, and is none of its pods, is managed too, or never starts.
func TestPodsBesideServices(t *testing.T) {
	if !servicesRun {
		t.Skip("needs the operator of LeaderWorkerSets: run by make verify")
	}
	of := newTeam(t)
	pod := func(name, metadata string) string {
		return of.fill(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: NAMESPACE, %s}, spec: {containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}", name, metadata))
	}
	if err := of.kubectl(pod("alone", "labels: {kueue.x-k8s.io/queue-name: QUEUE}"), "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "integration pod is off") {
		t.Errorf("a pod of no service: got %v, want a rejection", err)
	}
	forged := "labels: {kueue.x-k8s.io/queue-name: QUEUE%s}, annotations: {kueue.x-k8s.io/pod-suspending-parent: deployment}"
	for name, managed := range map[string]string{"unmanaged": "", "managed": `, kueue.x-k8s.io/managed: "true"`} {
		if err := of.kubectl(pod(name, fmt.Sprintf(forged, managed)), "create", "-f", "-"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	of.is(t, kind{name: "Pod"}, "managed", tasks.Running, nil)
	// Kueue starts a pod whose LeaderWorkerSet does not exist.
	const set, parent = "leaderworkerset.sigs.k8s.io/name=none", "kueue.x-k8s.io/pod-suspending-parent=leaderworkerset.x-k8s.io/leaderworkerset"
	for name, err := range map[string]error{
		"labelled":  of.kubectl("", "label", "pod", "unmanaged", "-n", of.namespace, set),
		"annotated": of.kubectl("", "annotate", "--overwrite", "pod", "unmanaged", "-n", of.namespace, parent),
	} {
		if err == nil || !strings.Contains(err.Error(), "only a controller can create a pod of a StatefulSet or LeaderWorkerSet") {
			t.Errorf("a pod of no LeaderWorkerSet is %s: got %v, want a rejection", name, err)
		}
	}
	if out := of.Kubectl(t, "", "get", "pod", "unmanaged", "-n", of.namespace, "-o", "jsonpath={.status.phase} {.spec.schedulingGates[*].name}"); !strings.HasPrefix(out, "Pending kueue.x-k8s.io/admission") {
		t.Errorf("a pod without a Workload is %s, want it to wait for Kueue", out)
	}
}

// serving waits until this many pods of the service serve run.
func (of team) serving(t *testing.T, s service, want int) {
	t.Helper()
	clustertest.Eventually(t, soon, func(context.Context) error {
		out, err := of.TryKubectl("", "get", "pods", "-n", of.namespace, "-l", fmt.Sprintf(s.pods, "serve"), "-o", "jsonpath={.items[*].status.phase}")
		if err != nil || strings.Count(out, "Running") != want {
			return fmt.Errorf("got pods %q (%v), want %d that run", out, err, want)
		}
		return nil
	})
}
