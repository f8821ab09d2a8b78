package classstats

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/util/cache"
)

// Stats computes the table by priority class. It is safe for concurrent use.
type Stats struct {
	*console.Console
	History console.History // nil for none

	sums *cache.Expiring // pastSums by range and teams
}

// New returns the statistics of a console. past is nil without history.
func New(c *console.Console, past console.History) *Stats {
	return &Stats{Console: c, History: past, sums: cache.NewExpiring()}
}

// Table is the table by priority class, and the range of its averages.
type Table struct {
	Rows []views.ClassRow
	Note string
	Left string // sentences on what averages and the table leave out; empty for nothing
}

// fewClasses are listed even if they have no tasks.
const fewClasses = 10

// Table returns the figures of each priority class within a scope, of these teams
// or, for none, of all. list counts the tasks of the same teams now. Average waits
// and runs come from history; without history, or if it cannot be read, from list.
func (h *Stats) Table(ctx context.Context, scope access.Scope, list queries.List, teams []string, over Range) Table {
	rows, note := h.classRows(ctx, scope, list, teams, over)
	t := Table{Note: note}
	left, unused := 0, 0
	for _, row := range rows {
		if len(rows) > fewClasses && row.Running+row.Pending+row.Preempted+row.Waits+row.Runs == 0 {
			unused++
			continue
		}
		t.Rows = append(t.Rows, classLine(row, teams))
		left += row.LoopRuns
	}
	switch {
	case left == 1:
		t.Left = "Averages leave out 1 run that a preemption loop ended."
	case left > 1:
		t.Left = fmt.Sprintf("Averages leave out %s runs that preemption loops ended.", format.Thousands(int64(left)))
	}
	if unused > 0 {
		t.Left = format.JoinedBy(" ", t.Left, fmt.Sprintf("The table leaves out classes without tasks: %d of %d.", unused, len(rows)))
	}
	return t
}

func (h *Stats) classRows(ctx context.Context, scope access.Scope, list queries.List, teams []string, over Range) (rows []index.PriorityClassRow, note string) {
	rows, note = list.ByPriorityClass, rememberedNote(over, list)
	if h.History != nil {
		switch past, err := h.readSums(ctx, VisibleTeams(scope, list.Teams, teams), over, h.Now()); {
		case err != nil:
			note = "History cannot be read now; " + note
		default:
			rows, note = withPast(rows, past.sums), recordedNote(past)
		}
	}
	return groupNumbers(rows), note
}

// groupNumbers returns the rows with one for all priorities by number, where the first of them is.
func groupNumbers(rows []index.PriorityClassRow) (grouped []index.PriorityClassRow) {
	at := -1
	for _, row := range rows {
		switch {
		case !desired.IsNumber(row.PriorityClass):
			grouped = append(grouped, row)
		case at < 0:
			at, row.PriorityClass = len(grouped), Numbers
			grouped = append(grouped, row)
		default:
			grouped[at].Add(row)
		}
	}
	return grouped
}

// VisibleTeams returns the requested teams that a scope includes; nil for all teams,
// also deleted ones.
func VisibleTeams(scope access.Scope, there, asked []string) []string {
	if scope.All {
		return asked
	}
	seen := []string{}
	for _, team := range there {
		if len(asked) == 0 || slices.Contains(asked, team) {
			seen = append(seen, team)
		}
	}
	return seen
}

// withPast replaces the averages in rows by those of history, and adds rows for
// classes without tasks now.
func withPast(rows []index.PriorityClassRow, sums []history.ClassStats) []index.PriorityClassRow {
	merged := slices.Clone(rows)
	for i := range merged {
		merged[i].SetEnded(0, 0, 0, 0, 0, 0)
		merged[i].LoopRuns = 0
	}
	for _, s := range sums {
		i := slices.IndexFunc(merged, func(r index.PriorityClassRow) bool { return r.PriorityClass == s.Class })
		if i < 0 {
			i = len(merged)
			if last := len(merged) - 1; s.Class != "" && last >= 0 && merged[last].PriorityClass == "" { // which stays last
				i = last
			}
			merged = slices.Insert(merged, i, index.PriorityClassRow{PriorityClass: s.Class})
		}
		merged[i].LoopRuns = int(s.LoopRuns)
		merged[i].SetEnded(int(s.Waits), s.MeanWait(), s.LongestWait, int(s.Runs), s.MeanRun(), s.LongestRun)
	}
	return merged
}

// rememberedNote describes the range of averages that the console keeps in memory.
func rememberedNote(over Range, l queries.List) string {
	since := "averages since " + format.Time(l.Since)
	switch {
	case over.Within == 0:
		return since + ", when this console started"
	case l.Since.Equal(l.Started):
		return since + ", when this console started; earlier tasks are not counted"
	}
	return since
}

