package queries_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// situationsAtOnce is the number of situations that run in parallel. They mostly wait.
const situationsAtOnce = 18

func TestMain(m *testing.M) {
	clustertest.MainWith(m, clustertest.Options{Parallel: situationsAtOnce})
}

const soon = clustertest.Patience

// localUser sees everything.
var localUser = governance.User{Local: true}

// watched is the console that all tests query.
var watched struct {
	once    sync.Once
	service *queries.Service
	err     error
}

// watch starts a console, which stops when ctx ends, and returns its queries.
func watch(ctx context.Context, c *clustertest.Cluster) (*queries.Service, error) {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(c.Console, cluster.Options{Log: log, NoSessions: true})
	if err != nil {
		return nil, err
	}
	service := queries.New(connection, &access.Service{Cluster: connection})
	go func() { _ = connection.Run(ctx) }()
	return service, nil
}

// lab is the namespace, flavor and queues of one situation, created as an admin would,
// without Kuota.
type lab struct {
	t     *testing.T
	c     *clustertest.Cluster
	tasks *queries.Service
	name  string
	other bool // without UnadmittedWorkloadsObservability, see otherWords
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	c := clustertest.Get(t)
	watched.once.Do(func() { watched.service, watched.err = watch(context.Background(), c) })
	if watched.err != nil {
		t.Fatal(watched.err)
	}
	l := &lab{t: t, c: c, tasks: watched.service, name: clustertest.Name("lab")}
	l.apply(`
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME}
spec: {nodeLabels: {lab: NAME}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-high}
value: 90
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NAME-low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: NAME}
spec: {clusterQueue: NAME}
`)
	l.node("", 8)
	return l
}

func (l *lab) apply(yaml string) {
	l.t.Helper()
	l.c.Apply(l.t, strings.ReplaceAll(yaml, "NAME", l.name))
}

// queue applies a ClusterQueue with a nominal quota of GPUs; more are lines of its
// spec.
func (l *lab) queue(suffix string, nominal int, borrow string, more ...string) {
	l.t.Helper()
	limit := ""
	if borrow != "" {
		limit = ", borrowingLimit: " + borrow
	}
	preemption := "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}"
	if len(more) > 0 && strings.HasPrefix(more[0], "preemption:") {
		preemption, more = more[0], more[1:]
	}
	l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME%s}
spec:
  cohortName: NAME
  namespaceSelector: {}
  %s
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: %d%s}]}]
  %s
`, suffix, preemption, nominal, limit, strings.Join(more, "\n  ")))
}

// job submits a Job with this many pods of one GPU each; more are lines of its pods'
// spec.
func (l *lab) job(name string, pods int, class string, more ...string) {
	l.t.Helper()
	l.jobIn("main", name, pods, class, "", more...)
}

func (l *lab) jobIn(queue, name string, pods int, class, annotations string, more ...string) {
	l.t.Helper()
	l.jobOf(queue, name, pods, 1, class, annotations, more...)
}

// jobOf submits a Job with this many pods of this many GPUs each.
func (l *lab) jobOf(queue, name string, pods, gpus int, class, annotations string, more ...string) {
	l.t.Helper()
	if class != "" {
		class = ", kueue.x-k8s.io/priority-class: NAME-" + class
	}
	l.apply(fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: %[2]s%[3]s}, annotations: {%[4]s}}
spec:
  parallelism: %[5]d
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec:
      terminationGracePeriodSeconds: 0
      restartPolicy: Never
      containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: %[7]d}}}]
      %[6]s
`, name, queue, class, annotations, pods, strings.Join(more, "\n      "), gpus))
}

func (l *lab) kubectl(args ...string) {
	l.t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "NAME", l.name)
	}
	l.c.Kubectl(l.t, "", args...)
}

// patch changes an object of the lab.
func (l *lab) patch(kind, name, with string) {
	l.t.Helper()
	l.kubectl("patch", kind, name, "-n", "NAME", "--type=merge", "-p", with)
}

// patchWorkload changes the Workload of a job.
func (l *lab) patchWorkload(name, with string) {
	l.t.Helper()
	l.kubectl("patch", "workload", l.detail(name).Main.Name, "-n", "NAME", "--type=merge", "-p", with)
}

func (l *lab) detail(name string) queries.Detail {
	l.t.Helper()
	var d queries.Detail
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		d, err = l.tasks.Detail(ctx, localUser, l.name, "job", name, "")
		return err
	})
	return d
}

