package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applyRBAC writes every object of a folder: what the console's own identity
// and its users may do.
func applyRBAC(ctx context.Context, api *apiClient, dir string) error {
	if dir == "" {
		return nil
	}
	objs, err := readManifests(dir)
	if err != nil {
		return err
	}
	namespaces, others := namespacesFirst(objs)
	if err := api.applyAll(ctx, namespaces); err != nil {
		return err
	}
	return api.applyAll(ctx, others)
}

// namespacesFirst parts objects into those that others may live in, and the others.
func namespacesFirst(objs []*unstructured.Unstructured) (namespaces, others []*unstructured.Unstructured) {
	for _, u := range objs {
		if u.GetKind() == "Namespace" {
			namespaces = append(namespaces, u)
		} else {
			others = append(others, u)
		}
	}
	return namespaces, others
}
