package tasks_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// situationsAtOnce is how many run side by side. They mostly wait.
const situationsAtOnce = "12"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", situationsAtOnce); err != nil {
		panic(err)
	}
	clustertest.Main(m)
}

const soon = 30 * time.Second

// anybody sees everything.
var anybody = governance.User{Local: true}

var watching = sync.OnceValues(func() (*tasks.Service, error) {
	log := slog.New(slog.DiscardHandler)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	connection, err := cluster.New(current.Console, cluster.Options{Log: log, NoSessions: true})
	if err != nil {
		return nil, err
	}
	service := tasks.New(connection, &access.Service{Cluster: connection})
	go func() { _ = connection.Run(context.Background()) }()
	return service, nil
})

var current *clustertest.Cluster

// lab is a situation's corner of the cluster: a namespace, a flavor and queues of
// its own, written as an admin would, without Kuota.
type lab struct {
	t     *testing.T
	c     *clustertest.Cluster
	tasks *tasks.Service
	name  string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	c := clustertest.Get(t)
	service, err := watching()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, c: c, tasks: service, name: clustertest.Name("lab")}
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
	return l
}

func (l *lab) apply(yaml string) {
	l.t.Helper()
	l.c.Kubectl(l.t, strings.ReplaceAll(yaml, "NAME", l.name), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// queue makes a ClusterQueue with so much quota of GPUs; more are lines of its
// spec.
func (l *lab) queue(suffix string, nominal int, borrow string, more ...string) {
	l.t.Helper()
	limit := ""
	if borrow != "" {
		limit = ", borrowingLimit: " + borrow
	}
	l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME%s}
spec:
  cohortName: NAME
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: %d%s}]}]
  %s
`, suffix, nominal, limit, strings.Join(more, "\n  ")))
}

// job submits one with so many pods of one GPU each; more are lines of its spec.
func (l *lab) job(name string, pods int, class string, more ...string) {
	l.t.Helper()
	l.jobIn("main", name, pods, class, "", more...)
}

func (l *lab) jobIn(queue, name string, pods int, class, annotations string, more ...string) {
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
      containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]
      %[6]s
`, name, queue, class, annotations, pods, strings.Join(more, "\n      ")))
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
	l.kubectl("patch", "workload", l.detail(name).Main().Name, "-n", "NAME", "--type=merge", "-p", with)
}

func (l *lab) detail(name string) tasks.Detail {
	l.t.Helper()
	var d tasks.Detail
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		d, err = l.tasks.Detail(ctx, anybody, l.name, "job", name, "")
		return err
	})
	return d
}

// is waits until a task is in a state for a reason: what decides, and Kueue's
// word for it, which may be left out.
func (l *lab) is(name string, state tasks.State, decides explain.Constraint, token string) (d tasks.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		if d, err = l.tasks.Detail(ctx, anybody, l.name, "job", name, ""); err != nil {
			return err
		}
		var constraint explain.Constraint
		if d.Verdict != nil {
			constraint = d.Verdict.Constraint
		}
		if d.State != state || constraint != decides || token != "" && d.Token != token {
			return fmt.Errorf("%s is %s for %s (%+v), and Kueue says %s %q; want %s for %s, %s", name, d.State, constraint, d.Verdict, d.Token, d.Task.Reason, state, decides, token)
		}
		return nil
	})
	return d
}

func (l *lab) runs(name string) tasks.Detail {
	l.t.Helper()
	return l.is(name, tasks.Running, "", "")
}

// offers checks that a change is among those that would start a task.
func (l *lab) offers(d tasks.Detail, kind explain.Kind) explain.Change {
	l.t.Helper()
	for _, change := range d.Verdict.Changes {
		if change.Kind == kind {
			return change
		}
	}
	l.t.Fatalf("%s is not among %+v", kind, d.Verdict.Changes)
	return explain.Change{}
}

// Real situations on the real Kueue: what state a task is in, what decides, and
// that the change which is proposed starts it.
func TestSituations(t *testing.T) {
	current = clustertest.Get(t)
	for name, situation := range situations {
		t.Run(name, func(t *testing.T) { situation(newLab(t)) })
	}
}

