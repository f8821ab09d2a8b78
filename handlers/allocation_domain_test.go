package handlers_test

import (
	"context"
	"slices"
	"strconv"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
)

// allocationDomain is the part of the domain in memory that changes
// allocations.
type allocationDomain struct {
	pools     []v1alpha1.Pool // the policy's
	policy    *v1alpha1.ClusterPolicy
	made      []v1alpha1.Pool // with the last save
	reader    bool            // may change nothing
	review    allocations.Review
	reviewed  *v1alpha1.ComputeAllocation
	refusal   error // what changing and looking ahead answer, if anything
	departure allocations.DeletionPreview
	updated   []v1alpha1.ComputeAllocation
	deleted   []string // teams, with how
}

func (d *domain) May(context.Context, governance.User) (allocations.Permissions, error) {
	return allocations.Permissions{Create: !d.reader, Update: !d.reader, Delete: !d.reader}, nil
}

func (d *domain) stored(team string) *v1alpha1.ComputeAllocation {
	i := slices.IndexFunc(d.allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == team })
	if i < 0 {
		return nil
	}
	return &d.allocations[i]
}

func (d *domain) Find(_ context.Context, _ governance.User, team string) (v1alpha1.ComputeAllocation, error) {
	if a := d.stored(team); a != nil {
		return *a.DeepCopy(), nil
	}
	return v1alpha1.ComputeAllocation{}, &governance.Error{Kind: governance.NotFound, Message: "There is no team " + team + ", or you may not see it."}
}

// sameVersion refuses what was read before it was changed.
func (d *domain) sameVersion(team, version string) error {
	a := d.stored(team)
	switch {
	case d.refusal != nil:
		return d.refusal
	case a == nil:
		return &governance.Error{Kind: governance.NotFound, Message: "Team " + team + " has no allocation any more: somebody deleted it."}
	case a.ResourceVersion != version:
		return &governance.Error{Kind: governance.Conflict, Message: "Somebody else changed it in between."}
	}
	return nil
}

func (d *domain) Review(_ context.Context, _ governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error) {
	d.reviewed = a.DeepCopy()
	if d.refusal != nil {
		return allocations.Review{}, d.refusal
	}
	if a.ResourceVersion != "" {
		if err := d.sameVersion(a.Name, a.ResourceVersion); err != nil {
			return allocations.Review{}, err
		}
	}
	review := d.review
	review.NewPools = pools
	return review, nil
}

func (d *domain) Update(_ context.Context, user governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error {
	if err := d.sameVersion(a.Name, a.ResourceVersion); err != nil {
		return err
	}
	d.as, d.made = user, pools
	d.updated = append(d.updated, *a.DeepCopy())
	d.change(a.Name, func(now *v1alpha1.ComputeAllocation) { now.Spec = a.Spec })
	return nil
}

// change is a change of a spec, and touch one of the status only.
func (d *domain) change(team string, how func(*v1alpha1.ComputeAllocation)) {
	now := d.stored(team)
	how(now)
	now.Generation++
	d.touch(team)
}

func (d *domain) touch(team string) {
	now := d.stored(team)
	version, _ := strconv.Atoi(now.ResourceVersion)
	now.ResourceVersion = strconv.Itoa(version + 1)
}

func (d *domain) Delete(_ context.Context, user governance.User, team string, deletion allocations.Deletion) error {
	if err := d.sameVersion(team, deletion.ResourceVersion); err != nil {
		return err
	}
	how := " by itself"
	if deletion.Drain {
		how = " by draining"
	}
	d.as, d.deleted = user, append(d.deleted, team+how)
	return nil
}

func (d *domain) QueueActivity(context.Context, governance.User, string) (allocations.QueueActivity, error) {
	return allocations.QueueActivity{Running: d.departure.Running, Waiting: d.departure.Waiting}, nil
}

func (d *domain) Reclaimable(context.Context, governance.User, string) ([]allocations.QuotaExcess, error) {
	return d.review.QuotaExcess, nil
}

func (d *domain) PreviewDeletion(context.Context, governance.User, string) (allocations.DeletionPreview, error) {
	return d.departure, nil
}
