package queries_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// moreSituations are jobs without a Workload, pods without a node, and ways in which
// tasks end.
var moreSituations = map[string]func(*lab){
	"an elastic job shrinks": func(l *lab) {
		l.queue("", 4, "0")
		l.jobIn("main", "a", 3, "low", `kueue.x-k8s.io/elastic-job: "true"`)
		l.runs("a")
		l.patch("job", "a", `{"spec":{"parallelism":1}}`)
		l.until("a", func(d queries.Detail) bool {
			return d.State == tasks.Running && d.Size.Admitted == 1 && d.Size.Wanted == 1 && d.Usage["nvidia.com/gpu"] == 1
		})
	},
	"a guaranteed part, and increments that wait": func(l *lab) {
		l.queue("", 2, "0")
		l.apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: owner, namespace: NAME}
`)
		uid := l.c.Kubectl(l.t, "", "get", "configmap", "owner", "-n", l.name, "-o", "jsonpath={.metadata.uid}")
		for _, part := range []struct {
			name     string
			priority int
		}{{"guaranteed", 90}, {"more", 10}} {
			l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: %s, namespace: NAME, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: %s, controller: true}]}
spec:
  queueName: main
  priority: %d
  podSets: [{name: main, count: 2, template: {spec: {restartPolicy: Never, containers: [{name: train, image: none, resources: {requests: {nvidia.com/gpu: 1}}}]}}}]
`, part.name, uid, part.priority))
		}
		clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
			d, err := l.tasks.Detail(ctx, localUser, l.name, "configmap", "owner", "")
			if err != nil {
				return err
			}
			if d.State != tasks.Running && d.State != tasks.Starting || d.Size != (tasks.Size{Min: 2, Admitted: 2, Wanted: 4, Guaranteed: 2}) || !d.Growing() || len(d.Parts) != 2 {
				return fmt.Errorf("the task is %s with %+v", d.State, d.Size)
			}
			if v := d.Verdict; v == nil || v.Constraint != explain.Quota || v.Shortage.Missing() != 2 {
				return fmt.Errorf("got the verdict %+v for the pending part", v)
			}
			return nil
		})
	},
	"its priority class does not exist": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "bogus")
		if d := l.is("a", tasks.Pending, explain.NoPriorityClass, index.NoWorkload); d.Verdict.Detail != l.name+"-bogus" || !strings.Contains(strings.Join(d.Verdict.PriorityClasses, " "), l.name+"-high") {
			l.t.Errorf("got the verdict %+v", d.Verdict)
		}
		l.patch("job", "a", `{"metadata":{"labels":{"kueue.x-k8s.io/priority-class":"`+l.name+`-high"}}}`)
		l.runs("a")
	},
	"a job without a queue name runs outside Kueue": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME}
