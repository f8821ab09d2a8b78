package classstats

import (
	"context"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/timerange"

	"github.com/labstack/echo/v4"
)

// Over returns the figures of each class over a range, within a scope, and the range
// that they really cover. Without history the console remembers one day: longer
// ranges become "since the console started".
func (h *Stats) Over(ctx context.Context, scope access.Scope, r timerange.Range) (list queries.List, over Range, err error) {
	if over = RangeOf(r); h.History == nil && (over.Within == 0 || over.Within > timerange.Day) {
		over = ranges[0]
	}
	list, err = h.Tasks.ClassesWithin(ctx, scope, nil, min(over.Within, timerange.Day))
	return list, over, err
}

// classesCSV answers GET /classes.csv: the figures of classes over a range.
func (h *Stats) classesCSV(c echo.Context, scope access.Scope) error {
	ctx := c.Request().Context()
	list, over, err := h.Over(ctx, scope, timerange.Requested(ctx, h.History, c.QueryParams(), h.Now()))
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
			return format.Seconds(d)
		}
		rows = append(rows, []string{
			format.ClassName(row.PriorityClass), strconv.Itoa(row.Running), strconv.Itoa(row.Pending), strconv.Itoa(row.Preempted),
			some(row.AverageRun, row.Runs), some(row.AverageWait, row.Waits), some(row.LongestRun, row.Runs+row.Running), some(row.LongestWait, row.Waits+row.Pending+row.Preempted),
			strconv.Itoa(row.Runs), strconv.Itoa(row.Waits), strconv.Itoa(row.LoopRuns), note,
		})
	}
	return console.CSVFile(c, "classes", rows)
}
