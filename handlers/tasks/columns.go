package tasks

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	taskviews "kuota.dev/kuota/views/tasks"
	"kuota.dev/kuota/views/ui"

	"github.com/labstack/echo/v4"
)

// taskColumn is a column of the list of tasks.
type taskColumn struct {
	ui.Head
	class  string // of its cells
	hidden bool   // by default: the others fit on a screen of 1280 px
	// cell returns the text of a task; nil for a column that is always shown, which every
	// taskviews.TaskRow has.
	cell func(t queries.Item, now time.Time) taskviews.TaskCell
}

// taskColumns are all columns of a list of tasks, in their order.
var taskColumns = []taskColumn{
	{Head: ui.Head{Label: "Name", ID: string(index.ByName)}},
	{Head: ui.Head{Label: "Status", ID: string(index.ByState)}},
	{Head: ui.Head{Label: "Team", ID: string(index.ByTeam)}, class: "wraps", cell: func(t queries.Item, _ time.Time) taskviews.TaskCell {
		if t.Team == "" {
			return taskviews.TaskCell{Text: "–", Sub: t.Namespace}
		}
		return taskviews.TaskCell{Text: t.Team}
	}},
	{Head: ui.Head{Label: "Priority class", ID: string(index.ByPriorityClass)}, class: "wraps", cell: textCell(func(t queries.Item) string { return format.ClassName(t.PriorityClass) })},
	{Head: ui.Head{Label: "Kind", ID: string(index.ByKind)}, hidden: true, cell: textCell(func(t queries.Item) string { return t.Kind })},
	{Head: ui.Head{Label: "Position", ID: string(index.ByPosition)}, cell: textCell(func(t queries.Item) string { return position(t.Position) })},
	{Head: ui.Head{Label: "Accelerators", ID: string(index.ByAccelerator), Number: true}, cell: textCell(accelerators)},
	{Head: ui.Head{Label: "vCPU", ID: string(index.ByCPU), Number: true}, hidden: true, cell: textCell(func(t queries.Item) string { return format.Short(t.Resources(), catalog.CPU) })},
	{Head: ui.Head{Label: "Memory", Unit: "GiB", ID: string(index.ByMemory), Number: true}, hidden: true, cell: func(t queries.Item, _ time.Time) taskviews.TaskCell {
		return taskviews.TaskCell{Text: format.OrDash(format.Short(t.Resources(), catalog.Memory))}
	}},
	{Head: ui.Head{Label: "Pool", ID: string(index.ByPool)}, class: "pool", cell: textCell(func(t queries.Item) string { return strings.Join(t.Pools, ", ") })},
	// In minutes: a row that only became older is not sent again.
	{Head: ui.Head{Label: "Submitted", ID: string(index.BySubmitted)}, cell: func(t queries.Item, now time.Time) taskviews.TaskCell {
		return taskviews.TaskCell{Text: format.Age(now.Sub(t.Submitted)) + " ago", At: format.Time(t.Submitted)}
	}},
	{Head: ui.Head{Label: "Waited", ID: string(index.ByWaited), Number: true}, cell: waitedCell},
	{Head: ui.Head{Label: "Ran", ID: string(index.ByRan), Number: true}, cell: func(t queries.Item, now time.Time) taskviews.TaskCell {
		return elapsedCell(t.Ran(now), !t.AdmittedAt.IsZero(), t.State.UsesQuota())
	}},
	{Head: ui.Head{Label: "Preempted", ID: string(index.ByPreemptions), Number: true}, cell: textCell(func(t queries.Item) string { return format.Thousands(int64(t.Preemptions)) })},
}

// textCell returns a function for cells with a text; "–" for none.
func textCell(text func(queries.Item) string) func(queries.Item, time.Time) taskviews.TaskCell {
	return func(t queries.Item, _ time.Time) taskviews.TaskCell {
		return taskviews.TaskCell{Text: format.OrDash(text(t))}
	}
}

func waitedCell(t queries.Item, now time.Time) taskviews.TaskCell {
	return elapsedCell(t.Waited(now), !t.WaitingSince.IsZero(), !t.WaitingSince.IsZero())
}

// elapsedCell returns a cell with a duration; "–" for none that never began.
func elapsedCell(d time.Duration, began, goesOn bool) taskviews.TaskCell {
	if d <= 0 && !began {
		return taskviews.TaskCell{Text: "–"}
	}
	return taskviews.TaskCell{Text: format.Elapsed(d, goesOn)}
}

