package queries_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"
)

// The preemption policies of a ClusterQueue.
const (
	byPriority = "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"
	threshold  = "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 9}}"
	noReclaim  = "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Never}"
	onlyLower  = "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: LowerPriority}"
)

// Borrowing and reclaim: the forecast for a task equals what Kueue then does.
func TestBorrowing(t *testing.T) {
	for name, situation := range borrowing {
		t.Run(name, func(t *testing.T) { situation(newLab(t)) })
	}
}

var borrowing = map[string]func(*lab){
	"preempts a borrowing workload of lower priority": func(l *lab) {
		l.queue("", 0, "", byPriority)
		l.borrowers(2, "low")
		l.beforehand(1, 90, explain.Preempting)
		l.job("a", 1, "high")
		l.runs("a")
		target := "b0"
		if l.detail(target).State == tasks.Running {
			target = "b1"
		}
		d := l.is(target, tasks.Preempted, explain.Quota, "WaitingForQuota")
		if e := preemption(d); e.Reason != "InCohortReclaimWhileBorrowing" || e.Preemptor == nil || e.Preemptor.Name != "a" {
			l.t.Errorf("the task was preempted by %+v", e)
		}
	},
	"does not preempt equal priority, and a higher priority class does": func(l *lab) {
		l.queue("", 0, "", byPriority)
		l.borrowers(2, "low")
		l.beforehand(1, 10, explain.Quota)
		l.job("a", 1, "low")
		change := l.offers(l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota"), explain.HigherPriorityClass)
		if change.Priority <= 10 || change.Priority > 90 || change.PriorityClass == "" {
			l.t.Errorf("got the change %+v", change)
		}
		l.patch("job", "a", `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"`+l.name+`-high"}}}`)
		l.runs("a")
	},
	"maxPriorityThreshold protects workloads above it": func(l *lab) {
		l.queue("", 0, "", threshold)
		l.borrowers(2, "low")
		l.beforehand(1, 90, explain.Quota)
		l.job("a", 1, "high")
		l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota")
	},
	"without borrowWithinCohort preempts nothing to borrow": func(l *lab) {
		l.queue("", 0, "")
		l.borrowers(2, "low")
		l.beforehand(1, 90, explain.Quota)
		l.job("a", 1, "high")
		l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota")
	},
	"reclaimWithinCohort Never": func(l *lab) {
		l.queue("", 1, "", noReclaim)
		l.borrowers(1, "low")
		l.jobIn("other", "b1", 1, "low", "")
		l.runs("b1")
		l.beforehand(1, 90, explain.Quota)
		l.job("a", 1, "high")
		l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota")
	},
	"reclaimWithinCohort LowerPriority": func(l *lab) {
		l.queue("", 1, "", onlyLower)
		l.borrowers(1, "high")
		l.jobIn("other", "b1", 1, "low", "")
		l.runs("b1")
		l.beforehand(1, 10, explain.Quota)
		l.job("a", 1, "low")
		l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota")
		l.beforehand(1, 90, explain.Preempting)
		l.job("c", 1, "high")
		l.runs("c")
		l.is("b1", tasks.Preempted, explain.Quota, "")
	},
	"above its quota, with workloads of lower priority in its queue": func(l *lab) {
		l.queue("", 1, "")
		l.queue("-idle", 1, "")
		l.job("low", 2, "low")
		l.runs("low")
		l.beforehand(2, 90, explain.Quota)
		l.job("a", 2, "high")
		l.is("a", tasks.Pending, explain.Quota, "WaitingForQuota") // Kueue 0.19 preempts nothing
		l.queue("", 1, "", byPriority)
		l.runs("a")
	},
	"resource groups": func(l *lab) {
		l.groups(3)
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {restartPolicy: Never, containers: [{name: train, image: example.com/train:1, resources: {requests: {cpu: 4}, limits: {nvidia.com/gpu: 1}}}]}
`)
		if d := l.is("a", tasks.Pending, explain.ExceedsMax, "ExceedsMaxQuota"); d.Verdict.Shortage.Resource != "cpu" {
			l.t.Errorf("got the shortage %+v, want CPUs", d.Verdict.Shortage)
		}
		l.groups(4)
		l.runs("a")
	},
}

// borrowers creates a queue without quota, which borrows the quota of a third one with
// n tasks of one GPU.
func (l *lab) borrowers(n int, class string) {
	l.t.Helper()
	l.queue("-other", 0, "")
	l.queue("-idle", n, "")
	l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: NAME}, spec: {clusterQueue: NAME-other}}")
	for i := range n {
		name := fmt.Sprintf("b%d", i)
		l.jobIn("other", name, 1, class, "")
		l.runs(name)
	}
}

// beforehand waits until the forecast of a task that is not submitted has a constraint:
// the console's caches follow the cluster.
func (l *lab) beforehand(pods, priority int32, constraint explain.Constraint) explain.Verdict {
	l.t.Helper()
	var h queries.Hypothesis
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		set := explain.PodSet{Name: "main", Count: pods, MinCount: pods, Requests: quota.Resources{"nvidia.com/gpu": 1}}
		h, err = l.tasks.WouldStart(ctx, localUser, queries.Proposal{Namespace: l.name, Queue: "main", Priority: priority, PodSets: []explain.PodSet{set}})
		if h.Verdict.Constraint != constraint {
			return errors.Join(err, fmt.Errorf("got the forecast %+v, want %s", h.Verdict, constraint))
		}
		return err
	})
	return h.Verdict
}

// groups applies a ClusterQueue with separate resource groups for GPUs and CPUs.
func (l *lab) groups(cpus int) {
	l.t.Helper()
	l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME-cpu}
spec: {nodeLabels: {lab: NAME}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: NAME, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
  - coveredResources: [cpu]
    flavors: [{name: NAME-cpu, resources: [{name: cpu, nominalQuota: %d}]}]
`, cpus))
}
