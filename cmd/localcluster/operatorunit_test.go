package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// queues are a ClusterQueue for all namespaces of the test.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory] # the pod that submits a RayJob has requests of its own
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: "100"}, {name: memory, nominalQuota: 1Ti}]}]
`

const queueOfNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: queue, namespace: NAME}
spec: {clusterQueue: all}
`

// An object of each kind, of two pods.
var objectsOfKinds = []struct{ name, operator, object string }{
	{"jobset", "jobset", `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]}}}}
`},
	{"leaderworkerset", "lws", `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]}}
`},
	{"raycluster", "ray", `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec: ` + rayCluster},
	{"rayjob", "ray", `
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  entrypoint: python train.py
  shutdownAfterJobFinishes: true
  rayClusterSpec: ` + rayCluster},
	{"pytorchjob", "pytorch", `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: none, resources: {requests: {cpu: "1"}}}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: none, resources: {requests: {cpu: "1"}}}]}}}
`},
	{"trainjob", "trainer", `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: task, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: none, numNodes: 2, resourcesPerNode: {requests: {cpu: "1"}}}
`},
}

const rayCluster = `{rayVersion: 2.46.0, headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: none, resources: {requests: {cpu: "1"}}}]}}}, workerGroupSpecs: [{groupName: workers, replicas: 1, minReplicas: 1, maxReplicas: 1, rayStartParams: {}, template: {spec: {containers: [{name: worker, image: none, resources: {requests: {cpu: "1"}}}]}}}]}
`

// The operators that are built run, and with Kueue's admission so do the pods of an
// object of each of their kinds.
func TestOperators(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		t.Skip("LOCALCLUSTER_BIN is not set to a folder of built binaries")
	}
	built := slices.DeleteFunc(operatorNames(), func(name string) bool { return checkOperators(bin, []string{name}) != nil })
	if len(built) == 0 {
		t.Skip(checkOperators(bin, operatorNames()))
	}
	l := startInstance(t, "--kinds", strings.Join(built, ","))
	api, err := newAPIClient(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	pids := pidsOf(t, l)
	for _, o := range operators {
		if !slices.Contains(built, o.name) {
			continue
		}
		if pids[o.name] == 0 {
			t.Errorf("%s does not run", o.name)
		}
		who := kubectl(t, l.componentConfig(o.name), "", "auth", "whoami")
		if user := "system:serviceaccount:" + o.namespace + ":" + o.account; !strings.Contains(who, user) {
			t.Errorf("%s is not user %s:\n%s", o.name, user, who)
		}
	}
	// Otherwise Kueue would manage the kinds some seconds later.
	if log, err := os.ReadFile(l.log(kueueName)); err != nil || strings.Contains(string(log), "No matching API in the server") {
		t.Errorf("Kueue started before the kinds were defined: %v", err)
	}
	kubectl(t, l.kubeconfig(), queues, "apply", "-f", "-")
	t.Run("kinds", func(t *testing.T) {
		for _, c := range objectsOfKinds {
			t.Run(c.name, func(t *testing.T) {
				if err := checkOperators(bin, []string{c.operator}); err != nil {
					t.Skip(err)
				}
				t.Parallel()
				kubectl(t, l.kubeconfig(), strings.ReplaceAll(queueOfNamespace, "NAME", c.name), "apply", "-f", "-")
				kubectl(t, l.kubeconfig(), c.object, "create", "--namespace", c.name, "-f", "-")
				waitTask(t, l, api, c.name)
			})
		}
	})
	for _, verb := range []string{"stop", "start"} {
		if out, err := program(t, verb, built[0], "--dir", l.dir); err != nil {
			t.Errorf("%s: %v\n%s", verb, err, out)
		}
	}
}

// waitTask waits until Kueue has admitted the workloads of a namespace and two pods
// of it have run.
func waitTask(t *testing.T, l layout, api apiClient, namespace string) {
	t.Helper()
	workloads := &unstructured.UnstructuredList{}
	workloads.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "WorkloadList"})
	err := waitFor(t.Context(), startLimit, func(ctx context.Context) error {
		if err := api.List(ctx, workloads, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(workloads.Items) == 0 {
			return errors.New("Kueue has created no workload")
		}
		for i := range workloads.Items {
			if w := &workloads.Items[i]; !hasCondition(w, "Admitted") {
				return fmt.Errorf("%s is not admitted", title(w))
			}
		}
		var pods corev1.PodList
		if err := api.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		run := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded {
				run++
			}
		}
		if run < 2 {
			return fmt.Errorf("%d of %d pods have run", run, len(pods.Items))
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v\n%s", err, kubectl(t, l.kubeconfig(), "", "get", "events,pods", "--namespace", namespace, "--output", "wide"))
	}
}
