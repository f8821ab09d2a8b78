package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// catchUpInterval is how often the cache is compared with the API server when a
	// replica is elected.
	catchUpInterval = 50 * time.Millisecond
	// catchUpRounds is after how many comparisons the API server is read again: an
	// object may have been deleted since.
	catchUpRounds = 20
	// readOnlyInterval is how often a controller checks whether the console is still
	// read-only.
	readOnlyInterval = 5 * time.Second
)

// onlyLeader wraps a reconciler so that it drops its requests unless this replica
// leads, and requeues them while the console is read-only. All objects are enqueued when a replica is elected. The controllers of all
// replicas watch, so that a new leader has current caches.
func (o Options) onlyLeader(controller reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
		do := func(ctx context.Context) {
			if o.ReadOnly != nil && o.ReadOnly() {
				result.RequeueAfter = readOnlyInterval
				return
			}
			result, err = controller.Reconcile(ctx, request)
		}
		if o.Leader == nil {
			do(ctx)
		} else {
			o.Leader.Within(ctx, do)
		}
		return result, err
	})
}

// catchUp waits until the cache has what the previous leader wrote. Everything else that
// controllers must know is in objects.
func (c Reconcilers) catchUp(ctx context.Context) error {
	for _, list := range []func() client.ObjectList{
		func() client.ObjectList { return &v1alpha1.ClusterPolicyList{} },
		func() client.ObjectList { return &v1alpha1.ComputeAllocationList{} },
		func() client.ObjectList { return &kueue.ClusterQueueList{} },
		func() client.ObjectList { return &kueue.CohortList{} },
		func() client.ObjectList { return &kueue.WorkloadPriorityClassList{} },
	} {
		if err := catchUp(ctx, c.Cohort.Client, c.Cohort.APIReader, list); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until the cache has every object of a kind as the API server has
// it now, or as it is later.
func catchUp(ctx context.Context, cached, live client.Reader, newList func() client.ObjectList) error {
	for {
		want := newList()
		if err := live.List(ctx, want); meta.IsNoMatchError(err) {
			return nil // a kind of Kueue that was deleted
		} else if err != nil {
			return fmt.Errorf("read what the previous leader wrote: %w", err)
		}
		for range catchUpRounds {
			switch current, err := isCurrent(ctx, cached, want, newList()); {
			case err != nil:
				return fmt.Errorf("read what the previous leader wrote: %w", err)
			case current:
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(catchUpInterval):
			}
		}
	}
}

// isCurrent reports whether the cache has every object of want, in this version or
// a later one. It lists into has.
func isCurrent(ctx context.Context, cached client.Reader, want, has client.ObjectList) (bool, error) {
	if err := cached.List(ctx, has, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	versions := map[types.UID]string{}
	err := meta.EachListItem(has, func(item runtime.Object) error {
		o := item.(client.Object)
		versions[o.GetUID()] = o.GetResourceVersion()
		return nil
	})
	current := true
	err = errors.Join(err, meta.EachListItem(want, func(item runtime.Object) error {
		o := item.(client.Object)
		order, err := resourceversion.CompareResourceVersion(versions[o.GetUID()], o.GetResourceVersion())
		current = current && err == nil && order >= 0
		return nil
	}))
	return current, err
}
