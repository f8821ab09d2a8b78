package handlerstest

import (
	"context"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
)

// RevisionsBackend has versions in memory.
type RevisionsBackend struct {
	Versions  map[revisions.Owner][]revisions.Version // the newest first
	NoHistory error                                   // returned by all reads, if set
	asked     []revisions.Owner
}

func (d *RevisionsBackend) History(_ context.Context, _ governance.User, of revisions.Owner) ([]revisions.Revision, error) {
	d.asked = append(d.asked, of)
	var all []revisions.Revision
	for _, v := range d.Versions[of] {
		all = append(all, v.Revision)
	}
	return all, d.NoHistory
}

func (d *RevisionsBackend) Version(_ context.Context, _ governance.User, of revisions.Owner, number int64) (revisions.Version, error) {
	i := slices.IndexFunc(d.Versions[of], func(v revisions.Version) bool { return v.Number == number })
	if d.NoHistory != nil || i < 0 {
		return revisions.Version{}, &governance.Error{Kind: governance.NotFound, Message: "Version is not kept."}
	}
	return d.Versions[of][i], nil
}

func (d *RevisionsBackend) DeletedTeams([]v1alpha1.ComputeAllocation) []string {
	var teams []string
	for of, versions := range d.Versions {
		if of != revisions.PolicyOwner() && versions[0].Deleted {
			teams = append(teams, strings.Fields(versions[0].Summary)[0])
		}
	}
	return teams
}