spec:
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {restartPolicy: Never, nodeSelector: {lab: NAME}, containers: [{name: train, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]}
`)
		l.kubectl("label", "namespace", "NAME", "kuota.dev/governed=true")
		if d := l.is("a", tasks.Running, explain.NoQueueName, index.NoWorkload); d.Usage["nvidia.com/gpu"] != 0 || d.Requests["nvidia.com/gpu"] != 2 {
			l.t.Errorf("the task uses %v and requests %v", d.Usage, d.Requests)
		}
	},
	"the ResourceQuota of its namespace refuses a pod": func(l *lab) {
		l.queue("", 4, "")
		l.ceiling(1)
		l.job("a", 2, "low")
		if d := l.is("a", tasks.Running, explain.ResourceQuotaReached, ""); d.Verdict.ResourceQuota.Hard != 1 || d.Verdict.ResourceQuota.Used != 1 || d.Verdict.ResourceQuota.Requests != 1 {
			l.t.Errorf("got the ResourceQuota %+v", d.Verdict.ResourceQuota)
		}
		l.ceiling(2)
		l.kubectl("delete", "job", "a", "-n", "NAME")
		l.job("a", 2, "low")
		l.runs("a")
	},
	"no node is ready": func(l *lab) {
		l.deleteNode("")
		l.queue("", 4, "")
		l.job("a", 1, "low")
		if d := l.is("a", tasks.Starting, explain.NoNodes, ""); d.PodCount.Unscheduled != 1 {
			l.t.Errorf("got the pods %+v", d.PodCount)
		}
		l.node("", 8)
		l.runs("a")
	},
	"no node is large enough": func(l *lab) {
		l.queue("", 32, "")
		l.jobOf("main", "a", 1, 16, "low", "")
		if d := l.is("a", tasks.Starting, explain.TooSmall, ""); d.Verdict.Fit.Largest != 8 || d.Verdict.Fit.Requests["nvidia.com/gpu"] != 16 {
			l.t.Errorf("got the fit %+v", d.Verdict.Fit)
		}
		l.node("-large", 16)
		l.runs("a")
	},
	"it waits for quota, and no node is large enough": func(l *lab) {
		l.queue("", 17, "0")
		l.job("a", 2, "low")
		l.runs("a")
		l.jobOf("main", "b", 1, 16, "low", "")
		if d := l.is("b", tasks.Pending, explain.Quota, ""); d.Verdict.Fit == nil || d.Verdict.Fit.Largest != 8 {
			l.t.Errorf("got the fit %+v", d.Verdict.Fit)
		}
	},
	"enough GPUs are free, but not on one node": func(l *lab) {
		l.node("-second", 8)
		l.queue("", 16, "")
		l.jobOf("main", "a", 2, 5, "low", "")
		l.until("a", func(d queries.Detail) bool { return d.PodCount.Total == 2 && d.PodCount.Unscheduled == 0 })
		l.jobOf("main", "b", 1, 6, "low", "")
		if d := l.is("b", tasks.Starting, explain.Fragmented, ""); d.Verdict.Fit.TotalFree != 6 || d.Verdict.Fit.LargestFree != 3 {
			l.t.Errorf("got the fit %+v", d.Verdict.Fit)
		}
		l.kubectl("delete", "job", "a", "-n", "NAME")
		l.runs("b")
	},
	"pods outside Kueue fill the nodes": func(l *lab) {
		l.queue("", 8, "")
		l.apply(`
apiVersion: v1
kind: Pod
metadata: {name: outside, namespace: NAME}
spec: {nodeSelector: {lab: NAME}, terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]}
`)
		l.kubectl("wait", "--for=condition=PodScheduled", "pod/outside", "-n", "NAME", "--timeout=180s")
		l.job("a", 1, "low")
		if d := l.is("a", tasks.Starting, explain.NodesFull, ""); d.Verdict.Fit.LargestFree != 0 || d.Verdict.Fit.Ready != 1 {
			l.t.Errorf("got the fit %+v", d.Verdict.Fit)
		}
		l.kubectl("delete", "pod", "outside", "-n", "NAME")
		l.runs("a")
	},
	"an admission check retries later": func(l *lab) {
		l.check()
		l.job("a", 1, "low")
		l.is("a", tasks.Starting, explain.ChecksPending, "")
		l.answerCheck("a", "Retry", `,"requeueAfterSeconds":12`)
		// Kueue (0.19.2) keeps its quota until that time, and requeues it then.
		l.until("a", func(d queries.Detail) bool {
			return d.State == tasks.Starting && d.Verdict != nil && strings.Contains(d.Verdict.Detail, "Retry, not now") && !d.RetryAt.IsZero()
		})
		l.until("a", func(d queries.Detail) bool {
			return d.State == tasks.Starting && d.Evictions == 1 && d.Preemptions == 0
		})
	},
	"an admission check rejects it": func(l *lab) {
		l.check()
		l.job("a", 1, "low")
		l.is("a", tasks.Starting, explain.ChecksPending, "")
		l.answerCheck("a", "Rejected", "")
		l.is("a", tasks.Stopped, explain.Deactivated, "")
	},
	"it exceeds its maximum execution time": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/max-exec-time-seconds: "1"}}
spec:
  suspend: true
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: train, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
		if d := l.is("a", tasks.Stopped, explain.TimedOut, ""); d.TimeLimit != time.Second {
			l.t.Errorf("got a time limit of %s, want 1s", d.TimeLimit)
		}
	},
	"it fails": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.patch("job", "a", `{"spec":{"activeDeadlineSeconds":1}}`)
		if d := l.is("a", tasks.Failed, "", ""); d.FinishedAt.IsZero() || len(d.Usage) != 0 {
			l.t.Errorf("got the task %+v", d.Task)
		}
	},
	"preempted by a workload that borrows": func(l *lab) {
		l.queue("", 2, "", "preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}")
		l.queue("-other", 2, "")
		l.queue("-idle", 4, "")
		l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: NAME}, spec: {clusterQueue: NAME-other}}")
		l.jobIn("other", "a", 8, "low", "")
		l.runs("a")
		l.job("b", 4, "high")
		l.runs("b")
		d := l.is("a", tasks.Preempted, explain.Quota, "")
		if why := preemption(d); why.Reason != "InCohortReclaimWhileBorrowing" || why.Preemptor == nil || why.Preemptor.Name != "b" {
			l.t.Errorf("the task was preempted by %+v", why)
		}
	},
	"its local queue is drained": func(l *lab) {
		l.queue("", 4, "")
		l.job("a", 1, "low")
		l.runs("a")
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"HoldAndDrain"}}`)
		if d := l.is("a", tasks.Pending, explain.QueueStopped, ""); d.Evictions != 1 {
			l.t.Errorf("the task was evicted %d times, want 1", d.Evictions)
		}
		l.patch("localqueue", "main", `{"spec":{"stopPolicy":"None"}}`)
		l.runs("a")
	},
}
