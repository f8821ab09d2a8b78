package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/imports/adoption"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Result is the outcome for one ClusterQueue.
type Result struct {
	Queue   string
	Verdict adoption.Verdict
	Team    string // the allocation; empty if none was created
	Err     error  // why none was created; nil on success
}

// Select returns the ClusterQueues of a plan that can be adopted: those with these
// names, or all that would be managed if names is empty. It returns
// governance.Invalid for each name that cannot.
func Select(plan adoption.Plan, names []string) ([]adoption.Queue, error) {
	var selected []adoption.Queue
	var errs governance.FieldErrors
	if len(names) == 0 {
		for _, q := range plan.Queues {
			if q.Verdict == adoption.Manage && q.Allocation != nil {
				selected = append(selected, q)
			}
		}
		return selected, nil
	}
	for _, name := range names {
		q, found := plan.Queue(name)
		switch {
		case slices.ContainsFunc(selected, func(s adoption.Queue) bool { return s.Name == name }):
		case !found:
			errs.Add(name, "there is no ClusterQueue of this name that Kuota does not manage")
		case q.Team != "":
			errs.Add(name, fmt.Sprintf("the allocation of team %s observes it already", q.Team))
		case q.Allocation == nil:
			errs.Add(name, "it cannot be adopted: "+plan.WhyNotManaged(name))
		default:
			selected = append(selected, q)
		}
	}
	if len(errs) > 0 {
		return nil, &governance.Error{Kind: governance.Invalid, Op: "adopt ClusterQueues", Message: "Some ClusterQueues cannot be adopted.", Fields: errs}
	}
	return selected, nil
}

// NeedsPolicy reports whether the policy of a plan is created with these ClusterQueues:
// those that are only observed need none.
func NeedsPolicy(plan adoption.Plan, selected []adoption.Queue) bool {
	return plan.Policy != nil && slices.ContainsFunc(selected, func(q adoption.Queue) bool { return q.Verdict == adoption.Manage })
}

// Adopt creates the policy, if the plan has one that the ClusterQueues need, and their
// allocations. It tries each ClusterQueue, whatever happens to the others. A dry run
// comes first, so that it creates no policy if all allocations are rejected. reason is
// that of the change; empty for none. Created, if not nil, is called for each object
// that was created.
func Adopt(ctx context.Context, c client.Client, plan adoption.Plan, selected []adoption.Queue, reason string, created func(client.Object)) ([]Result, error) {
	create := func(object client.Object) error {
		v1alpha1.SetReason(object, reason)
		if err := c.Create(ctx, object); err != nil {
			return err
		}
		if created != nil {
			created(object)
		}
		return nil
	}
	results := Check(ctx, c, selected)
	var accepted []adoption.Queue
	for i, q := range selected {
		if results[i].Err == nil {
			accepted = append(accepted, q)
		}
	}
	if NeedsPolicy(plan, accepted) {
		if err := create(plan.Policy.DeepCopy()); apierrors.IsAlreadyExists(err) {
			return nil, &governance.Error{Kind: governance.Conflict, Op: "create the cluster policy", Message: "A cluster policy was created in the meantime. Read the plan again.", Err: err}
		} else if err != nil {
			return nil, rejection.Translate("create the cluster policy", err)
		}
	}
	departments := map[string]error{} // that were created, or why not
	for i, q := range selected {
		if results[i].Err != nil {
			continue
		}
		for _, d := range q.Departments {
			err, tried := departments[d.Name]
			if !tried {
				err = rejection.Translate("create department", client.IgnoreAlreadyExists(create(d.DeepCopy())))
				departments[d.Name] = err
			}
			results[i].Err = errors.Join(results[i].Err, err)
		}
		if results[i].Err != nil {
			continue
		}
		if results[i].Err = createError(q, create(q.Allocation.DeepCopy())); results[i].Err == nil {
			results[i].Team = q.Allocation.Name
		}
	}
	return results, nil
}

// Check returns what the API server answers to a dry run of the allocations of
// ClusterQueues. Results have no team.
func Check(ctx context.Context, c client.Client, selected []adoption.Queue) []Result {
	results := make([]Result, len(selected))
	for i, q := range selected {
		results[i] = Result{Queue: q.Name, Verdict: q.Verdict, Err: createError(q, c.Create(ctx, q.Allocation.DeepCopy(), client.DryRunAll))}
	}
	return results
}

// createError returns why the allocation of a ClusterQueue was not created; nil on
// success.
func createError(q adoption.Queue, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return &governance.Error{Kind: governance.Conflict, Op: "create allocation", Message: fmt.Sprintf("An allocation %s was created in the meantime.", q.Allocation.Name), Err: err}
	}
	return rejection.Translate("create allocation", err)
}

// Release deletes the allocation of a team so that the controller keeps its objects,
// without Kuota's labels. It returns the allocation as it was.
func Release(ctx context.Context, c client.Client, team, reason string) (*v1alpha1.ComputeAllocation, error) {
	var allocation v1alpha1.ComputeAllocation
	// The controllers write the status meanwhile.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
			return err
		}
		if allocation.DeletionTimestamp != nil && allocation.Annotations[v1alpha1.AnnotationRelease] != "true" {
			return &governance.Error{Kind: governance.Conflict, Op: "release team", Message: fmt.Sprintf("Team %s is being deleted, and its queue with it.", team)}
		}
		before := allocation.DeepCopy()
		if allocation.Annotations == nil {
			allocation.Annotations = map[string]string{}
		}
		allocation.Annotations[v1alpha1.AnnotationRelease] = "true"
		v1alpha1.SetReason(&allocation, reason)
		return c.Patch(ctx, &allocation, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return nil, rejection.Translate("release team", err)
	}
	err = c.Delete(ctx, &allocation, client.Preconditions{UID: &allocation.UID})
	return &allocation, rejection.Translate("release team", client.IgnoreNotFound(err))
}
