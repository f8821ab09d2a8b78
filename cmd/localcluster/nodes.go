package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

func readNodes(file string) ([]*unstructured.Unstructured, error) {
	objs, err := readManifest(file)
	if err != nil {
		return nil, err
	}
	for _, u := range objs {
		if u.GetKind() != "Node" {
			return nil, fmt.Errorf("%s: %s is not a Node", file, title(u))
		}
	}
	return objs, nil
}

// createNodes posts rather than applies, because only a POST of a Node keeps
// the status, which says what the node has.
func createNodes(ctx context.Context, api *apiClient, nodes []*unstructured.Unstructured) error {
	return each(nodes, func(u *unstructured.Unstructured) error { return api.create(ctx, u) })
}

// waitNodes waits until pods can be placed on every node.
func waitNodes(ctx context.Context, api *apiClient, want int) error {
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		list, err := api.dyn.Resource(nodeResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range list.Items {
			if hasCondition(&n, "Ready") && !hasNotReadyTaint(&n) {
				ready++
			}
		}
		if ready < want {
			return fmt.Errorf("%d of %d nodes are ready", ready, want)
		}
		return nil
	})
}

// hasNotReadyTaint: the taint goes a moment after the node has become ready,
// and until then the scheduler places nothing there.
func hasNotReadyTaint(n *unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(n.Object, "spec", "taints")
	for _, t := range taints {
		if m, ok := t.(map[string]any); ok && m["key"] == "node.kubernetes.io/not-ready" {
			return true
		}
	}
	return false
}
