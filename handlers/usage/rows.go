package usage

import (
	"context"
	"encoding/json"
	"math/big"
	"time"

	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	usageviews "kuota.dev/kuota/views/usage"

	"github.com/labstack/echo/v4"
)

// shownNames bounds the priority classes, kinds or tasks of a page; the others are one row.
const shownNames = 100

type rowKey struct {
	key          history.UsageKey
	plural, name string
}

// rowKeys are the values of rows=, in their order, besides teams.
var rowKeys = []rowKey{{history.UsageByClass, "Priority classes", "Priority class"}, {history.UsageByKind, "Kinds", "Kind"}, {history.UsageByPerson, "People", "Person"}, {history.UsageByTask, "Tasks", "Task"}}

// lineNames name the lines that are not of one name.
var lineNames = map[accounting.TaskKind]string{
	accounting.OtherTasks: "Other tasks", accounting.Unrecorded: "Not in a task record",
}

// taskTable returns what tasks used, by the chosen rows.
func (r *reader) taskTable(ctx context.Context, q accounting.Query) (usageviews.UsageTable, error) {
	table := usageviews.UsageTable{Heads: []string{"Hours", "Of the use", "Lost to preemption"}}
	for _, k := range rowKeys {
		if k.key == r.rows {
			table.First = k.name
		}
	}
	lines, unplaced, err := accounting.TaskReport(ctx, r.History, r.rows, q, r.from, r.to, shownNames)
	if err != nil {
		return table, err
	}
	tasks, err := r.tasksOf(ctx, lines)
	if err != nil {
		return table, err
	}
	type group struct {
		kind accounting.TaskKind
		name string
	}
	var order []group // the lines of all pools, each by its first
	sums := map[group]*accounting.TaskLine{}
	all := accounting.TaskLine{Used: new(big.Int), Preempted: new(big.Int)}
	for _, l := range lines {
		g := group{l.Kind, l.Name}
		if sums[g] == nil {
			order, sums[g] = append(order, g), &accounting.TaskLine{Used: new(big.Int), Preempted: new(big.Int)}
		}
		for _, sum := range []*accounting.TaskLine{sums[g], &all} {
			sum.Used.Add(sum.Used, l.Used)
			sum.Preempted.Add(sum.Preempted, l.Preempted)
		}
	}
	unit := accounting.Unit(r.resource)
	figures := func(l *accounting.TaskLine) []string {
		return []string{format.Hours(l.Used, unit), percent(l.Used, all.Used), format.Hours(l.Preempted, unit)}
	}
	for _, g := range order {
		row := usageviews.UsageRow{ID: "usage-row-" + g.name, Name: r.nameOf(g.name), Figures: figures(sums[g])}
		task, known := tasks[g.name]
		switch {
		case g.kind != accounting.Tasks:
			row.ID, row.Name = "usage-"+map[accounting.TaskKind]string{accounting.OtherTasks: "other-tasks", accounting.Unrecorded: "unrecorded"}[g.kind], lineNames[g.kind]
			if row.Figures[2] = "–"; g.kind == accounting.OtherTasks {
				row.Figures = figures(sums[g])
			}
		case known:
			row.Name, row.URL, row.Sub = task.Name, urls.PastTask(task), task.Kind+" in "+task.Namespace
		case g.name == "":
			row.Name = "No priority class"
		}
		table.Rows = append(table.Rows, row)
	}
	table.Sum = usageviews.UsageRow{ID: "usage-sum", Name: "Quota used by teams", Figures: figures(&all)}
	if unplaced.Sign() > 0 {
		table.Sum.Sub = format.Hours(unplaced, unit) + " without a node"
	}
	return table, nil
}

// nameOf returns a name of the chosen rows as pages show it.
func (r *reader) nameOf(name string) string {
	if r.rows == history.UsageByClass {
		return format.ClassName(name)
	}
	if name == "" && r.rows == history.UsageByPerson {
		return "Unknown"
	}
	return name
}

// tasksOf returns the records of the tasks that have lines, by UID.
func (r *reader) tasksOf(ctx context.Context, lines []accounting.TaskLine) (map[string]history.Task, error) {
	if r.rows != history.UsageByTask {
		return nil, nil
	}
	var uids []string
	for _, l := range lines {
		if l.Kind == accounting.Tasks {
			uids = append(uids, l.Name)
		}
	}
	return r.History.TasksOf(ctx, uids)
}

// fileRow is a line of a file by rows of tasks.
type fileRow struct {
	accounting.TaskLine
	resource string
	task     history.Task // the zero value for rows that are not tasks
}

