package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/format"
	taskpages "kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	dashboardviews "kuota.dev/kuota/views/dashboard"
)

// mineRows is how many tasks the dashboard of a member begins with, waitingRows how many of
// them wait if as many run.
const (
	mineRows    = 8
	waitingRows = 5
)

// mine returns the active tasks of the teams of a member: those that have waited longest, and then
// the newest of those that run; nil for readers of the whole cluster. It depends on the teams only: all their members share one rendering.
func (h *Pages) mine(ctx context.Context, scope access.Scope) (*dashboardviews.Mine, error) {
	if scope.All || scope.Empty() {
		return nil, nil
	}
	mine := &dashboardviews.Mine{AllURL: urls.Tasks, SubmitURL: urls.Tasks}
	listed := 0
	var found [2][]dashboardviews.MyTask
	seen := map[string]bool{}
	for i, states := range [][]tasks.State{{tasks.Pending, tasks.Preempted}, {tasks.Running, tasks.Starting, tasks.Stopping}} {
		list, err := h.Tasks.ListWithin(ctx, scope, index.Query{Phase: index.Active, States: states, Sort: index.BySubmitted, Descending: i == 1, Explain: true, Patience: taskpages.ExplainPatience}, nil)
		if err != nil {
			return nil, err
		}
		if len(list.Teams) == 1 {
			mine.SubmitURL = urls.TeamSubmit(list.Teams[0])
		}
		if waiting := list.States[tasks.Pending] + list.States[tasks.Preempted]; listed == 0 && waiting > 0 {
			mine.Note = fmt.Sprintf("%s waiting", format.Thousands(int64(waiting)))
		}
		listed += list.Total
		for _, item := range list.Items[:min(len(list.Items), mineRows)] {
			row := taskpages.Row(item)
			id := strings.Replace(row.ID, "task-", "mine-", 1)
			if seen[id] {
				continue // it started between the two lists
			}
			seen[id] = true
			found[i] = append(found[i], dashboardviews.MyTask{
				ID: id, Name: row.Name, URL: row.URL, Status: row.Status, Reason: row.Reason, Team: item.Team, By: format.OrDash(item.SubmittedBy),
			})
		}
	}
	waiting := min(len(found[0]), max(waitingRows, mineRows-len(found[1])))
	mine.Rows = slices.Concat(found[0][:waiting], found[1][:min(len(found[1]), mineRows-waiting)])
	if more := listed - len(mine.Rows); more > 0 {
		mine.More = format.Upper(format.Count(more, "more task")) + "."
	}
	return mine, nil
}
