package handlers

import (
	"context"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/tasks"

	"github.com/labstack/echo/v4"
)

const classesCSVURL = "/classes.csv"

// classesOver are the figures of each class over a range, of all teams that
// somebody sees. What the console remembers itself is a day at most, up to now:
// without history it is told since it started instead.
func (h *Handlers) classesOver(ctx context.Context, scope access.Scope, r timeRange) (list tasks.List, over classRange, err error) {
	if over = r.classes(); h.History == nil && (over.within == 0 || over.within > day) {
		over = classRanges[0]
	}
	list, err = h.Tasks.ClassesWithin(ctx, scope, nil, min(over.within, day))
	return list, over, err
}

// classesCSV answers GET /classes.csv: the figures of classes over a range.
func (h *Handlers) classesCSV(c echo.Context) error {
	ctx := c.Request().Context()
	scope, err := h.Tasks.Scope(ctx, userOf(c))
	if err != nil {
		return err
	}
	list, over, err := h.classesOver(ctx, scope, h.askedRange(ctx, c.QueryParams()))
	if err != nil {
		return err
	}
	classes, note := h.classRows(ctx, scope, list, nil, over)
	rows := [][]string{{"priority class", "running", "pending", "preempted", "average run s", "average wait s", "longest run s", "longest wait s", "runs that ended", "waits that ended", "runs left out", "over"}}
	for _, row := range classes {
		some := func(d time.Duration, n int) string {
			if n == 0 {
				return ""
			}
			return seconds(d)
		}
		rows = append(rows, []string{
			className(row.PriorityClass), strconv.Itoa(row.Running), strconv.Itoa(row.Pending), strconv.Itoa(row.Preempted),
			some(row.AverageRun, row.Runs), some(row.AverageWait, row.Waits), some(row.LongestRun, row.Runs+row.Running), some(row.LongestWait, row.Waits+row.Pending+row.Preempted),
			strconv.Itoa(row.Runs), strconv.Itoa(row.Waits), strconv.Itoa(row.LoopRuns), note,
		})
	}
	return csvFile(c, "classes", rows)
}