// recordedNote describes the range of averages that are read from history.
func recordedNote(past pastSums) string {
	if past.began.IsZero() {
		return "no averages yet: nothing is recorded"
	}
	since := "averages since " + format.Time(past.from)
	if !past.to.IsZero() {
		since = "averages from " + format.Time(past.from) + " to " + format.Time(past.to)
	}
	if past.from.Equal(past.began) {
		since += ", when history begins"
	}
	return since
}

func classLine(row index.PriorityClassRow, teams []string) views.ClassRow {
	name, value := format.ClassName(row.PriorityClass), row.PriorityClass
	switch value {
	case "":
		name, value = "No priority class", NoClass
	case Numbers:
		name = numbersName
	}
	count := func(n int, states ...string) views.Count {
		if n == 0 {
			return views.Count{Text: "0"}
		}
		values := url.Values{"class": {value}, "status": states}
		if len(teams) > 0 {
			values["team"] = teams
		}
		return views.Count{Text: format.Thousands(int64(n)), URL: urls.With(urls.Tasks, values)}
	}
	took := func(d time.Duration, n int, goesOn bool) string {
		if n == 0 {
			return "–"
		}
		return format.Elapsed(d, goesOn)
	}
	return views.ClassRow{
		ID: "class-" + value, Name: name,
		Running:     count(row.Running, string(tasks.Running), string(tasks.Starting), string(tasks.Stopping)),
		Pending:     count(row.Pending, string(tasks.Pending)),
		Preempted:   count(row.Preempted, string(tasks.Preempted)),
		AverageRun:  took(row.AverageRun, row.Runs, false),
		AverageWait: took(row.AverageWait, row.Waits, false),
		LongestRun:  took(row.LongestRun, row.Runs+row.Running, row.RunGoesOn),
		LongestWait: took(row.LongestWait, row.Waits+row.Pending+row.Preempted, row.WaitGoesOn),
	}
}

// pastSums are the sums of history over a range that begins at from, or at began if
// that is later.
type pastSums struct {
	began, from, to time.Time // began is zero where nothing is recorded; to is zero for now
	sums            []history.ClassStats
}

// minSumsAge is the least time for which sums are cached: the table is part of pages
// that are rendered with every change of a task, and sums change only when a task
// ends. Sums that were slow to read are cached for longer.
const minSumsAge = 2 * time.Second

// readSums returns the sums of these teams, or, for nil, of all, from the cache or
// from history.
func (h *Stats) readSums(ctx context.Context, teams []string, over Range, now time.Time) (found pastSums, err error) {
	key := over.Key() + "\n*"
	if teams != nil {
		key = over.Key() + "\n" + strings.Join(teams, "\n")
	}
	if cached, ok := h.sums.Get(key); ok {
		return cached.(pastSums), nil
	}
	asked := time.Now()
	found.to = over.to
	if found.began, err = h.History.Since(ctx); err != nil {
		return found, err
	}
	var to time.Time
	found.from, to = over.times(found.began, now)
	if !found.began.IsZero() && found.from.Before(to) && (teams == nil || len(teams) > 0) {
		if found.sums, err = h.History.ClassStats(ctx, teams, found.from, to); err != nil {
			return found, err
		}
	}
	h.sums.Set(key, found, max(minSumsAge, 20*time.Since(asked)))
	return found, nil
}

// Register adds the routes of this package to the server.
func (h *Stats) Register(s *web.Server) {
	s.Page(urls.ClassesCSV, h.Within(h.classesCSV))
}

// NoClass is the value in addresses for tasks without a priority class. No class can
// have this name.
const NoClass = "-"

// Numbers is the value in addresses for all priorities by number.
const Numbers = "0-99"

const numbersName = "Numbers 0–99"

// Number returns the class of a priority by number as it is written, such as 42; empty for none.
func Number(written string) string {
	if number, err := strconv.ParseUint(written, 10, 16); err == nil && number <= desired.MaxNumber {
		return desired.NumberClass(int(number))
	}
	if desired.IsNumber(written) {
		return written
	}
	return ""
}

// Classes returns the priority classes with these values in addresses.
func Classes(values []string) (classes []string) {
	for _, class := range values {
		switch {
		case class == NoClass:
			class = ""
		case class == Numbers:
			for number := range desired.MaxNumber {
				classes = append(classes, desired.NumberClass(number))
			}
			class = desired.NumberClass(desired.MaxNumber)
		case Number(class) != "":
			class = Number(class)
		}
		classes = append(classes, class)
	}
	return classes
}

// Filter returns the filter of the priority class.
func Filter(chosen string, classes []string) views.Filter {
	f := listing.NewFilter("class", "Priority class", "All classes", chosen)
	numbers := false
	for _, class := range classes {
		if !numbers && desired.IsNumber(class) {
			f.Add(Numbers, numbersName)
			numbers = true
		}
		if class == "" {
			f.Add(NoClass, "No priority class")
		} else {
			f.Add(class, format.ClassName(class))
		}
	}
	return f.Done()
}

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
