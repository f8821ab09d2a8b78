package queries_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/governance/tasks/timeline"
)

// Each situation runs on the real Kueue: the task has the state and the constraint,
// and a proposed change starts it.
func TestSituations(t *testing.T) {
	for _, table := range []map[string]func(*lab){situations, moreSituations} {
		for name, situation := range table {
			t.Run(name, func(t *testing.T) { situation(newLab(t)) })
		}
	}
}

var situations = map[string]func(*lab){
	"runs": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 2, "low")
		if d := l.runs("a"); d.Size.Admitted != 2 || d.Usage["nvidia.com/gpu"] != 2 || len(d.Pools) != 1 || d.Waited(time.Now()) > 10*time.Second {
			l.t.Errorf("got the task %+v", d.Task)
		}
	},
	"waits for quota that a task of its queue uses": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 3, "low")
		l.runs("a")
		l.job("b", 3, "low")
		d := l.is("b", tasks.Pending, explain.Quota, "WaitingForQuota")
		if d.Verdict.Shortage.Missing() != 2 || d.Position != 1 || d.QueueLength != 1 {
			l.t.Errorf("got the shortage %+v at position %d of %d", d.Verdict.Shortage, d.Position, d.QueueLength)
		}
		if change := l.offers(d, explain.TasksEnd); len(change.Tasks) != 1 || change.Tasks[0].Name != "a" {
			l.t.Errorf("got %+v to end, want a", change.Tasks)
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
			l.t.Errorf("got %d pods, want 1", change.Pods)
		}
		l.patch("job", "b", `{"spec":{"parallelism":1}}`)
		l.runs("b")
	},
	"a higher priority class would start": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 4, "low")
		l.runs("a")
		l.job("b", 2, "low")
		if change := l.offers(l.is("b", tasks.Pending, explain.Quota, ""), explain.HigherPriorityClass); change.Priority <= 10 || change.Priority > 90 {
			l.t.Errorf("got the priority class %s of %d", change.PriorityClass, change.Priority)
		}
		l.patch("job", "b", `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"`+l.name+`-high"}}}`)
		l.runs("b")
		d := l.is("a", tasks.Preempted, explain.Quota, "WaitingForQuota")
		last := d.Timeline[len(d.Timeline)-1]
		for _, e := range d.Timeline {
			if e.Type == timeline.Preempted {
				last = e
			}
		}
		if d.Preemptions != 1 || last.Preemptor == nil || last.Preemptor.Name != "b" || last.Reason != "InClusterQueue" {
			l.t.Errorf("the task was preempted %d times, want 1: %+v", d.Preemptions, d.Timeline)
		}
	},
	"exceeds the maximum": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 6, "low")
		d := l.is("a", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		if change := l.offers(d, explain.RaiseNominalQuota); change.Quotas[0].To != 6 {
			l.t.Errorf("got the quotas %+v, want 6", change.Quotas)
		}
		l.queue("", 6, "0")
		l.runs("a")
	},
	"exceeds the borrowing limit": func(l *lab) {
		l.queue("", 2, "1")
		l.queue("-other", 4, "")
		l.job("a", 4, "low")
		d := l.is("a", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		if change := l.offers(d, explain.RaiseBorrowingLimit); change.Quotas[0].From != 1 || change.Quotas[0].To != 2 {
			l.t.Errorf("got the borrowing limits %+v, want 1 to 2", change.Quotas)
		}
		l.queue("", 2, "2")
		l.runs("a")
	},
	"borrowed quota is reclaimed": func(l *lab) {
		l.queue("", 2, "")
		l.queue("-other", 2, "")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: NAME}, spec: {clusterQueue: NAME-other}}")
		l.job("a", 4, "high")
		l.runs("a")
		l.jobIn("other", "b", 2, "low", "")
		l.runs("b")
		d := l.is("a", tasks.Preempted, explain.Quota, "")
		for _, e := range d.Timeline {
			if e.Type == timeline.Preempted && (e.Preemptor == nil || e.Preemptor.Name != "b" || e.Reason != "InCohortReclamation") {
				l.t.Errorf("the task was preempted by %+v", e)
			}
		}
	},
	"its namespace lacks the label that the ClusterQueue selects": func(l *lab) {
		l.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {matchLabels: {kueue-managed: "true"}}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
`)
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.WrongNamespace, "Misconfigured")
		l.kubectl("label", "namespace", "NAME", "kueue-managed=true")
		l.runs("a")
	},
	"waits for quota of pods": func(l *lab) {
		l.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, pods]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: 8}, {name: pods, nominalQuota: 2}]}]
`)
		l.job("a", 2, "low")
		l.runs("a")
		l.job("b", 1, "low")
		if d := l.is("b", tasks.Pending, explain.Quota, "WaitingForQuota"); d.Verdict.Shortage.Resource != "pods" || d.Verdict.Shortage.Missing() != 1 {
			l.t.Errorf("got the shortage %+v, want one pod", d.Verdict.Shortage)
		}
		l.job("c", 3, "low")
		l.is("c", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota")
		l.kubectl("delete", "job", "a", "-n", "NAME")
		l.runs("b")
	},
	"no flavor matches its node selector": func(l *lab) {
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
	"a resource that no quota covers": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1, example.com/fpga: 1}}}]}}
