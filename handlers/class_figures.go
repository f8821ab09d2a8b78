package handlers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"

	"github.com/labstack/echo/v4"
)

const classesCSVURL = "/classes.csv"

// classFigures are the figures of priority classes: how many tasks there are now,
// and how long they waited and ran in a range.
type classFigures struct {
	rows []tasks.ClassRow
	note string
}

// classSums are those of a range, and from when there is history at all.
type classSums struct {
	sums  []history.ClassSums
	since time.Time
}

// classFigures takes counts from the cluster, and averages from history; where
// that has none, from what the console has seen since it started.
func (h *Handlers) classFigures(ctx context.Context, scope access.Scope, s *capacity.Snapshot, r timeRange, over *past) (classFigures, error) {
	if h.History == nil {
		return h.classesSinceStart(ctx, scope, "when this console started; no history is kept")
	}
	var teams []string // all
	if !scope.All {
		teams = []string{}
		for i := range s.Teams {
			teams = append(teams, s.Teams[i].Name)
		}
	}
	read, err := remember(&over.classes, "", h.Now(), r, func() (found classSums, err error) {
		if found.since, err = h.History.Since(ctx); err != nil {
			return found, err
		}
		if teams == nil || len(teams) > 0 {
			found.sums, err = h.History.Classes(ctx, teams, r.From, r.To)
		}
		return found, err
	})
	switch {
	case err != nil:
		return h.classesSinceStart(ctx, scope, "when this console started: history cannot be read now. "+historyTrouble(err))
	case read.since.IsZero():
		return h.classesSinceStart(ctx, scope, "when this console started: it keeps history from now on")
	}
	// What still goes on is counted where the range ends now.
	goesOn := r.To.After(h.Now().Add(-time.Minute))
	rows, _, err := h.Tasks.ClassesWithin(ctx, scope, nil, min(h.Now().Sub(r.From), 24*time.Hour))
	if err != nil {
		return classFigures{}, err
	}
	note := "averages over " + r.Words
	if read.since.After(r.From) {
		note += "; history begins at " + read.since.UTC().Format("15:04 on 2 January") + " (UTC)"
	}
	return classFigures{withPast(rows, read.sums, goesOn), note}, nil
}

func (h *Handlers) classesSinceStart(ctx context.Context, scope access.Scope, why string) (classFigures, error) {
	rows, since, err := h.Tasks.ClassesWithin(ctx, scope, nil, 0)
	return classFigures{rows, "averages since " + since.UTC().Format("15:04 on 2 January") + " (UTC), " + why}, err
}

// historyTrouble is what an error of history says to people.
func historyTrouble(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message != "" {
		return ours.Message
	}
	return "The database does not answer."
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
	figures, err := h.classFigures(ctx, scope, s, r, &past{})
	if err != nil {
		return err
	}
	rows := [][]string{{"priority class", "running", "pending", "pre-empted", "average run s", "average wait s", "longest run s", "longest wait s", "runs that ended", "waits that ended", "over"}}
	for _, row := range figures.rows {
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