var situations = map[string]func(*lab){
	"runs": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 2, "low")
		if d := l.runs("a"); d.Size.Now != 2 || d.Held["nvidia.com/gpu"] != 2 || len(d.Pools) != 1 || d.Waited(time.Now()) > 10*time.Second {
			l.t.Errorf("it is %+v", d.Task)
		}
	},
	"waits for quota that a task of its own holds": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 3, "low")
		l.runs("a")
		l.job("b", 3, "low")
		d := l.is("b", tasks.Pending, explain.Quota, "WaitingForQuota")
		if d.Verdict.Decides.Short() != 2 || d.Place != 1 || d.Of != 1 {
			l.t.Errorf("it is short of %+v at place %d of %d", d.Verdict.Decides, d.Place, d.Of)
		}
		if change := l.offers(d, explain.TasksEnd); len(change.Tasks) != 1 || change.Tasks[0].Name != "a" {
			l.t.Errorf("%+v should end", change.Tasks)
		}
		l.kubectl("delete", "job", "a", "-n", "NAME")
		l.runs("b")
	},
	"fewer pods would start": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 3, "low")
		l.runs("a")
		l.job("b", 3, "low")
		if change := l.offers(l.is("b", tasks.Pending, explain.Quota, ""), explain.FewerPods); change.Pods != 1 {
			l.t.Errorf("%d pods would start", change.Pods)
		}
		l.patch("job", "b", `{"spec":{"parallelism":1}}`)
		l.runs("b")
	},
	"a higher class would start": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 4, "low")
		l.runs("a")
		l.job("b", 2, "low")
		if change := l.offers(l.is("b", tasks.Pending, explain.Quota, ""), explain.HigherClass); change.Priority != 11 {
			l.t.Errorf("a class of %d would start it", change.Priority)
		}
		l.patch("job", "b", `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"`+l.name+`-high"}}}`)
		l.runs("b")
		d := l.is("a", tasks.Preempted, explain.Quota, "WaitingForQuota")
		last := d.Timeline[len(d.Timeline)-1]
		for _, e := range d.Timeline {
			if e.What == tasks.WasPreempted {
				last = e
			}
		}
		if d.Preemptions != 1 || last.By == nil || last.By.Name != "b" || last.Reason != "InClusterQueue" {
			l.t.Errorf("it was pre-empted %d times: %+v", d.Preemptions, d.Timeline)
		}
	},
	"exceeds the maximum": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 6, "low")
		d := l.is("a", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		if change := l.offers(d, explain.MoreQuota); change.To[0].To != 6 {
			l.t.Errorf("the quota would go to %+v", change.To)
		}
		l.queue("", 6, "0")
		l.runs("a")
	},
	"the borrowing limit is in the way": func(l *lab) {
		l.queue("", 2, "1")
		l.queue("-other", 4, "")
		l.job("a", 4, "low")
		d := l.is("a", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		if change := l.offers(d, explain.BorrowLimit); change.To[0].From != 1 || change.To[0].To != 2 {
			l.t.Errorf("the limit would go to %+v", change.To)
		}
		l.queue("", 2, "2")
		l.runs("a")
	},
	"borrowed, and taken back": func(l *lab) {
		l.queue("", 2, "")
		l.queue("-other", 2, "")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: NAME}, spec: {clusterQueue: NAME-other}}")
		l.job("a", 4, "high")
		l.runs("a")
		l.jobIn("other", "b", 2, "low", "")
		l.runs("b")
		d := l.is("a", tasks.Preempted, explain.Quota, "")
		for _, e := range d.Timeline {
			if e.What == tasks.WasPreempted && (e.By == nil || e.By.Name != "b" || e.Reason != "InCohortReclamation") {
				l.t.Errorf("it was pre-empted by %+v", e)
			}
		}
	},
	"no flavor has its nodes": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low", "nodeSelector: {lab: another}")
		l.is("a", tasks.Pending, explain.NoMatchingFlavor, "NoMatchingFlavor")
	},
	"a taint is not tolerated": func(l *lab) {
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: NAME}, spec: {nodeLabels: {lab: NAME}, nodeTaints: [{key: lab, value: x, effect: NoSchedule}]}}")
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.NoMatchingFlavor, "NoMatchingFlavor")
	},
	"a resource that no quota counts": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1, example.com/fpga: 1}}}]}}