// fileRows returns a function that returns the lines of the next period, one resource after
// the other, with its bounds; none at the end. rows=task has periods of a day.
func (r *reader) fileRows(ctx context.Context) func() (rows []fileRow, from, to time.Time, err error) {
	by := r.by
	if r.rows == history.UsageByTask {
		by = accounting.Day
	}
	bounds, q := by.Bounds(r.from, r.to), r.visible(r.scope, r.teams, r.asked)
	return func() (rows []fileRow, from, to time.Time, err error) {
		for len(rows) == 0 && len(bounds) > 1 && !bounds[0].After(r.Now()) {
			from, to = bounds[0], bounds[1]
			if rows, err = r.taskRows(ctx, q, from, to); err != nil {
				return nil, from, to, unavailable(err)
			}
			bounds = bounds[1:]
		}
		return rows, from, to, nil
	}
}

func (r *reader) taskRows(ctx context.Context, q accounting.Query, from, to time.Time) (rows []fileRow, err error) {
	resources := []string{q.Resource}
	if q.Resource == "" {
		if _, resources, err = r.History.Recorded(ctx); err != nil {
			return nil, err
		}
	}
	for _, resource := range resources {
		q.Resource = resource
		lines, _, err := accounting.TaskReport(ctx, r.History, r.rows, q, from, to, 0)
		if err != nil {
			return nil, err
		}
		tasks, err := r.tasksOf(ctx, lines)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			rows = append(rows, fileRow{l, resource, tasks[l.Name]})
		}
	}
	return rows, nil
}

// taskHead is the first row of a file by rows of tasks.
func (r *reader) taskHead() []string {
	name := string(r.rows)
	if r.rows == history.UsageByTask {
		name = "uid"
	}
	return []string{"from", "to", "pool", "resource", "unit", "row", name, "namespace", "task kind", "task", "team", "seconds", "lost to preemption s", "hours"}
}

// taskCSV answers with what tasks used in each period, and rows=task in each day.
func (r *reader) taskCSV(c echo.Context) error {
	next := r.fileRows(c.Request().Context())
	return console.CSVStream(c, "usage", r.taskHead(), func() (rows [][]string, err error) {
		lines, from, to, err := next()
		for _, l := range lines {
			unit := accounting.Unit(l.resource)
			rows = append(rows, []string{from.Format(time.RFC3339), to.Format(time.RFC3339), l.Pool, l.resource, format.Unit(l.resource), string(l.Kind), r.nameOf(l.Name),
				l.task.Namespace, l.task.Kind, l.task.Name, l.task.Team, format.ExactSeconds(l.Used, unit), format.ExactSeconds(l.Preempted, unit), hours(l.Used, unit)})
		}
		return rows, err
	})
}

// taskLineJSON is what tasks used. Numbers are exact, in seconds of one unit.
type taskLineJSON struct {
	Pool      string      `json:"pool"`
	Resource  string      `json:"resource"`
	Unit      string      `json:"unit"`
	Row       string      `json:"row"`
	Class     string      `json:"class,omitempty"`
	Kind      string      `json:"taskKind,omitempty"`
	Person    string      `json:"person,omitempty"`
	UID       string      `json:"uid,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"task,omitempty"`
	Team      string      `json:"team,omitempty"`
	Seconds   json.Number `json:"seconds"`
	Lost      json.Number `json:"lostSeconds"`
}

type taskReportJSON struct {
	From  time.Time      `json:"from"`
	To    time.Time      `json:"to"`
	Lines []taskLineJSON `json:"lines"`
}

// taskJSON returns a function that returns what tasks used in the next period; nil at the end.
func (r *reader) taskJSON(ctx context.Context) func() (any, error) {
	next := r.fileRows(ctx)
	return func() (any, error) {
		lines, from, to, err := next()
		if len(lines) == 0 || err != nil {
			return nil, err
		}
		answer := taskReportJSON{From: from, To: to}
		for _, l := range lines {
			unit := accounting.Unit(l.resource)
			line := taskLineJSON{
				Pool: l.Pool, Resource: l.resource, Unit: format.Unit(l.resource), Row: string(l.Kind), Kind: l.task.Kind, Namespace: l.task.Namespace, Name: l.task.Name, Team: l.task.Team,
				Seconds: json.Number(format.ExactSeconds(l.Used, unit)), Lost: json.Number(format.ExactSeconds(l.Preempted, unit)),
			}
			switch r.rows {
			case history.UsageByClass:
				line.Class = l.Name
			case history.UsageByKind:
				line.Kind = l.Name
			case history.UsageByPerson:
				line.Person = l.Name
			case history.UsageByTask:
				line.UID = l.Name
			}
			answer.Lines = append(answer.Lines, line)
		}
		return answer, nil
	}
}