// is waits until a task is in a state, with a constraint and Kueue's reason, which
// may be empty.
func (l *lab) is(name string, state tasks.State, want explain.Constraint, reason string) (d queries.Detail) {
	l.t.Helper()
	defer func() {
		if l.t.Failed() { // its nodes and pods are there for a moment
			l.t.Log(l.c.Kubectl(l.t, "", "get", "nodes", "-l", "lab="+l.name, "-o", "yaml"), l.c.Kubectl(l.t, "", "get", "pods", "-A", "-o", "wide"))
		}
	}()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		if d, err = l.tasks.Detail(ctx, localUser, l.name, "job", name, ""); err != nil {
			return err
		}
		var constraint explain.Constraint
		if d.Verdict != nil {
			constraint = d.Verdict.Constraint
		}
		if l.other && reason != "" {
			reason = otherWords[reason]
		}
		if d.State != state || constraint != want || reason != "" && d.Reason != reason {
			verdict, _ := json.Marshal(d.Verdict)
			return fmt.Errorf("%s is %s for %s (%s), with Kueue's reason %s %q; want %s for %s, %s", name, d.State, constraint, verdict, d.Reason, d.Task.Message, state, want, reason)
		}
		return l.lists(ctx, d)
	})
	if reason != "" && d.Agreement != explain.Agrees {
		l.t.Errorf("the constraint %s and Kueue's reason %s: %s", d.Verdict.Constraint, d.Reason, d.Agreement)
	}
	return d
}

// lists checks that the list explains a waiting task as its page does.
func (l *lab) lists(ctx context.Context, d queries.Detail) error {
	if !d.State.Waiting() {
		return nil
	}
	list, err := l.tasks.List(ctx, localUser, index.Query{Text: l.name, Phase: index.Active, Explain: true, Patience: time.Second}, nil)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Items, func(item queries.Item) bool { return item.UID == d.UID })
	if i < 0 || list.Items[i].Brief == nil || list.Items[i].Brief.Constraint != d.Verdict.Constraint {
		return fmt.Errorf("the list explains %s differently from its page, which has %s: %+v", d.Name, d.Verdict.Constraint, list.Items)
	}
	return nil
}

func (l *lab) runs(name string) queries.Detail {
	l.t.Helper()
	return l.is(name, tasks.Running, "", "")
}

// offers checks that a change is among those that would start a task.
func (l *lab) offers(d queries.Detail, kind explain.ChangeKind) explain.Change {
	l.t.Helper()
	at := -1
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if at = slices.IndexFunc(d.Verdict.Changes, func(c explain.Change) bool { return c.Kind == kind }); at >= 0 {
			return nil
		}
		changes := d.Verdict.Changes
		if now := l.detail(d.Name); now.Verdict != nil { // the console may not have received all queues yet
			d = now
		}
		return fmt.Errorf("%s is not among %+v", kind, changes)
	})
	return d.Verdict.Changes[at]
}

// node adds a node with this many GPUs to the lab's flavor.
func (l *lab) node(suffix string, gpus int) {
	l.t.Helper()
	name := l.name + suffix
	l.c.Node(l.t, name, map[string]string{"lab": l.name, corev1.LabelHostname: name}, clustertest.Resources(map[corev1.ResourceName]string{
		"nvidia.com/gpu": fmt.Sprint(gpus), "cpu": "64", "memory": "64Gi", "pods": "110",
	}))
}

// deleteNode deletes a node of the lab.
func (l *lab) deleteNode(suffix string) {
	l.t.Helper()
	if err := l.c.Client.Delete(l.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.name + suffix}}); err != nil {
		l.t.Fatal(err)
	}
}

// until waits until is returns true for a task.
func (l *lab) until(name string, is func(d queries.Detail) bool) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if d := l.detail(name); !is(d) {
			return fmt.Errorf("the task is %s with %+v, uses %v, and waits for %q", d.State, d.Size, d.Usage, d.PendingMessage)
		}
		return nil
	})
}

// ceiling limits the GPUs that pods of the namespace may request, by a ResourceQuota.
func (l *lab) ceiling(gpus int) {
	l.t.Helper()
	l.apply(fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: ceiling, namespace: NAME}, spec: {hard: {requests.nvidia.com/gpu: %d}}}", gpus))
	clustertest.Eventually(l.t, soon, func(context.Context) error {
		if out := l.c.Kubectl(l.t, "", "get", "resourcequota", "ceiling", "-n", l.name, "-o", "jsonpath={.status.hard.requests\\.nvidia\\.com/gpu}"); out != fmt.Sprint(gpus) {
			return fmt.Errorf("the ResourceQuota is %q, want %d", out, gpus)
		}
		return nil
	})
}

// check creates a queue with an admission check that no controller answers.
func (l *lab) check() {
	l.t.Helper()
	l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: NAME}, spec: {controllerName: example.com/check}}")
	l.kubectl("patch", "admissioncheck", "NAME", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":"2026-11-21T09:00:00Z"}]}}`)
	l.queue("", 4, "", "admissionChecksStrategy: {admissionChecks: [{name: NAME}]}")
}

// answerCheck sets the state of that check for a task.
func (l *lab) answerCheck(name, state, more string) {
	l.t.Helper()
	l.kubectl("patch", "workload", l.detail(name).Main.Name, "-n", "NAME", "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"admissionChecks":[{"name":"NAME","state":%q,"message":"not now","lastTransitionTime":%q%s}]}}`, state, time.Now().UTC().Format(time.RFC3339), more))
}

// preemption returns the last preemption of a task.
func preemption(d queries.Detail) (last timeline.Event) {
	for _, e := range d.Timeline {
		if e.Type == timeline.Preempted {
			last = e
		}
	}
	return last
}