`)
		if d := l.is("a", tasks.Pending, explain.UncoveredResource, ""); d.Verdict.Detail != "example.com/fpga" {
			l.t.Errorf("got the resource %q", d.Verdict.Detail)
		}
	},
	"its queue does not exist": func(l *lab) {
		l.queue("", 4, "")
		l.jobIn("nowhere", "a", 1, "low", "")
		d := l.is("a", tasks.Pending, explain.NoQueue, "Misconfigured")
		if !slices.Equal(d.Verdict.LocalQueues, []string{"main"}) || d.Position != 0 {
			l.t.Errorf("got the queues %q and position %d, want main and none", d.Verdict.LocalQueues, d.Position)
		}
	},
	"its LocalQueue has no ClusterQueue": func(l *lab) {
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.NoClusterQueue, "")
		l.queue("", 4, "")
		l.runs("a")
	},
	"the ClusterQueue is on hold": func(l *lab) {
		l.queue("", 4, "", "stopPolicy: Hold")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.QueueStopped, "Suspended")
		l.queue("", 4, "", "stopPolicy: None")
		l.runs("a")
	},
	"the ClusterQueue is put on hold while the task waits": func(l *lab) {
		l.queue("", 4, "0")
		l.job("a", 4, "low")
		l.runs("a")
		l.job("b", 1, "low")
		l.is("b", tasks.Pending, explain.Quota, "WaitingForQuota")
		l.queue("", 4, "0", "stopPolicy: Hold")
		if d := l.is("b", tasks.Pending, explain.QueueStopped, ""); d.Agreement == explain.Agrees {
			l.t.Logf("Kueue's reason is now %s", d.Reason) // Kueue 0.19.2 keeps the old reason
		}
	},
	"the LocalQueue is on hold": func(l *lab) {
		l.queue("", 4, "")
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"Hold"}}`)
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.QueueStopped, "Suspended")
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"None"}}`)
		l.runs("a")
	},
	"drained": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.queue("", 4, "", "stopPolicy: HoldAndDrain")
		if d := l.is("a", tasks.Pending, explain.QueueStopped, ""); d.Evictions != 1 || d.Preemptions != 0 {
			l.t.Errorf("the task was evicted %d times, %d of them by preemption", d.Evictions, d.Preemptions)
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
	"the ClusterQueue does not select its namespace": func(l *lab) {
		l.queue("", 4, "", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: another}}")
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.WrongNamespace, "Misconfigured")
	},
	"deactivated, and activated again": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.patchWorkload("a", `{"spec":{"active":false}}`)
		l.is("a", tasks.Stopped, explain.Deactivated, "")
		l.patchWorkload("a", `{"spec":{"active":true}}`)
		l.runs("a")
	},
	"gated by an annotation": func(l *lab) {
		l.queue("", 4, "")
		l.jobIn("main", "a", 1, "low", "kueue.x-k8s.io/admission-gated-by: example.com/review")
		if d := l.is("a", tasks.Pending, explain.Gated, "AdmissionGated"); d.Verdict.Detail != "example.com/review" {
			l.t.Errorf("the task is gated by %q", d.Verdict.Detail)
		}
	},
	"an admission check is pending": func(l *lab) {
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: NAME}, spec: {controllerName: example.com/check}}")
		l.kubectl("patch", "admissioncheck", "NAME", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[{"type":"Active","status":"True","reason":"Active","message":"","lastTransitionTime":"2026-11-21T09:00:00Z"}]}}`)
		l.queue("", 4, "", "admissionChecksStrategy: {admissionChecks: [{name: NAME}]}")
		l.job("a", 1, "low")
		if d := l.is("a", tasks.Starting, explain.ChecksPending, ""); !strings.Contains(d.Verdict.Detail, l.name) {
			l.t.Errorf("the task waits for %q", d.Verdict.Detail)
		}
	},
	"an elastic job grows": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 2, "low", `kueue.x-k8s.io/elastic-job: "true"`)
		l.runs("a")
		l.patch("job", "a", `{"spec":{"parallelism":3}}`)
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail("a"); d.State != tasks.Running || d.Size.Admitted != 3 || d.Growing() {
				return fmt.Errorf("the task is %s with %+v", d.State, d.Size)
			}
			return nil
		})
		l.patch("job", "a", `{"spec":{"parallelism":6}}`)
		clustertest.Eventually(l.t, soon, func(context.Context) error {
			if d := l.detail("a"); d.State != tasks.Running || d.Size.Admitted != 3 || d.Size.Wanted != 6 || !d.Growing() || d.PendingMessage == "" {
				return fmt.Errorf("the task is %s with %+v, and waits for %q", d.State, d.Size, d.PendingMessage)
			}
			return nil
		})
		d := l.is("a", tasks.Running, explain.ExceedsMax, "") // its admitted pods count as available
		if s := d.Verdict.Shortage; s.Needed != 6 || s.PotentialAvailable != 4 || len(s.InQueue) != 0 || l.offers(d, explain.FewerPods).Pods != 4 || !d.Elastic() {
			l.t.Errorf("got the shortage %+v for the larger slice", s)
		}
		l.queue("", 6, "0")
		l.until("a", func(d queries.Detail) bool { return d.Size.Admitted == 6 && d.Verdict == nil })
	},
	"partially admitted": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 6, "low", `kueue.x-k8s.io/job-min-parallelism: "2"`)
		if d := l.runs("a"); d.Size.Admitted != 4 || d.Size.Wanted != 6 || !d.Growing() {
			l.t.Errorf("got the size %+v", d.Size)
		}
	},
	"succeeds": func(l *lab) {
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
		if d := l.is("a", tasks.Succeeded, "", ""); d.FinishedAt.IsZero() || d.Ran(time.Now()) > time.Minute || d.Usage["nvidia.com/gpu"] != 0 {
			l.t.Errorf("got the task %+v", d.Task)
		}
	},
}