// position formats a position in a queue; empty for none.
func position(n int) string {
	if n <= 0 {
		return ""
	}
	return format.Ordinal(n)
}

// accelerators formats the accelerators of a task.
func accelerators(t queries.Item) string {
	var parts []string
	for _, name := range t.Resources().Names() {
		if amount := t.Resources()[name]; !catalog.FollowsAccelerators(name) && amount > 0 {
			parts = append(parts, quota.Amount(name, amount))
		}
	}
	return strings.Join(parts, ", ")
}

// taskCells returns the cells of a task in these columns.
func taskCells(columns []taskColumn, t queries.Item, now time.Time) (cells []taskviews.TaskCell) {
	for _, column := range columns {
		cell := column.cell(t, now)
		if cell.Class = column.class; column.Number {
			cell.Class = "n"
		}
		cells = append(cells, cell)
	}
	return cells
}

// cells returns the cells of a task in the shown columns.
func (q taskQuery) cells(t queries.Item, now time.Time) []taskviews.TaskCell {
	return taskCells(slices.DeleteFunc(slices.Clone(taskColumns), func(c taskColumn) bool { return c.cell == nil || q.hidden[c.ID] }), t, now)
}

// columnOf returns the column with an id.
func columnOf(id index.Column) taskColumn {
	return taskColumns[slices.IndexFunc(taskColumns, func(c taskColumn) bool { return c.ID == string(id) })]
}

// csvColumn is a column of the CSV file of a list of tasks. A column of the page can
// become several of them.
type csvColumn struct {
	of    index.Column // of the page, that it belongs to
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
	{index.ByPosition, "place", func(t queries.Item, _ time.Time) string {
		if t.Position == 0 {
			return ""
		}
		return strconv.Itoa(t.Position)
	}},
	{"accelerators", "GPUs", resourceColumn(catalog.GPU)},
	{"accelerators", "Neuron devices", resourceColumn(catalog.Neuron)},
	{"accelerators", "other resources", func(t queries.Item, _ time.Time) string { return otherResources(t.Resources()) }},
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

// otherResources lists what has no column of its own, such as "example.com/license=2".
func otherResources(of quota.Resources) string {
	var list []string
	for _, name := range of.Names() {
		if n := of[name]; n > 0 && !slices.Contains(ownColumns, name) {
			list = append(list, name+"="+quota.Number(name, n))
		}
	}
	return strings.Join(list, " ")
}

func resourceColumn(name string) func(queries.Item, time.Time) string {
	return func(t queries.Item, _ time.Time) string { return quota.Number(name, t.Resources()[name]) }
}

// hide reads the choice of columns from an address. Links contain only differences
// from the default, as hide= and show=, so that the default list has a short
// address. The form sends all shown columns, after an empty value that marks that a
// choice was made.
func (q *taskQuery) hide(values url.Values) {
	q.hidden = map[string]bool{}
	for _, column := range taskColumns {
		if column.cell == nil {
			continue
		}
		hidden := slices.Contains(values["hide"], column.ID) || column.hidden && !slices.Contains(values["show"], column.ID)
		if values.Has("cols") {
			hidden = !slices.Contains(values["cols"], column.ID)
		}
		q.hidden[column.ID] = hidden
		switch {
		case hidden && !column.hidden:
			q.Values.Add("hide", column.ID)
		case !hidden && column.hidden:
			q.Values.Add("show", column.ID)
		}
	}
}

// columns returns the choices of columns.
func (q taskQuery) columns() (choices []taskviews.ColumnChoice) {
	for _, column := range taskColumns {
		if column.cell != nil {
			choices = append(choices, taskviews.ColumnChoice{ID: column.ID, Label: column.Label, Shown: !q.hidden[column.ID]})
		}
	}
	return choices
}

const tasksCSVURL = "/tasks.csv"

// tasksCSV answers GET /tasks.csv: all tasks of a list, in all columns that the
// address does not hide. The reason is Kueue's.
func (h *Pages) tasksCSV(c echo.Context, scope access.Scope) error {
	q := h.taskQuery(c.QueryParams())
	q.All = true
	teams, err := h.TeamsOf(c.Request().Context(), q.department, q.teams)
	if err != nil {
		return err
	}
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, q.Query, teams)
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
	now := h.Now()
	return console.CSVItems(c, "tasks", heads, list.Items, func(t queries.Item) []string {
		row := make([]string, len(shown))
		for i, column := range shown {
			row[i] = column.value(t, now)
		}
		return row
	})
}
