package hardware

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/format"
)

// idleFreshness is how long idle tasks are cached. All readers share the cache.
const idleFreshness = 5 * time.Second

// Idle is a task whose accelerators are idle.
type Idle struct {
	Task         tasks.Address
	Team         string
	Accelerators int64
	Peak         float64   // the largest utilization of any of them, 0 to 1
	Since        time.Time // or earlier: when the console has not seen it
}

// Words describes how long the task has been idle.
func (i Idle) Words(now time.Time) string {
	return fmt.Sprintf("idle for at least %s", format.Age(now.Sub(i.Since)))
}

// idleTasks are the idle tasks by UID.
type idleTasks struct {
	mu    sync.Mutex
	at    time.Time // when they were computed
	times utilization.IdleTimes
	tasks map[string]Idle
}

// IdleTasks returns the idle tasks by UID, of all teams: callers show only those that their
// reader sees. It is empty without Prometheus, and while there is no data.
func (h *Pages) IdleTasks(ctx context.Context) map[string]Idle {
	if h == nil || h.Hardware == nil {
		return nil
	}
	c := &h.idle
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := h.Now(); c.at.IsZero() || now.Sub(c.at) >= idleFreshness {
		c.at = now
		h.findIdle(ctx, c)
	}
	if h.Hardware.Now().Reading == nil {
		return nil
	}
	return c.tasks
}

// findIdle computes the idle tasks of the current reading.
func (h *Pages) findIdle(ctx context.Context, c *idleTasks) {
	reading, after := h.Hardware.Now().Reading, h.Hardware.IdleAfter()
	if reading == nil {
		return
	}
	all := access.Scope{All: true}
	snapshot, err := h.Capacity.Within(ctx, all)
	if err != nil {
		return
	}
	owner, err := h.PodOwners.PodOwners(ctx, all)
	if err != nil {
		return
	}
	owners := map[string]queries.Owner{}
	cluster := utilization.Inventory{Nodes: nodeInfos(snapshot), Pods: podOwners(owner, owners)}
	idle := reading.Idle(cluster, "", after, h.IdleBelow)
	since := c.times.Next(reading.At, idle, after)
	c.tasks = map[string]Idle{}
	for _, t := range idle {
		o := owners[t.Task]
		c.tasks[o.Task.UID] = Idle{Task: o.Task, Team: o.Team, Accelerators: t.Accelerators, Peak: t.Peak, Since: since[t.Task]}
	}
}
