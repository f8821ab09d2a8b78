package tasks

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"

	"github.com/labstack/echo/v4"
)

const tasksCSVURL = "/tasks.csv"

// csvColumn is a column of the CSV file of a list of tasks. A column of the page can
// become several of them.
type csvColumn struct {
	of    string // column of the page that it belongs to
	head  string
	value func(t queries.Item, now time.Time) string
}

var tasksCSVColumns = []csvColumn{
	{"name", "namespace", func(t queries.Item, _ time.Time) string { return t.Namespace }},
	{"kind", "kind", func(t queries.Item, _ time.Time) string { return t.Kind }},
	{"name", "name", func(t queries.Item, _ time.Time) string { return t.Name }},
	{"team", "team", func(t queries.Item, _ time.Time) string { return t.Team }},
	{"status", "status", func(t queries.Item, _ time.Time) string { return string(t.State) }},
	{"status", "reason", func(t queries.Item, _ time.Time) string { return t.Message }},
	{"class", "priority class", func(t queries.Item, _ time.Time) string { return format.ClassName(t.PriorityClass) }},
	{"class", "priority", func(t queries.Item, _ time.Time) string { return strconv.Itoa(int(t.Priority)) }},
	{string(index.ByPosition), "place", func(t queries.Item, _ time.Time) string {
		if t.Position == 0 {
			return ""
		}
		return strconv.Itoa(t.Position)
	}},
	{"accelerators", "GPUs", resourceColumn(catalog.GPU)},
	{"accelerators", "Neuron devices", resourceColumn(catalog.Neuron)},
	{"accelerators", "other accelerators", func(t queries.Item, _ time.Time) string {
		var list []string
		for _, name := range t.Resources().Names() {
			if n := t.Resources()[name]; n > 0 && !slices.Contains(ownColumns, name) {
				list = append(list, name+"="+quota.Number(name, n))
			}
		}
		return strings.Join(list, " ")
	}},
	{"vcpu", "vCPU", resourceColumn(catalog.CPU)},
	{"memory", "memory GiB", resourceColumn(catalog.Memory)},
	{"pool", "pool", func(t queries.Item, _ time.Time) string { return strings.Join(t.Pools, " ") }},
	{"submitted", "submitted", func(t queries.Item, _ time.Time) string { return t.Submitted.UTC().Format(time.RFC3339) }},
	{"submitted", "submitted by", func(t queries.Item, _ time.Time) string { return t.SubmittedBy }},
	{"waited", "waited s", func(t queries.Item, now time.Time) string { return format.Seconds(t.Waited(now)) }},
	{"ran", "ran s", func(t queries.Item, now time.Time) string { return format.Seconds(t.Ran(now)) }},
	{"preemptions", "preemptions", func(t queries.Item, _ time.Time) string { return strconv.Itoa(int(t.Preemptions)) }},
}

// ownColumns are the resources that have a column of their own, or none at all.
var ownColumns = []string{catalog.GPU, catalog.Neuron, catalog.CPU, catalog.Memory, catalog.Network}

func resourceColumn(name string) func(queries.Item, time.Time) string {
	return func(t queries.Item, _ time.Time) string { return quota.Number(name, t.Resources()[name]) }
}

// tasksCSV answers GET /tasks.csv: all tasks of a list, in all columns that the
// address does not hide. The reason is Kueue's.
func (h *Pages) tasksCSV(c echo.Context) error {
	q := h.taskQuery(c.QueryParams())
	q.All = true
	scope, err := h.Tasks.Scope(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, q.Query, q.teams)
	if err != nil {
		return err
	}
	var shown []csvColumn
	var heads []string
	for _, column := range tasksCSVColumns {
		if alwaysShown[column.of] || !slices.Contains(c.QueryParams()["hide"], column.of) {
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
