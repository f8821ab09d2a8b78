package queries_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// otherWords maps Kueue's reasons with the feature gate UnadmittedWorkloadsObservability
// to those without it.
var otherWords = map[string]string{
	"WaitingForQuota":  "Pending",
	"ExceedsMaxQuota":  "Pending",
	"NoMatchingFlavor": "Pending",
	"Misconfigured":    "Inadmissible",
	"Suspended":        "Inadmissible",
	"AdmissionGated":   "AdmissionGated",
	index.NoWorkload:   index.NoWorkload,
}

// configured runs situations under another configuration of Kueue.
func configured(t *testing.T, edit *strings.Replacer, tables ...map[string]func(*lab)) {
	t.Helper()
	c := clustertest.Get(t)
	var before string
	c.Configure(t, func(text string) string {
		before = text
		return edit.Replace(text)
	})
	defer c.Configure(t, func(string) string { return before })
	t.Run("all", func(t *testing.T) {
		for _, table := range tables {
			for name, situation := range table {
				t.Run(name, func(t *testing.T) { situation(newLab(t)) })
			}
		}
	})
}

// The situations are the same without Kueue's detailed reasons, and for kinds that
// consist of pods.
func TestSituationsWithOtherReasons(t *testing.T) {
	names := []string{"exceeds the maximum", "its queue does not exist", "no flavor matches its node selector", "gated by an annotation"}
	if clustertest.Verify {
		names = slices.Collect(maps.Keys(situations))
	}
	withOtherReasons := map[string]func(*lab){}
	for _, name := range names {
		situation := situations[name]
		withOtherReasons[name] = func(l *lab) {
			l.other = true
			situation(l)
		}
	}
	configured(t, strings.NewReplacer(
		"UnadmittedWorkloadsObservability: true", "UnadmittedWorkloadsObservability: false",
		"UnadmittedWorkloadsExplicitStatus: true", "UnadmittedWorkloadsExplicitStatus: false",
		"  - batch/job\n", "  - batch/job\n  - pod\n  - deployment\n  - statefulset\n",
	), withOtherReasons, kinds)
}

// Fair sharing and the limit for pods to be ready concern different tasks, so that one
// restart of Kueue is enough.
func TestSituationsWithFairSharingAndWaitForPodsReady(t *testing.T) {
	configured(t, strings.NewReplacer(
		"DisableWaitForPodsReady: true", "DisableWaitForPodsReady: false",
		"integrations:\n", "fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}\n"+
			"waitForPodsReady: {timeout: 30s, requeuingStrategy: {backoffBaseSeconds: 60}}\nintegrations:\n",
	), map[string]func(*lab){
		"preempted for a fair share": func(l *lab) {
			l.queue("", 0, "")
			l.queue("-other", 0, "")
			l.queue("-idle", 4, "")
			l.apply("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: NAME}, spec: {clusterQueue: NAME-other}}")
			for i := range 4 {
				l.job(fmt.Sprintf("a%d", i), 1, "low")
				l.runs(fmt.Sprintf("a%d", i))
			}
			for i := range 2 {
				l.jobIn("other", fmt.Sprintf("b%d", i), 1, "low", "")
				l.runs(fmt.Sprintf("b%d", i))
			}
			lost := 0
			for i := range 4 {
				if d := l.detail(fmt.Sprintf("a%d", i)); d.Preemptions > 0 {
					lost++
					if why := preemption(d); why.Reason != "InCohortFairSharing" || why.Preemptor == nil || !strings.HasPrefix(why.Preemptor.Name, "b") {
						l.t.Errorf("the task was preempted by %+v", why)
					}
				}
			}
			if lost != 2 {
				l.t.Errorf("%d tasks were preempted, want 2", lost)
			}
		},
		"its pods are not ready in time": func(l *lab) {
			l.deleteNode("")
			l.queue("", 4, "")
			l.job("a", 1, "low")
			l.is("a", tasks.Starting, explain.NoNodes, "WaitForStart")
			if d := l.is("a", tasks.Pending, explain.BackingOff, ""); d.RetryAt.Before(time.Now()) || d.Evictions != 1 || d.Preemptions != 0 {
				l.t.Errorf("the task is requeued at %s after %d evictions", d.RetryAt, d.Evictions)
			}
		},
	})
}

