package teams

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/hardware"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
)

// maxIdle is the largest number of idle tasks that the page of a team lists.
const maxIdle = 20

// Stops reports what a user can stop.
type Stops interface {
	MayStop(ctx context.Context, user governance.User, at tasks.Address) (bool, error)
}

// idleTask is an idle task of a team, as one reader sees it.
type idleTask struct {
	hardware.Idle
	mayStop bool
}

// idleOf returns the idle tasks of a team that user sees, those that are idle longest first.
// A task of which it is not known whether the user may stop it has no button.
func (h *Pages) idleOf(ctx context.Context, user governance.User, scope access.Scope, team string) (list []idleTask) {
	for _, idle := range h.Hardware.IdleTasks(ctx) {
		if idle.Team == team && scope.Includes(idle.Task.Namespace) {
			list = append(list, idleTask{Idle: idle})
		}
	}
	slices.SortFunc(list, func(a, b idleTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(b.Accelerators, a.Accelerators), strings.Compare(a.Task.UID, b.Task.UID))
	})
	list = list[:min(maxIdle, len(list))]
	if h.Stops == nil || h.ReadOnlyReason() != "" {
		return list
	}
	for i := range list {
		list[i].mayStop, _ = h.Stops.MayStop(ctx, user, list[i].Task)
	}
	return list
}

// idleKey identifies what idleRows renders.
func idleKey(list []idleTask) string {
	var key strings.Builder
	for _, t := range list {
		fmt.Fprintf(&key, "%s/%d/%t ", t.Task.UID, t.Since.Unix(), t.mayStop)
	}
	return key.String()
}

func idleRows(list []idleTask, now time.Time) (rows []teamviews.IdleTask) {
	for _, t := range list {
		row := teamviews.IdleTask{
			ID: "idle-" + t.Task.UID, Task: views.TaskLink{Name: t.Task.Name, URL: urls.TaskOf(t.Task.Namespace, t.Task.Kind, t.Task.Name)}, Kind: t.Task.Kind,
			Accelerators: format.Thousands(t.Accelerators), For: format.Age(now.Sub(t.Since)), Peak: fmt.Sprintf("%.1f %%", t.Peak*100),
		}
		if t.mayStop {
			row.StopURL = row.Task.URL + "/stop"
		}
		rows = append(rows, row)
	}
	return rows
}
