package recorder

import (
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// maxNoted is how many scale events wait for a recorder that cannot write. Beyond that
// the oldest are dropped, and pages show that they are missing.
const maxNoted = 20_000

// scaleLog has the scale events of ElasticJobs that were not recorded yet. It handles
// the events of their watch, because their status keeps only the latest changes. Its
// zero value is ready, and it is safe for concurrent use.
type scaleLog struct {
	mu    sync.Mutex
	jobs  map[types.UID]*v1alpha1.ElasticJob // that exist, shared with the cache: read only
	last  map[types.UID]int64                // number of the last event that was noted, of those jobs
	noted []notedScale
}

// notedScale is a scale event with its job, which may be deleted.
type notedScale struct {
	job *v1alpha1.ElasticJob
	v1alpha1.ScaleEvent
}

// OnAdd implements toolscache.ResourceEventHandler.
func (l *scaleLog) OnAdd(object any, _ bool) { l.set(object) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (l *scaleLog) OnUpdate(_, object any) { l.set(object) }

// OnDelete implements toolscache.ResourceEventHandler.
func (l *scaleLog) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	l.set(object)
	if job, ok := object.(*v1alpha1.ElasticJob); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.jobs, job.UID)
		delete(l.last, job.UID)
	}
}

func (l *scaleLog) set(object any) {
	job, ok := object.(*v1alpha1.ElasticJob)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs, l.last = map[types.UID]*v1alpha1.ElasticJob{}, map[types.UID]int64{}
	}
	l.jobs[job.UID] = job
	l.note(job)
}

// note notes the events of a job that are newer than the last one.
func (l *scaleLog) note(job *v1alpha1.ElasticJob) {
	for _, e := range job.Status.ScaleEvents {
		if e.Number > l.last[job.UID] {
			l.last[job.UID] = e.Number
			l.noted = append(l.noted, notedScale{job, e})
		}
	}
	if len(l.noted) > maxNoted {
		l.noted = slices.Delete(l.noted, 0, len(l.noted)-maxNoted)
	}
}

// noteAll notes all events of the jobs that exist again: which of them another recorder
// wrote is unknown.
func (l *scaleLog) noteAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.last)
	for _, job := range l.jobs {
		l.note(job)
	}
}

// take removes and returns the first n events.
func (l *scaleLog) take(n int) []notedScale {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, len(l.noted))
	taken := slices.Clone(l.noted[:n])
	l.noted = slices.Delete(l.noted, 0, n)
	return taken
}

// forget drops the events before a time.
func (l *scaleLog) forget(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = slices.DeleteFunc(l.noted, func(e notedScale) bool { return e.Time.Time.Before(before) })
}

// newScaleEvent converts e for package history. byWorkload returns the task of a
// Workload, nil if it is not known.
func newScaleEvent(e notedScale, teams clusterstate.Teams, byWorkload func(types.UID) *tasks.Task) history.ScaleEvent {
	h := history.ScaleEvent{
		Namespace: e.job.Namespace, Name: e.job.Name, TaskUID: string(e.job.UID), Team: teams.Of(tasks.PlaceOf(e.job)), Number: e.Number, At: e.Time.UTC(),
		From: e.From, To: e.To, Minimum: e.Minimum, Cause: string(e.Cause), By: e.By, Node: e.Node, WorkloadUID: string(e.ForWorkload), Idle: newIdleSources(e.Idle, teams),
	}
	for _, c := range e.Changes {
		h.Changes = append(h.Changes, history.PolicyChange(c))
	}
	accelerator, perPod := tasks.PodRequests(&e.job.Spec.Template.Spec).Accelerator()
	h.Accelerator, h.PerPod = accelerator, int64(perPod)
	if e.ForWorkload == "" {
		return h
	}
	if t := byWorkload(e.ForWorkload); t != nil {
		h.For = history.TaskRef{Namespace: t.Namespace, Kind: t.Kind, Name: t.Name, UID: t.UID, Team: teams.Of(t.Place())}
	}
	return h
}

// newIdleSources converts s for package history. Of a team that was deleted since, the name is
// not known.
func newIdleSources(s *v1alpha1.IdleSources, teams clusterstate.Teams) *history.IdleSources {
	if s == nil {
		return nil
	}
	idle := &history.IdleSources{Own: s.Own, Unallocated: s.Unallocated}
	for _, uid := range s.Lenders {
		team := teams.OfUID(uid)
		idle.Lenders = append(idle.Lenders, history.TeamRef{Namespace: teams.Namespace(team), Team: team})
	}
	return idle
}