// kinds are situations of tasks that are not Jobs.
var kinds = map[string]func(*lab){
	"a pod": func(l *lab) {
		l.queue("", 4, "")
		l.apply(podOf("a", "", ""))
		if d := l.ofKind("pod", "a", tasks.Running); d.Size.Admitted != 1 || d.PodCount.Total != 1 {
			l.t.Errorf("got the size %+v and pods %+v", d.Size, d.PodCount)
		}
	},
	"a group of pods": func(l *lab) {
		l.queue("", 4, "")
		group := `kueue.x-k8s.io/pod-group-name: pair, `
		l.apply(podOf("left", group, `kueue.x-k8s.io/pod-group-total-count: "2"`))
		if d := l.ofKind("podgroup", "pair", tasks.Pending); !d.NoWorkload || d.Verdict.Constraint != explain.NoWorkload {
			l.t.Errorf("an incomplete group has the verdict %+v", d.Verdict)
		}
		l.apply(podOf("right", group, `kueue.x-k8s.io/pod-group-total-count: "2"`))
		if d := l.ofKind("podgroup", "pair", tasks.Running); d.Size.Admitted != 2 || d.PodCount.Total != 2 || d.NoWorkload {
			l.t.Errorf("got the size %+v and pods %+v", d.Size, d.PodCount)
		}
	},
	"a Deployment": func(l *lab) {
		l.queue("", 3, "")
		l.apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: serve, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}, spec: {replicas: 5, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`)
		serves := func(admitted, wanted int64, constraint explain.Constraint) {
			l.t.Helper()
			clustertest.Eventually(l.t, soon, func(ctx context.Context) error {
				d, err := l.tasks.Detail(ctx, localUser, l.name, "deployment", "serve", "")
				if err != nil {
					return err
				}
				list, err := l.tasks.List(ctx, localUser, index.Query{Text: l.name}, nil)
				if err != nil {
					return err
				}
				has, all := d.Replicas()
				var why explain.Constraint
				if d.Verdict != nil {
					why = d.Verdict.Constraint
				}
				if d.State != tasks.Running || has != admitted || all != wanted || why != constraint || d.PodCount.Total != int(wanted) || list.Total != 1 {
					return fmt.Errorf("%s with %d of %d replicas (%+v), %d pods, and %d tasks", d.State, has, all, d.Verdict, d.PodCount.Total, list.Total)
				}
				return nil
			})
		}
		serves(3, 5, explain.Quota)
		l.kubectl("scale", "deployment", "serve", "-n", "NAME", "--replicas=3")
		serves(3, 3, "")
		l.kubectl("scale", "deployment", "serve", "-n", "NAME", "--replicas=0")
		l.ofKind("deployment", "serve", tasks.Stopped)
	},
	"a StatefulSet": func(l *lab) {
		l.queue("", 4, "")
		l.apply(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store, namespace: NAME, labels: {kueue.x-k8s.io/queue-name: main}}, spec: {replicas: 2, serviceName: store, podManagementPolicy: Parallel, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}`)
		if d := l.ofKind("statefulset", "store", tasks.Running); d.Size.Admitted != 2 || d.PodCount.Total != 2 {
			l.t.Errorf("got the size %+v and pods %+v", d.Size, d.PodCount)
		}
	},
	"kinds from the owner of a Workload": func(l *lab) {
		l.queue("", 8, "")
		for _, kind := range []struct{ api, name string }{
			{"jobset.x-k8s.io/v1alpha2", "JobSet"}, {"kubeflow.org/v1", "PyTorchJob"}, {"kubeflow.org/v2beta1", "MPIJob"}, {"ray.io/v1", "RayJob"}, {"ray.io/v1", "RayCluster"},
			{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"}, {"trainer.kubeflow.org/v1alpha1", "TrainJob"}, {"example.com/v1", "Experiment"},
		} {
			l.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: %s-a, namespace: NAME, ownerReferences: [{apiVersion: %s, kind: %s, name: a, uid: "%[1]s-uid", controller: true}]}
spec:
  queueName: main
  priority: 10
  podSets: [{name: main, count: 1, template: {spec: {restartPolicy: Never, containers: [{name: train, image: none, resources: {requests: {nvidia.com/gpu: 1}}}]}}}]
`, strings.ToLower(kind.name), kind.api, kind.name))
			if d := l.ofKind(strings.ToLower(kind.name), "a", tasks.Running); d.Kind != kind.name {
				l.t.Errorf("a %s has the kind %s", kind.name, d.Kind)
			}
		}
	},
}

func podOf(name, labels, annotations string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: NAME, labels: {%s kueue.x-k8s.io/queue-name: main}, annotations: {%s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, name, labels, annotations)
}

// ofKind waits until a task of a kind is in a state.
func (l *lab) ofKind(kind, name string, state tasks.State) (d queries.Detail) {
	l.t.Helper()
	clustertest.Eventually(l.t, soon, func(ctx context.Context) (err error) {
		if d, err = l.tasks.Detail(ctx, localUser, l.name, kind, name, ""); err != nil {
			return err
		}
		if d.State != state || state == tasks.Running && d.PodCount.Total < int(d.Size.Admitted) && strings.Contains("pod podgroup statefulset", kind) {
			return fmt.Errorf("the task is %s with %+v and %+v", d.State, d.Size, d.PodCount)
		}
		return nil
	})
	return d
}
