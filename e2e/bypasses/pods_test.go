package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

func podOf(name, metadata, spec string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: NAMESPACE, %s}, spec: {%s terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}}`, name, metadata, spec)
}

// TestPodIntegration checks that with Kueue's pod integration pods, pod groups and
// Deployments with a queue are accepted, and that only Kueue can start them.
func TestPodIntegration(t *testing.T) {
	ns := newNamespace(t)
	var before string
	ns.Configure(t, func(text string) string {
		before = text
		return strings.Replace(text, "  - batch/job\n", "  - batch/job\n  - pod\n  - deployment\n  - statefulset\n", 1)
	})
	defer ns.Configure(t, func(string) string { return before })
	ns.waitForPolicy(t, "pod", "deployment", "statefulset")
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // the API server reads the integrations a moment later
		if out, err := ns.TryKubectl(ns.fill(podOf("single", queued, ``)), "create", "--dry-run=server", "-f", "-"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})

	ns.checkServices(t)

	ns.accepts(t, podOf("single", queued, ``))
	grouped := func(name string) string {
		return podOf(name, `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/pod-group-name: pair, test: pair}, annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}`, ``)
	}
	ns.accepts(t, grouped("left"))
	ns.accepts(t, grouped("right"))
	ns.running(t, "kueue.x-k8s.io/priority-class=training-priority", 1)
	ns.running(t, "test=pair", 2)
	ns.accepts(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: serve, namespace: NAMESPACE, `+queued+`}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none}]}}}}`)
	ns.running(t, "a=b", 1)
	ns.accepts(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: set, namespace: NAMESPACE, `+queued+`}, spec: {serviceName: set, selector: {matchLabels: {c: d}}, template: {metadata: {labels: {c: d}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none}]}}}}`)
	ns.running(t, "c=d", 1)

	ns.accepts(t, jobOf("real", queued, ``, ``))
	uid := ns.Kubectl(t, "", "get", "job", "real", "-n", ns.name, "-o", "jsonpath={.metadata.uid}")
	partOfReal := `ownerReferences: [{apiVersion: batch/v1, kind: Job, name: real, controller: true, uid: ` + uid + `}]`
	for name, tc := range map[string]struct{ manifest, want string }{
		"no queue":               {podOf("a", ``, ``), "a queue is missing"},
		"an unknown class":       {podOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: bogus}`, ``), "unknown priority class bogus"},
		"a priority":             {podOf("a", queued, `priorityClassName: system-cluster-critical,`), "priorityClassName"},
		"a forged owner":         {podOf("a", queued+`, `+partOfReal, ``), "Kueue does not manage this pod"},
		"a Deployment, no queue": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NAMESPACE}, spec: {selector: {matchLabels: {e: f}}, template: {metadata: {labels: {e: f}}, spec: {containers: [{name: main, image: none}]}}}}`, "Deployment: a queue is missing"},
	} {
		t.Run(name, func(t *testing.T) { ns.rejects(t, tc.manifest, tc.want) })
	}

	// Owners that the user who creates a pod sets. The pod requests more than the team has,
	// so that it never runs with quota.
	owner := func(apiVersion, kind, name, uid string) string {
		return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", apiVersion, kind, name, uid)
	}
	uidOf := func(resource, name string) string {
		return ns.Kubectl(t, "", "get", resource, name, "-n", ns.name, "-o", "jsonpath={.metadata.uid}")
	}
	replicaSet := strings.TrimPrefix(strings.TrimSpace(ns.Kubectl(t, "", "get", "replicasets", "-n", ns.name, "-o", "name")), "replicaset.apps/")
	const madeUp = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
	owners := map[string]string{
		"a pod":                            owner("v1", "Pod", "single", uidOf("pod", "single")),
		"a pod, with a made-up uid":        owner("v1", "Pod", "single", madeUp),
		"no pod":                           owner("v1", "Pod", "none", madeUp),
		"a Job, with a made-up uid":        owner("batch/v1", "Job", "real", madeUp),
		"no Job":                           owner("batch/v1", "Job", "none", madeUp),
		"a Deployment":                     owner("apps/v1", "Deployment", "serve", uidOf("deployment", "serve")),
		"a ReplicaSet":                     owner("apps/v1", "ReplicaSet", replicaSet, uidOf("replicaset", replicaSet)),
		"a ReplicaSet, with a made-up uid": owner("apps/v1", "ReplicaSet", replicaSet, madeUp),
		"a StatefulSet":                    owner("apps/v1", "StatefulSet", "set", uidOf("statefulset", "set")),
		"a kind that Kueue does not know":  owner("example.com/v1", "Thing", "x", madeUp),
	}
	pods := map[string]string{}
	for name, forged := range owners {
		for _, annotations := range []string{"", "kueue.x-k8s.io/pod-suspending-parent: statefulset", "kueue.x-k8s.io/pod-suspending-parent: deployment"} {
			pod := fmt.Sprintf("forged-%d", len(pods))
			labels := "labels: {kueue.x-k8s.io/queue-name: QUEUE, test: forged}, annotations: {" + annotations + "}, "
			out, err := ns.TryKubectl(ns.fill(strings.Replace(podOf(pod, labels+forged, ""), "nvidia.com/gpu: 1", "nvidia.com/gpu: 8", 1)), "create", "-f", "-")
			if pods[pod] = name + " " + annotations; err != nil {
				t.Logf("%s: rejected: %s", pods[pod], out)
			}
		}
	}
	for range 40 {
		out := ns.Kubectl(t, "", "get", "pods", "-n", ns.name, "-l", "test=forged", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec.schedulingGates[*].name}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			if name, gates, _ := strings.Cut(strings.TrimSpace(line), " "); !strings.Contains(gates, "kueue.x-k8s.io/admission") {
				t.Fatalf("a pod of %s can start: its gates are %q", pods[name], gates)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}

	// Only Kueue can remove the scheduling gate of a pending pod.
	ns.accepts(t, strings.Replace(podOf("big", queued, ``), "nvidia.com/gpu: 1", "nvidia.com/gpu: 8", 1))
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "patch", "pod", "big", "-n", ns.name, "--type=merge", "-p", `{"spec": {"schedulingGates": null}}`)
		if err == nil || !strings.Contains(out, "only Kueue can start this pod") {
			return fmt.Errorf("remove the scheduling gate: got %s, want a rejection", out)
		}
		return nil
	})

	// Only members of a share use its queue: neither does a pod template name it, nor a
	// changed label move a pod or a service there.
	closed := ns.name + "-share-closed"
	ns.Kubectl(t, "", "patch", "computeallocation", ns.team, "--type=merge", "-p", `{"spec": {"shares": [{"name": "closed", "weight": 1, "members": [{"kind": "User", "name": "grace@example.com"}]}]}}`)
	serves := func(kind, name, metadata, template string) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: %s, namespace: NAMESPACE, %s}, spec: {selector: {matchLabels: {a: %[2]s}}, template: {metadata: {labels: {a: %[2]s%[4]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`, kind, name, metadata, template)
	}
	const refused = "only the members of its share can use queue"
	inShare := "labels: {kueue.x-k8s.io/queue-name: " + closed + "}"
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // the API server reads the namespace a moment later
		out, err := ns.TryKubectl(ns.fill(podOf("a", inShare, ``)), "create", "-f", "-", "--dry-run=server")
		if err == nil || !strings.Contains(out, refused) {
			return fmt.Errorf("got %s, want a rejection", out)
		}
		return nil
	})
	ns.rejects(t, serves("Deployment", "a", inShare, ""), refused)
	ns.rejects(t, serves("StatefulSet", "a", inShare, ""), refused)
	ns.accepts(t, serves("Deployment", "waits", queued, ""))
	ns.accepts(t, serves("Deployment", "named", queued, ", kueue.x-k8s.io/queue-name: "+closed))
	for _, object := range []string{"pod/big", "deployment/waits", "deployment/named"} {
		if out, err := ns.TryKubectl("", "label", object, "-n", ns.name, "--overwrite", "kueue.x-k8s.io/queue-name="+closed); err == nil || !strings.Contains(out, refused) {
			t.Errorf("label %s: got %s, want a rejection", object, out)
		}
	}
	out, err := ns.TryKubectl("", "patch", "deployment", "waits", "-n", ns.name, "--type=merge", "-p", `{"spec": {"template": {"metadata": {"labels": {"test": "changed", "kueue.x-k8s.io/queue-name": "`+closed+`"}}}}}`)
	t.Logf("the pod template of a Deployment names the share: %s %v", out, err)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		for _, selector := range []string{"test=changed", "a=named"} {
			out, err := ns.TryKubectl("", "get", "pods", "-n", ns.name, "-l", selector, "-o", `jsonpath={.items[*].metadata.labels.kueue\.x-k8s\.io/queue-name}`)
			if err != nil || out != ns.queue {
				return fmt.Errorf("the pods with %s are in queue %q, %v; want %s", selector, out, err, ns.queue)
			}
		}
		return nil
	})
}
