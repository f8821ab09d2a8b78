package queries

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// claimAfter is how long a task waits before it claims growth: where Kueue preempts
	// growth itself, it does so sooner.
	claimAfter = 1500 * time.Millisecond
	// claimants bounds the tasks that are looked at, of each queue the first.
	claimants = 100
)

// Claimed is growth that a waiting task is entitled to, and that Kueue does not preempt
// for it.
type Claimed struct {
	Growth types.UID // the Workload of an increment
	By     types.UID // the Workload of the task
}

// Claims returns the growth that waiting tasks are entitled to. It is for controllers.
func (s *Service) Claims(ctx context.Context) (claims []Claimed, err error) {
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return nil, err
	}
	now := v.index.Now()
	heads, _ := v.index.Heads(func(index.QueueKey) bool { return true }, claimants)
	survey := newSurvey(v)
	taken := map[types.UID]bool{}
	for _, head := range heads {
		t := head.Task
		if t.PriorityClass == desired.GrowthClass || !t.Queued() || now.Sub(t.WaitingSince) < claimAfter {
			continue
		}
		c, err := survey.cluster(ctx, t)
		if err != nil {
			return nil, err
		}
		growth := growthOf(v.index, c.Queues, taken)
		if len(growth) == 0 {
			continue
		}
		for _, i := range explain.Claim(explainInput(t), c, growth) {
			uid := types.UID(growth[i].WorkloadUID)
			taken[uid] = true
			claims = append(claims, Claimed{Growth: uid, By: t.Main.UID})
		}
	}
	return claims, nil
}

// growthOf returns what increments of ElasticJobs use of these queues, the newest first.
// Those in without are not among them.
func growthOf(x *index.Index, queues map[string]*explain.Queue, without map[types.UID]bool) (growth []*explain.AdmittedWorkload) {
	for _, t := range x.SetUsage(nil) {
		for _, w := range t.Parts {
			i := slices.IndexFunc(t.AdmittedWorkloads, func(h explain.AdmittedWorkload) bool { return h.WorkloadUID == string(w.UID) })
			if i >= 0 && desired.IsGrowth(w) && !without[w.UID] && queues[t.AdmittedWorkloads[i].Queue] != nil {
				growth = append(growth, &t.AdmittedWorkloads[i])
			}
		}
	}
	slices.SortFunc(growth, func(a, b *explain.AdmittedWorkload) int {
		return cmp.Or(b.QuotaReservedAt.Compare(a.QuotaReservedAt), strings.Compare(a.WorkloadUID, b.WorkloadUID))
	})
	return growth
}

// maxLenders bounds the lenders of IdleSources, as the schema of ElasticJobs does.
const maxLenders = 64

// IdleSources returns whose idle compute the growth of an ElasticJob uses now, once the index
// knows that a number of its pods have quota; nil before, and if it is not known. A task
// borrows with its growth first, since that has the lowest priority. It is for controllers.
func (s *Service) IdleSources(ctx context.Context, job *v1alpha1.ElasticJob, pods int32) (*v1alpha1.IdleSources, error) {
	t := s.Index.Find(job.Namespace, v1alpha1.ElasticJobKind, job.Name, string(job.UID))
	if t == nil || t.Size.Admitted != int64(pods) {
		return nil, nil
	}
	v, err := s.within(ctx, access.Scope{All: true})
	if err != nil {
		return nil, err
	}
	sources, err := v.quotaSources(ctx, t)
	if err != nil || sources == nil {
		return nil, err
	}
	found := &v1alpha1.IdleSources{}
	for _, source := range sources.Sources {
		growth := resources.Amount(0)
		for _, w := range t.AdmittedWorkloads {
			if w.WorkloadUID != string(t.Main.UID) {
				growth = growth.Plus(w.Usage[source.FlavorResource])
			}
		}
		if !catalog.IsAccelerator(source.Resource) || growth == 0 {
			continue
		}
		found.Own = found.Own || growth > source.Borrowed
		found.Unallocated = found.Unallocated || source.Unallocated > 0
		for _, lender := range source.Lenders {
			if lender.Cohort != "" {
				found.Unallocated = true
				continue
			}
			if uid := v.teams.UID(lender.Team); !slices.Contains(found.Lenders, uid) && len(found.Lenders) < maxLenders {
				found.Lenders = append(found.Lenders, uid) // empty for a queue without a team
			}
		}
	}
	if !found.Own && !found.Unallocated && found.Lenders == nil {
		return nil, nil
	}
	return found, nil
}
