package tasks

import (
	"slices"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/handlers/console"

	"github.com/labstack/echo/v4"
)

const tasksCSVURL = "/tasks.csv"

// tasksCSV answers GET /tasks.csv: all tasks of a list, in all columns that the
// address does not hide. The reason is Kueue's.
func (h *Pages) tasksCSV(c echo.Context, scope access.Scope) error {
	q := h.taskQuery(c.QueryParams())
	q.All = true
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, q.Query, q.teams)
	if err != nil {
		return err
	}
	var shown []csvColumn
	var heads []string
	for _, column := range tasksCSVColumns {
		if columnOf(column.of).cell == nil || !slices.Contains(c.QueryParams()["hide"], string(column.of)) {
			shown, heads = append(shown, column), append(heads, column.head)
		}
	}
	rows := [][]string{heads}
	now := h.Now()
	for _, t := range list.Items {
		row := make([]string, len(shown))
		for i, column := range shown {
			row[i] = column.value(t, now)
		}
		rows = append(rows, row)
	}
	return console.CSVFile(c, "tasks", rows)
}
