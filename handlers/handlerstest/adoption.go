package handlerstest

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
)

// AdoptionBackend implements console.Adoption in memory.
type AdoptionBackend struct {
	Existing adoption.Plan
	Reader   bool             // whether the reader may not adopt
	Failing  map[string]error // by ClusterQueue
	Adopted  []string         // by the last call
	Reason   string           // of the last call
}

func (d *AdoptionBackend) Unmanaged(context.Context) (int, error) { return len(d.Existing.Queues), nil }

func (d *AdoptionBackend) Plan(context.Context, governance.User) (adoption.Plan, error) {
	if d.Reader {
		return adoption.Plan{}, &governance.Error{Kind: governance.NotFound, Message: "There is no such page."}
	}
	return d.Existing, nil
}

func (d *AdoptionBackend) Check(ctx context.Context, user governance.User, names []string) ([]adopt.Result, error) {
	plan, err := d.Plan(ctx, user)
	if err != nil {
		return nil, err
	}
	selected, err := adopt.Select(plan, names)
	var results []adopt.Result
	for _, q := range selected {
		results = append(results, adopt.Result{Queue: q.Name, Verdict: q.Verdict, Err: d.Failing[q.Name]})
	}
	return results, err
}

func (d *AdoptionBackend) Adopt(ctx context.Context, user governance.User, names []string, reason string) ([]adopt.Result, error) {
	results, err := d.Check(ctx, user, names)
	if err != nil {
		return nil, err
	}
	d.Adopted, d.Reason = names, reason
	for i, r := range results {
		if q, _ := d.Existing.Queue(r.Queue); r.Err == nil {
			results[i].Team = q.Allocation.Name
		}
	}
	return results, nil
}
