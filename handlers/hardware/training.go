package hardware

import (
	"context"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
)

// Training is a task whose progress Prometheus has.
type Training struct {
	Task         tasks.Address
	Team         string
	Accelerators int64
	utilization.Training
}

// trainings are the trainings of one reading, by the UID of their task.
type trainings struct {
	mu      sync.Mutex
	reading *utilization.Reading
	tasks   map[string]Training
}

// Trainings returns the tasks whose progress Prometheus has, by UID, of all teams: callers show
// only those that their reader sees. known is false without data of Prometheus.
func (h *Pages) Trainings(ctx context.Context) (found map[string]Training, known bool) {
	if h == nil || h.Hardware == nil {
		return nil, false
	}
	reading := h.Hardware.Now().Reading
	if reading == nil {
		return nil, false
	}
	c := &h.trainings
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading == reading {
		return c.tasks, true
	}
	found = map[string]Training{}
	if len(reading.Trainings) > 0 {
		owner, err := h.PodOwners.PodOwners(ctx, access.Scope{All: true})
		if err != nil {
			return nil, false
		}
		for _, t := range reading.Trainings {
			o, ok := owner(index.PodName(t.Pod))
			if before, is := found[o.Task.UID]; !ok || o.Task.UID == "" || is && !before.Started.Before(t.Started) { // the first worker can move to another pod
				continue
			}
			found[o.Task.UID] = Training{Task: o.Task, Team: o.Team, Accelerators: int64(o.Accelerators), Training: t}
		}
	}
	c.reading, c.tasks = reading, found
	return found, true
}

// Samples returns the samples a second of the trainings in pods of a namespace, whose names a
// regular expression matches. known is false without Prometheus, and while it does not answer.
func (h *Pages) Samples(ctx context.Context, namespace, pods string, span utilization.Range) (times []time.Time, rates utilization.Series, known bool) {
	if h == nil || h.Hardware == nil {
		return nil, nil, false
	}
	times, rates, err := h.Hardware.Samples(ctx, namespace, pods, span)
	return times, rates, err == nil
}
