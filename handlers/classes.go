package handlers

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/views"
)

// classRange is a time that averages by class are over: the last while, a time
// of one's own, or all that is known.
type classRange struct {
	name, label string        // as addresses have it, and as pages do
	within      time.Duration // 0 for no such while
	past        bool          // longer than the console itself remembers: only with history
	from, to    time.Time     // of one's own, which only history has
}

// times are when a range begins and ends, where history began at some time.
func (r classRange) times(began, now time.Time) (from, to time.Time) {
	from, to = r.from, r.to
	if r.within > 0 {
		from = now.Add(-r.within)
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	return slices.MaxFunc([]time.Time{began, from}, time.Time.Compare), to
}

func (r classRange) key() string {
	return r.name + " " + r.from.Format(time.RFC3339) + " " + r.to.Format(time.RFC3339)
}

var classRanges = []classRange{
	{label: "All"},
	{name: "1h", label: "1 h", within: time.Hour}, {name: "12h", label: "12 h", within: 12 * time.Hour}, {name: "24h", label: "24 h", within: 24 * time.Hour},
	{name: "7d", label: "7 d", within: 7 * day, past: true}, {name: "30d", label: "30 d", within: 30 * day, past: true}, {name: "1y", label: "1 year", within: 365 * day, past: true},
}

const day = 24 * time.Hour

// rangeOf is the range of a name; all that is known for one that there is not.
func rangeOf(name string, past bool) classRange {
	for _, r := range classRanges {
		if r.name == name && (past || !r.past) {
			return r
		}
	}
	return classRanges[0]
}

// rangeLinks lead to the same page over another time.
func rangeLinks(current classRange, past bool, address func(name string) string) (links []views.RangeLink) {
	for _, r := range classRanges {
		if r.past && !past {
			continue
		}
		link := views.RangeLink{Label: r.label, Title: "The last " + r.label, URL: address(r.name), Current: r == current}
		switch {
		case r.within == 0 && past:
			link.Title = "All recorded history"
		case r.within == 0:
			link.Title = "Since the console started"
		}
		links = append(links, link)
	}
	return links
}

func (q taskQuery) ranges(past bool) []views.RangeLink {
	return rangeLinks(q.classRange, past, func(name string) string { return q.with(tasksURL, "range", name) })
}

// classTable is the table by priority class, and from when its averages are.
type classTable struct {
	rows []views.ClassRow
	note string
	left string // a sentence on what averages leave out; empty for nothing
}

// classTable is what somebody with a scope sees of each priority class, of these
// teams or of all: how many there are now by list, which is of the same teams,
// and how long waits and runs took by history. Without it, or while it cannot be
// read, list tells that too.
func (h *Handlers) classTable(ctx context.Context, scope access.Scope, list tasks.List, teams []string, over classRange) classTable {
	rows, note := h.classRows(ctx, scope, list, teams, over)
	t := classTable{note: note}
	left := 0
	for _, row := range rows {
		t.rows = append(t.rows, classLine(row, teams))
		left += row.LoopRuns
	}
	switch {
	case left == 1:
		t.left = "Averages leave out 1 run that a preemption loop ended."
	case left > 1:
		t.left = fmt.Sprintf("Averages leave out %s runs that preemption loops ended.", thousands(int64(left)))
	}
	return t
}

func (h *Handlers) classRows(ctx context.Context, scope access.Scope, list tasks.List, teams []string, over classRange) (rows []tasks.PriorityClassRow, note string) {
	rows, note = list.ByPriorityClass, rememberedNote(over, list)
	if h.History != nil {
		switch past, err := h.sums.get(ctx, h.History, seenTeams(scope, list.Teams, teams), over, h.Now()); {
		case err != nil:
			note = "History cannot be read now; " + note
		default:
			rows, note = withPast(rows, past.sums), recordedNote(past)
		}
	}
	return rows, note
}

// seenTeams are the teams that somebody asks for, of those that they may see;
// nil for all that there ever were.
func seenTeams(scope access.Scope, there, asked []string) []string {
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

// withPast are the rows with what history has of each class, and those of classes
// that nobody has a task of now.
func withPast(rows []tasks.PriorityClassRow, sums []history.ClassStats) []tasks.PriorityClassRow {
	merged := slices.Clone(rows)
	for i := range merged {
		merged[i].SetEnded(0, 0, 0, 0, 0, 0)
		merged[i].LoopRuns = 0
	}
	for _, s := range sums {
		i := slices.IndexFunc(merged, func(r tasks.PriorityClassRow) bool { return r.PriorityClass == s.Class })
		if i < 0 {
			i = len(merged)
			if last := len(merged) - 1; s.Class != "" && last >= 0 && merged[last].PriorityClass == "" { // which stays the last
				i = last
			}
			merged = slices.Insert(merged, i, tasks.PriorityClassRow{PriorityClass: s.Class})
		}
		merged[i].LoopRuns = int(s.LoopRuns)
		merged[i].SetEnded(int(s.Waits), s.MeanWait(), s.LongestWait, int(s.Runs), s.MeanRun(), s.LongestRun)
	}
	return merged
}

// rememberedNote describes the range of averages that the console keeps in memory.
func rememberedNote(over classRange, l tasks.List) string {
	since := "averages since " + timeText(l.Since)
	switch {
	case over.within == 0:
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
	since := "averages since " + timeText(past.from)
	if !past.to.IsZero() {
		since = "averages from " + timeText(past.from) + " to " + timeText(past.to)
	}
	if past.from.Equal(past.began) {
		since += ", when history begins"
	}
	return since
}

func classLine(row tasks.PriorityClassRow, teams []string) views.ClassRow {
	name, value := className(row.PriorityClass), row.PriorityClass
	if value == "" {
		name, value = "No priority class", noClass
	}
	count := func(n int, states ...string) views.Count {
		if n == 0 {
			return views.Count{Text: "0"}
		}
		q := taskQuery{values: url.Values{"class": {value}, "status": states}}
		if len(teams) > 0 {
			q.values["team"] = teams
		}
		return views.Count{Text: thousands(int64(n)), URL: q.with(tasksURL)}
	}
	took := func(d time.Duration, n int, goesOn bool) string {
		if n == 0 {
			return "–"
		}
		return elapsed(d, goesOn)
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

// className is a class as people call it.
func className(object string) string { return strings.TrimSuffix(object, "-priority") }

// pastSums are what history has of a range: from, or from when it began.
type pastSums struct {
	began, from, to time.Time // began is zero where nothing is recorded; to is zero for now
	sums            []history.ClassStats
	read            time.Time
	took            time.Duration // to read them
}

// keptSums keeps what history answered for a little while: the table is part of
// pages that are rendered with every change of a task, and this changes when one
// ends. The zero value is ready.
type keptSums struct {
	mu   sync.Mutex
	kept map[string]pastSums
}

// sumsAge is how old an answer may be at least; one that took long may be older.
const sumsAge = 2 * time.Second

func (p pastSums) fresh(now time.Time) bool { return now.Sub(p.read) < max(sumsAge, 20*p.took) }

func (k *keptSums) get(ctx context.Context, past History, teams []string, over classRange, now time.Time) (pastSums, error) {
	key := over.key() + "\n*"
	if teams != nil {
		key = over.key() + "\n" + strings.Join(teams, "\n")
	}
	k.mu.Lock()
	found, ok := k.kept[key]
	k.mu.Unlock()
	if ok && found.fresh(now) {
		return found, nil
	}
	asked := time.Now()
	found = pastSums{read: now, to: over.to}
	var err error
	if found.began, err = past.Since(ctx); err != nil {
		return found, err
	}
	var to time.Time
	found.from, to = over.times(found.began, now)
	if !found.began.IsZero() && found.from.Before(to) && (teams == nil || len(teams) > 0) {
		if found.sums, err = past.ClassStats(ctx, teams, found.from, to); err != nil {
			return found, err
		}
	}
	found.took = time.Since(asked)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]pastSums{}
	}
	for other, p := range k.kept {
		if !p.fresh(now) {
			delete(k.kept, other)
		}
	}
	k.kept[key] = found
	return found, nil
}
