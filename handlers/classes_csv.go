package handlers

import (
	"context"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/tasks"

	"github.com/labstack/echo/v4"
)

const classesCSVURL = "/classes.csv"

// classesOver is the table by priority class of all teams in a snapshot.
func (h *Handlers) classesOver(ctx context.Context, scope access.Scope, s *capacity.Snapshot, r timeRange) (classTable, error) {
	rows, since, err := h.Tasks.ClassesWithin(ctx, scope, nil, min(h.Now().Sub(r.From), 24*time.Hour))
	if err != nil {
		return classTable{}, err
	}
	_, started, err := h.Tasks.ClassesWithin(ctx, scope, nil, 0)
	if err != nil {
		return classTable{}, err
	}
	list := tasks.List{ByClass: rows, Since: since, Started: started}
	for i := range s.Teams {
		list.Teams = append(list.Teams, s.Teams[i].Name)
	}
	return h.classTable(ctx, scope, list, nil, r.classes()), nil
}

// classesCSV answers GET /classes.csv: the figures of classes over a range.
func (h *Handlers) classesCSV(c echo.Context) error {
	ctx, r := c.Request().Context(), parseRange(c.QueryParams(), h.Now())
	scope, err := h.Tasks.Scope(ctx, userOf(c))
	if err != nil {
		return err
	}
	s, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return err
	}
	figures, err := h.classesOver(ctx, scope, s, r)
	if err != nil {
		return err
	}
	rows := [][]string{{"priority class", "running", "pending", "pre-empted", "average run s", "average wait s", "longest run s", "longest wait s", "runs that ended", "waits that ended", "over"}}
	for _, row := range figures.figures {
		some := func(d time.Duration, n int) string {
			if n == 0 {
				return ""
			}
			return seconds(d)
		}
		rows = append(rows, []string{
			className(row.Class), strconv.Itoa(row.Running), strconv.Itoa(row.Pending), strconv.Itoa(row.Preempted),
			some(row.AverageRun, row.Runs), some(row.AverageWait, row.Waits), some(row.LongestRun, row.Runs+row.Running), some(row.LongestWait, row.Waits+row.Pending+row.Preempted),
			strconv.Itoa(row.Runs), strconv.Itoa(row.Waits), figures.note,
		})
	}
	return csvFile(c, "classes", rows)
}
