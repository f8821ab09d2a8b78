package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The samples show the effects of quota within a minute; other tests run at the
// same time here, so the limit is two.
func TestSampleLoadShowsBorrowingAndPreemption(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	l := startInstance(t, "--crds", "../../deploy/crds", "--rbac", "../../deploy/rbac", "--users", "users.yaml",
		"--console", filepath.Join(bin, "kuota"), "--console-port", "0", "--samples", "samples")
	api, err := newAPIClient(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
		var objs unstructured.UnstructuredList
		objs.SetGroupVersionKind(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: kind})
		err := api.List(ctx, &objs)
		return objs.Items, err
	}
	seen := map[string]bool{}
	err = waitFor(t.Context(), 2*time.Minute, func(ctx context.Context) error {
		workloads, err := list(ctx, "WorkloadList")
		if err != nil {
			return err
		}
		for i := range workloads {
			w := &workloads[i]
			waits := true
			for _, c := range conditionsOf(w) {
				seen[fmt.Sprint(c["type"], " ", c["status"], " ", c["reason"])] = true
				if c["status"] == "True" {
					seen[fmt.Sprint(c["type"])] = true
				}
				waits = waits && !(c["status"] == "True" && (c["type"] == "QuotaReserved" || c["type"] == "Evicted" || c["type"] == "Finished"))
			}
			seen["waits"] = seen["waits"] || waits
		}
		queues, err := list(ctx, "ClusterQueueList")
		if err != nil {
			return err
		}
		for i := range queues {
			seen["borrows"] = seen["borrows"] || borrows(&queues[i])
		}
		for what, is := range map[string]bool{
			"borrows":                              seen["borrows"],
			"was preempted within its team":        seen["Preempted True InClusterQueue"],
			"was preempted by the team that lends": seen["Preempted True InCohortReclamation"],
			"ended":                                seen["Finished"],
			"waits":                                seen["waits"],
		} {
			if !is {
				return fmt.Errorf("no task %s; conditions: %v", what, seen)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func conditionsOf(u *unstructured.Unstructured) (conditions []map[string]any) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		conditions = append(conditions, c.(map[string]any))
	}
	return conditions
}

// borrows reports whether a ClusterQueue borrows accelerators.
func borrows(queue *unstructured.Unstructured) bool {
	flavors, _, _ := unstructured.NestedSlice(queue.Object, "status", "flavorsUsage")
	for _, f := range flavors {
		resources, _, _ := unstructured.NestedSlice(f.(map[string]any), "resources")
		for _, r := range resources {
			if r := r.(map[string]any); r["name"] == "nvidia.com/gpu" && fmt.Sprint(r["borrowed"]) != "0" && r["borrowed"] != nil {
				return true
			}
		}
	}
	return false
}
