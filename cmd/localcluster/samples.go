package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applySamples fills the cluster the way a first user would: the policy, the
// teams, and when those have their namespaces and queues, members and, where they
// are wanted, the tasks. A file that is not there is left out.
func applySamples(ctx context.Context, api *apiClient, dir string, withTasks bool) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("no folder of samples at %s", dir)
	}
	policy, err := readOptional(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		return err
	}
	teams, err := readOptional(filepath.Join(dir, "teams.yaml"))
	if err != nil {
		return err
	}
	members, err := readOptional(filepath.Join(dir, "members.yaml"))
	if err != nil {
		return err
	}
	tasks, err := readOptional(filepath.Join(dir, "tasks.yaml"))
	if err != nil {
		return err
	}
	if err := api.applyAll(ctx, policy); err != nil {
		return err
	}
	if err := api.applyAll(ctx, teams); err != nil {
		return err
	}
	for _, u := range append(policy, teams...) { // a task whose class is not there yet is never seen by Kueue
		if kind := u.GetKind(); kind != "ComputeAllocation" && kind != "ClusterPolicy" {
			continue
		}
		if err := waitReady(ctx, api, u); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := applyMember(ctx, api, m); err != nil {
			return err
		}
	}
	if !withTasks {
		return nil
	}
	for _, task := range tasks { // one after the other, so that their order is the file's
		if err := createTask(ctx, api, task); err != nil {
			return err
		}
	}
	return nil
}

// applyMember tries again while the namespace is not there: the members may be
// of a team that teams.yaml does not make, and that somebody else makes now.
func applyMember(ctx context.Context, api *apiClient, member *unstructured.Unstructured) error {
	var refused error
	err := waitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		err := api.apply(ctx, member)
		if err != nil && !apierrors.IsNotFound(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(refused, err)
}

// createTask tries again while Kueue's webhook does not answer: a policy may
// have changed Kueue's configuration, and then it restarts right now.
func createTask(ctx context.Context, api *apiClient, task *unstructured.Unstructured) error {
	var refused error
	err := waitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		err := api.create(ctx, task)
		if err != nil && !apierrors.IsInternalError(err) {
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(refused, err)
}

func readOptional(path string) ([]*unstructured.Unstructured, error) {
	objs, err := readManifest(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return objs, err
}

func waitReady(ctx context.Context, api *apiClient, u *unstructured.Unstructured) error {
	return waitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		got, err := api.get(ctx, u)
		if err != nil {
			return err
		}
		if !hasCondition(got, "Ready") {
			conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
			return fmt.Errorf("%s is not ready: %v", title(u), conditions)
		}
		return nil
	})
}