`)
		if d := l.is("a", tasks.Pending, explain.Uncovered, ""); d.Verdict.Detail != "example.com/fpga" {
			l.t.Errorf("it is %q", d.Verdict.Detail)
		}
	},
	"its queue does not exist": func(l *lab) {
		l.queue("", 4, "")
		l.jobIn("nowhere", "a", 1, "low", "")
		l.is("a", tasks.Pending, explain.NoQueue, "Misconfigured")
	},
	"its queue leads nowhere": func(l *lab) {
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.NoClusterQueue, "")
		l.queue("", 4, "")
		l.runs("a")
	},
	"the cluster queue is on hold": func(l *lab) {
		l.queue("", 4, "", "stopPolicy: Hold")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.QueueHeld, "Suspended")
		l.queue("", 4, "", "stopPolicy: None")
		l.runs("a")
	},
	"the local queue is on hold": func(l *lab) {
		l.queue("", 4, "")
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"Hold"}}`)
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.QueueHeld, "Suspended")
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"None"}}`)
		l.runs("a")
	},
	"drained": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.queue("", 4, "", "stopPolicy: HoldAndDrain")
		if d := l.is("a", tasks.Pending, explain.QueueHeld, ""); d.Evictions != 1 || d.Preemptions != 0 {
			l.t.Errorf("it lost its quota %d times, %d by pre-emption", d.Evictions, d.Preemptions)
		}
		l.queue("", 4, "", "stopPolicy: None")
		l.runs("a")
	},
	"a flavor is missing": func(l *lab) {
		l.kubectl("delete", "resourceflavor", "NAME")
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.QueueInactive, "Suspended")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: NAME}, spec: {nodeLabels: {lab: NAME}}}")
		l.runs("a")
	},
	"the queue takes nothing from its namespace": func(l *lab) {
		l.queue("", 4, "", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: another}}")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.WrongNamespace, "Misconfigured")
	},
	"switched off, and on again": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.patchWorkload("a", `{"spec":{"active":false}}`)
		l.is("a", tasks.Paused, explain.Paused, "")
		l.patchWorkload("a", `{"spec":{"active":true}}`)
		l.runs("a")
	},
	"held back by an annotation": func(l *lab) {
		l.queue("", 4, "")
		l.jobIn("main", "a", 1, "low", "kueue.x-k8s.io/admission-gated-by: example.com/review")
		if d := l.is("a", tasks.Pending, explain.Gated, "AdmissionGated"); d.Verdict.Detail != "example.com/review" {
			l.t.Errorf("it is held back by %q", d.Verdict.Detail)
		}
	},
	"an admission check is not done": func(l *lab) {
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: NAME}, spec: {controllerName: example.com/check}}")
		l.kubectl("patch", "admissioncheck", "NAME", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":"2026-11-21T09:00:00Z"}]}}`)
		l.queue("", 4, "", "admissionChecksStrategy: {admissionChecks: [{name: NAME}]}")
		l.job("a", 1, "low")
		if d := l.is("a", tasks.Starting, explain.ChecksPending, ""); !strings.Contains(d.Verdict.Detail, l.name) {
			l.t.Errorf("it waits for %q", d.Verdict.Detail)
		}
	},
	"an elastic job wants more": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 2, "low", `kueue.x-k8s.io/elastic-job: "true"`)
		l.runs("a")
		l.patch("job", "a", `{"spec":{"parallelism":3}}`)
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail("a"); d.State != tasks.Running || d.Size.Now != 3 || d.Growing() {
				return fmt.Errorf("it is %s with %+v", d.State, d.Size)
			}
			return nil
		})
		l.patch("job", "a", `{"spec":{"parallelism":6}}`)
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail("a"); d.State != tasks.Running || d.Size.Now != 3 || d.Size.Wanted != 6 || !d.Growing() || d.Wants == "" {
				return fmt.Errorf("it is %s with %+v, and wants %q", d.State, d.Size, d.Wants)
			}
			return nil
		})
	},
	"a part of it runs": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 6, "low", `kueue.x-k8s.io/job-min-parallelism: "2"`)
		if d := l.runs("a"); d.Size.Now != 4 || d.Size.Wanted != 6 || !d.Growing() {
			l.t.Errorf("it has %+v", d.Size)
		}
	},
	"ends well": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1s}}
    spec: {restartPolicy: Never, tolerations: [{operator: Exists}], containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
		l.node()
		if d := l.is("a", tasks.Succeeded, "", ""); d.FinishedAt.IsZero() || d.Ran(time.Now()) > 20*time.Second || d.Held["nvidia.com/gpu"] != 0 {
			l.t.Errorf("it is %+v", d.Task)
		}
	},
}

// node adds one to the lab's flavor.
func (l *lab) node() {
	l.t.Helper()
	l.apply(`
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {lab: NAME, kubernetes.io/hostname: NAME}, annotations: {kwok.x-k8s.io/node: fake}}
`)
	l.kubectl("patch", "node", "NAME", "--subresource=status", "--type=merge", "-p", `{"status":{"allocatable":{"nvidia.com/gpu":"8","cpu":"64","memory":"64Gi","pods":"110"},"capacity":{"nvidia.com/gpu":"8","cpu":"64","memory":"64Gi","pods":"110"}}}`)
	l.t.Cleanup(func() { _, _ = l.c.TryKubectl("", "delete", "node", l.name, "--wait=false") })
}
