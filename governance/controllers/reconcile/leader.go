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
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// catchUpInterval is how often the cache is compared with the API server when a
	// replica is elected.
	catchUpInterval = 50 * time.Millisecond
	// catchUpRounds is after how many comparisons the API server is read again: an
	// object may have been deleted since.
	catchUpRounds = 20
)

// catchUp waits until the cache has what the previous leader wrote. Everything else that
// controllers must know is in objects.
func (c Reconcilers) catchUp(ctx context.Context) error {
	for _, empty := range []client.ObjectList{
		&v1alpha1.ClusterPolicyList{}, &v1alpha1.ComputeAllocationList{}, &v1alpha1.DepartmentList{}, &kueue.ClusterQueueList{}, &kueue.CohortList{}, &kueue.WorkloadPriorityClassList{},
	} {
		if err := catchUp(ctx, c.Cohort.Client, c.Cohort.APIReader, empty); err != nil {
			return fmt.Errorf("read what the previous leader wrote: %w", err)
		}
	}
	return nil
}

// catchUp waits until the cache has every object of a kind as the API server has
// it now, or as it is later. empty is a list of that kind.
func catchUp(ctx context.Context, cached, live client.Reader, empty client.ObjectList) error {
	newList := func() client.ObjectList { return empty.DeepCopyObject().(client.ObjectList) }
	var want client.ObjectList
	round := 0
	return wait.PollUntilContextCancel(ctx, catchUpInterval, true, func(ctx context.Context) (bool, error) {
		if round%catchUpRounds == 0 {
			want = newList()
			if err := live.List(ctx, want); meta.IsNoMatchError(err) {
				return true, nil // a kind of Kueue that was deleted
			} else if err != nil {
				return false, err
			}
		}
		round++
		return isCurrent(ctx, cached, want, newList())
	})
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
