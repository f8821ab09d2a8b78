package reconcile

import (
	"context"
	"encoding/json"
	"fmt"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	applykueue "sigs.k8s.io/kueue/client-go/applyconfiguration/kueue/v1beta2"
)

// reasonShareWaits is the reason of Ready=False until a ClusterQueue of a share can be written
// with its quota.
const reasonShareWaits = "ShareWaits"

// reserveShares reserves the quota of shares that have ClusterQueues. It returns what may be
// written, by ClusterQueue, and why others may not yet, if any: of these objects, a ClusterQueue
// that exists keeps its quota and cohort, and a share without one remains a share of the
// team's quota.
func (r *AllocationReconciler) reserveShares(ctx context.Context, lends bool, objects desired.Objects, allocation *v1alpha1.ComputeAllocation, naming desired.Naming) (wishes map[string]desired.Wish, late outcome, err error) {
	wishes = map[string]desired.Wish{}
	for i := range objects.Shares {
		share := &objects.Shares[i]
		if share.ClusterQueue == nil {
			continue
		}
		name, wish := *share.ClusterQueue.GetName(), desired.Wish{Department: allocation.Spec.Department, Nominal: share.Nominal}
		got := r.Cohort.reserve(lends, allocation.Name, name, wish)
		if got.ok {
			wishes[name] = wish
			continue
		}
		ofShare := "share " + share.LocalQueue.Labels[desired.LabelShare] + ": "
		switch {
		case got.refused != "":
			late = notReady(v1alpha1.ReasonDepartment, ofShare+got.refused)
		case got.failure != "":
			late = notReady(reasonCohort, ofShare+got.failure)
		case late.reason == "":
			late = notReady(reasonShareWaits, ofShare+"its quota waits until the quota of others has fallen")
		}
		if err := r.keepShare(ctx, share, allocation, naming); err != nil {
			return nil, outcome{}, err
		}
	}
	return wishes, late, nil
}

// keepShare gives the ClusterQueue of a share the quota and the cohort that it has, or, if it does
// not exist, leaves the share without one.
func (r *AllocationReconciler) keepShare(ctx context.Context, share *desired.ShareObjects, allocation *v1alpha1.ComputeAllocation, naming desired.Naming) error {
	var queue kueue.ClusterQueue
	if err := client.IgnoreNotFound(r.APIReader.Get(ctx, client.ObjectKey{Name: *share.ClusterQueue.GetName()}, &queue)); err != nil {
		return err
	}
	if queue.Name == "" {
		share.ShareTeam(allocation, naming)
		return nil
	}
	text, err := json.Marshal(queue.Spec.ResourceGroups)
	if err != nil {
		return fmt.Errorf("read ClusterQueue %s: %w", queue.Name, err)
	}
	var groups []applykueue.ResourceGroupApplyConfiguration
	if err := json.Unmarshal(text, &groups); err != nil {
		return fmt.Errorf("read ClusterQueue %s: %w", queue.Name, err)
	}
	share.Keep(groups, queue.Spec.CohortName)
	return nil
}

// applyClusterQueues applies the ClusterQueues whose quota is reserved.
func (r *AllocationReconciler) applyClusterQueues(ctx context.Context, objects desired.Objects, reserved map[string]desired.Wish) error {
	for _, queue := range objects.ClusterQueues() {
		wish, is := reserved[*queue.GetName()]
		if !is {
			continue
		}
		object := managed.NewObject("ClusterQueue", &kueue.ClusterQueue{}, queue, queue.ObjectMetaApplyConfiguration)
		if _, err := (applier{r.Client, r.APIReader}).apply(ctx, object, true); err != nil {
			return err
		}
		r.Cohort.recordWritten(*queue.GetName(), wish)
	}
	return nil
}
