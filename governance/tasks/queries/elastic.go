package queries

import (
	"context"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scaling is the ElasticJob of a task, and the changes of its size.
type Scaling struct {
	Job    *v1alpha1.ElasticJob // shared with the cache: read only
	Scales []Scale              // the latest changes, the oldest first
}

// Scale is a change of size, as one viewer sees it.
type Scale struct {
	v1alpha1.ScaleEvent
	For     *tasks.Task // that pods were preempted or withdrawn for; nil if it is not known, or hidden
	ForTeam string      // team of For; empty for none
	Hidden  bool        // the viewer may not see that task
}

// scaling returns how a task scales; nil for one that is no ElasticJob.
func (v viewer) scaling(ctx context.Context, t *tasks.Task) (*Scaling, error) {
	job, err := v.elasticJob(ctx, t)
	if job == nil {
		return nil, err
	}
	found := &Scaling{Job: job}
	for _, event := range job.Status.ScaleEvents {
		s := Scale{ScaleEvent: event}
		if event.ForWorkload != "" {
			s.For = v.index.ByWorkload(event.ForWorkload)
		}
		switch {
		case s.For == nil:
		case !v.seesNamespace(s.For.Namespace):
			s.For, s.Hidden = nil, true
		default:
			s.ForTeam = v.team(s.For.Place())
		}
		found.Scales = append(found.Scales, s)
	}
	return found, nil
}

// elasticJob returns the ElasticJob that a task is; nil for none, and after it was
// deleted.
func (v viewer) elasticJob(ctx context.Context, t *tasks.Task) (*v1alpha1.ElasticJob, error) {
	if t.Kind != v1alpha1.ElasticJobKind {
		return nil, nil
	}
	job := &v1alpha1.ElasticJob{}
	switch err := v.reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, job, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read ElasticJob", err)
	case err != nil, string(job.UID) != t.UID:
		return nil, nil
	}
	return job, nil
}
