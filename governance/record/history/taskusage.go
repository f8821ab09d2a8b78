package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// TaskUsage is what one Workload of a task uses, or used, of pools.
type TaskUsage struct {
	WorkloadUID string
	Began       time.Time // when Kueue reserved quota
	Ended       time.Time // zero while it uses quota
	// Amounts are in the units of SeriesKey. Without any the run only ends what is
	// recorded of the Workload.
	Amounts map[PoolResource]int64
}

// maxRunAmount bounds the amounts of rows, so that 64 bits have the sum of six such
// runs of a whole day. Larger amounts, such as of resources that are counted in bytes, are
// in units of largeUnit, rounded down, of a resource whose name ends in largeSuffix. What
// no 64 bits have even so is left out.
const (
	maxRunAmount = 1 << 34
	largeUnit    = 1 << 20
	largeSuffix  = " in Mi"
)

// storedAmounts returns amounts as rows have them.
func storedAmounts(amounts map[PoolResource]int64) map[PoolResource]int64 {
	stored := make(map[PoolResource]int64, len(amounts))
	for of, amount := range amounts {
		if amount > maxRunAmount {
			of.Resource, amount = of.Resource+largeSuffix, amount/largeUnit
		}
		if amount <= maxRunAmount {
			stored[of] = amount
		}
	}
	return stored
}

// PoolResource is a resource of a pool.
type PoolResource struct{ Pool, Resource string }

// runKey identifies a row of task_usage.
type runKey struct {
	PoolResource
	workload string
	began    int64
}

// run is a row of task_usage.
type run struct {
	runKey
	ended, amount           int64 // ended is 0 while it goes on
	preempted               int
	task, team, class, kind string
	person                  string
}

// workloadUsage is what is recorded of one Workload.
type workloadUsage struct {
	task  string // UID
	open  []run  // that go on; one for each resource of each pool
	until int64  // end of the last that ended
}

// recordUsage records the runs of tasks. A Workload has one run at a time, which ends
// when the record has another, or none. What is recorded already is left as it is.
func (t *tx) recordUsage(records []Record) error {
	known, err := t.state()
	if err != nil {
		return err
	}
	recorded, err := t.recordedUsage(records)
	if err != nil {
		return err
	}
	changed := map[runKey]run{}
	for _, r := range records {
		end := func(workload string, at int64) {
			of := recorded[workload]
			for _, open := range of.open {
				ended := max(open.began, at)
				for _, piece := range r.pieces(open, ended) {
					changed[piece.runKey] = piece
				}
				of.until = max(of.until, ended)
			}
			of.open = nil
		}
		exists := map[string]bool{}
		for _, u := range r.Usage {
			u.Amounts = storedAmounts(u.Amounts)
			exists[u.WorkloadUID] = true
			of := recorded[u.WorkloadUID]
			if of == nil {
				of = &workloadUsage{task: r.Task.UID}
				recorded[u.WorkloadUID] = of
			}
			began, ended := toMillis(u.Began), toMillis(u.Ended)
			if len(of.open) > 0 {
				first := of.open[0].began
				switch {
				case len(u.Amounts) > 0 && first < began: // it ended while no console ran
					end(u.WorkloadUID, began)
				case ended > 0:
					end(u.WorkloadUID, ended)
					continue
				case sameAmounts(of.open, u.Amounts):
					continue
				default: // such as a task that was scaled down
					began = max(first, known.seen)
					end(u.WorkloadUID, began)
				}
			} else if of.until > began || ended > 0 && of.until >= ended {
				continue
			}
			for pool, amount := range u.Amounts {
				of.open = append(of.open, run{runKey{pool, u.WorkloadUID, began}, 0, amount, 0, r.Task.UID, r.Task.Team, r.Task.PriorityClass, r.Task.Kind, r.Task.SubmittedBy})
			}
			for _, open := range of.open {
				changed[open.runKey] = open
			}
			if ended > 0 {
				end(u.WorkloadUID, ended)
			}
		}
		for workload, of := range recorded {
			if of.task != r.Task.UID || exists[workload] {
				continue
			}
			at := known.seen
			for _, ended := range []time.Time{r.Task.DeletedAt, r.Task.FinishedAt} {
				if !ended.IsZero() {
					at = toMillis(ended)
				}
			}
			end(workload, at)
		}
	}
	var rows [][]any
	for k, r := range changed {
		rows = append(rows, []any{k.Resource, k.began, k.workload, k.Pool, r.ended, r.amount, r.preempted, r.task, r.team, r.class, r.kind, sanitize(r.person)})
	}
	sums := usageSums{usageDays{}, taskSizes{}}
	err = t.insert("task_usage AS t (resource, began, part, pool, ended, amount, preempted, task, team, class, kind, person)", rows,
		`ON CONFLICT (resource, began, part, pool) DO UPDATE SET ended = excluded.ended, amount = excluded.amount, preempted = excluded.preempted, person = excluded.person WHERE t.ended = 0
		RETURNING `+summedColumns, sums.add)
	if err != nil {
		return err
	}
	return t.addSums(sums)
}

// usageSums is what is kept of runs beside task_usage.
type usageSums struct {
	days  usageDays
	sizes taskSizes
}

// summedColumns are the columns of task_usage that usageSums.add reads.
const summedColumns = "resource, began, pool, ended, amount, preempted, task, team, class, kind, person"

// add adds a run if it ended.
func (s usageSums) add(scan scanFunc) error {
	var r run
	if err := scan(&r.Resource, &r.began, &r.Pool, &r.ended, &r.amount, &r.preempted, &r.task, &r.team, &r.class, &r.kind, &r.person); err != nil || r.ended == 0 {
		return err
	}
	s.days.add(r)
	s.sizes.add(r)
	return nil
}

func (t *tx) addSums(sums usageSums) error {
	if err := t.addUsageDays(sums.days); err != nil {
		return err
	}
	return t.addTaskSizes(sums.sizes)
}

// usageDay identifies a row of task_usage_days.
type usageDay struct {
	dimension UsageKey
	PoolResource
	team string
	day  int64
	name string
}

// usageDays is what runs used and lost, in amount × ms.
type usageDays map[usageDay][2]int64

// allTeamsOf is the team of rows for all teams.
const allTeamsOf = "*"

// add adds a run that ended.
func (d usageDays) add(r run) {
	used := r.amount * (r.ended - r.began)
	for dimension, name := range map[UsageKey]string{UsageByClass: r.class, UsageByKind: r.kind, UsageByPerson: r.person} {
		for _, team := range []string{r.team, allTeamsOf} {
			key := usageDay{dimension, r.PoolResource, team, floor(r.began, day), name}
			sum := d[key]
			d[key] = [2]int64{sum[0] + used, sum[1] + int64(r.preempted)*used}
		}
	}
}

func (t *tx) addUsageDays(days usageDays) error {
	rows := make([][]any, 0, len(days))
	for k, sum := range days {
		rows = append(rows, []any{string(k.dimension), k.Resource, k.team, k.day, k.Pool, k.name, sum[0], sum[1]})
	}
	return t.insert("task_usage_days AS d (dimension, resource, team, day, pool, name, used, lost)", rows,
		"ON CONFLICT (dimension, resource, team, day, pool, name) DO UPDATE SET used = d.used + excluded.used, lost = d.lost + excluded.lost", nil)
}

// pieces divides a run that ends at midnight UTC.
func (r *Record) pieces(open run, ended int64) (pieces []run) {
	for _, e := range r.Events {
		if at := toMillis(e.At); e.WorkloadUID == open.workload && e.Type == preempted && at >= open.began && at <= ended {
			open.preempted = 1
		}
	}
	for {
		open.ended = min(ended, floor(open.began, day)+day)
		if pieces = append(pieces, open); open.ended == ended {
			return pieces
		}
		open.began = open.ended
	}
}

// preempted is the Type of events that end runs for another task.
const preempted = "Preempted"

func sameAmounts(open []run, amounts map[PoolResource]int64) bool {
	return len(open) == len(amounts) && !slices.ContainsFunc(open, func(r run) bool {
		amount, ok := amounts[r.PoolResource]
		return !ok || amount != r.amount
	})
}

// recordedUsage returns the recorded runs of tasks by Workload.
func (t *tx) recordedUsage(records []Record) (map[string]*workloadUsage, error) {
	var tasks []string
	for _, r := range records {
		tasks = append(tasks, r.Task.UID)
	}
	slices.Sort(tasks)
	found := map[string]*workloadUsage{}
	err := keyBatches(slices.Compact(tasks), func(list string, args []any) error {
		return t.query("SELECT resource, began, part, pool, ended, amount, task, team, class, kind, person FROM task_usage WHERE task IN ("+list+")", args, func(scan scanFunc) error {
			var r run
			if err := scan(&r.Resource, &r.began, &r.workload, &r.Pool, &r.ended, &r.amount, &r.task, &r.team, &r.class, &r.kind, &r.person); err != nil {
				return err
			}
			if found[r.workload] == nil {
				found[r.workload] = &workloadUsage{task: r.task}
			}
			if of := found[r.workload]; r.ended == 0 {
				of.open = append(of.open, r)
			} else {
				of.until = max(of.until, r.ended)
			}
			return nil
		})
	})
	return found, err
}

// sumUsage computes all usageSums again, one day after the other, after an earlier version
// wrote runs without them.
func (s *Store) sumUsage(ctx context.Context) error {
	known, err := s.state(ctx)
	if err != nil || known.summed >= 0 {
		return err
	}
	// Runs that end meanwhile are in sizes twice, which are bounds.
	for more := true; more; {
		err := s.write(ctx, "forget sizes", func(t *tx) error {
			n, err := t.execCount("DELETE FROM task_sizes WHERE (resource, task, team) IN (SELECT resource, task, team FROM task_sizes LIMIT ?)", forgetBatch)
			more = n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	for at := floor(known.since, day); at <= known.seen; at += day {
		err := s.write(ctx, "sum up a day", func(t *tx) error {
			if err := t.exec("DELETE FROM task_usage_days WHERE day = ?", at); err != nil {
				return err
			}
			sums := usageSums{usageDays{}, taskSizes{}}
			resources, err := t.resources()
			for _, resource := range resources {
				err = errors.Join(err, t.query("SELECT "+summedColumns+" FROM task_usage WHERE resource = ? AND began >= ? AND began < ? AND ended > 0", []any{resource, at, at + day}, sums.add))
			}
			if err != nil {
				return err
			}
			return t.addSums(sums)
		})
		if err != nil {
			return err
		}
	}
	return s.write(ctx, "keep sums", func(t *tx) error { return t.exec("UPDATE state SET summed = seen") })
}

// UsageKey is what runs are grouped by.
type UsageKey string

// The keys.
const (
	UsageByTeam   UsageKey = "team"
	UsageByClass  UsageKey = "class" // priority class
	UsageByKind   UsageKey = "kind"
	UsageByTask   UsageKey = "task"   // UID
	UsageByPerson UsageKey = "person" // who submitted the task
)

// TaskUsageQuery selects runs of one resource. Zero fields select everything.
type TaskUsageQuery struct {
	Teams    []string // nil selects all; "" selects tasks of no team
	Pool     string
	Resource string // required
	Limit    int    // of groups, the largest
}

// TaskUsageTotal is what one group of runs used of one pool, in amount × milliseconds.
type TaskUsageTotal struct {
	Pool      string
	Key       string   // empty for none
	Sum       *big.Int // amount × milliseconds
	Preempted *big.Int // the part of Sum of runs that a preemption ended
}

// TaskUsage returns the integrals of runs over a range, where it has data, by pool and key,
// the largest first.
func (s *Store) TaskUsage(ctx context.Context, by UsageKey, q TaskUsageQuery, from, to time.Time) (totals []TaskUsageTotal, err error) {
	err = s.read(ctx, "sum runs of tasks", func(t *tx) error {
		known, err := t.knownRanges(timeRange{toMillis(from), toMillis(to)})
		if err != nil || len(known) == 0 || q.Teams != nil && len(q.Teams) == 0 {
			return err
		}
		if totals, err = t.taskUsage(by, q, known); err != nil {
			return err
		}
		q.Resource += largeSuffix
		var found int
		switch err := t.queryRow("SELECT 1 FROM task_usage WHERE resource = ? LIMIT 1", []any{q.Resource}, &found); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		large, err := t.taskUsage(by, q, known)
		totals = withLarge(totals, large, q.Limit)
		return err
	})
	return totals, err
}

// withLarge adds totals of amounts in units of largeUnit.
func withLarge(totals, large []TaskUsageTotal, limit int) []TaskUsageTotal {
	for _, l := range large {
		l.Sum.Mul(l.Sum, big.NewInt(largeUnit))
		l.Preempted.Mul(l.Preempted, big.NewInt(largeUnit))
		i := slices.IndexFunc(totals, func(t TaskUsageTotal) bool { return t.Pool == l.Pool && t.Key == l.Key })
		if i < 0 {
			totals = append(totals, l)
			continue
		}
		totals[i].Sum.Add(totals[i].Sum, l.Sum)
		totals[i].Preempted.Add(totals[i].Preempted, l.Preempted)
	}
	slices.SortFunc(totals, byUsage)
	if limit > 0 && len(totals) > limit {
		totals = totals[:limit]
	}
	return totals
}

// byUsage orders totals, the largest first.
func byUsage(a, b TaskUsageTotal) int {
	return cmp.Or(b.Sum.Cmp(a.Sum), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Key, b.Key))
}

func (t *tx) taskUsage(by UsageKey, q TaskUsageQuery, known []timeRange) ([]TaskUsageTotal, error) {
	if by == UsageByTask && q.Limit > 0 {
		if totals, done, err := t.largestTasks(q, known); done || err != nil {
			return totals, err
		}
	}
	return t.sumTaskUsage(by, q, known)
}

func (t *tx) sumTaskUsage(by UsageKey, q TaskUsageQuery, known []timeRange) (totals []TaskUsageTotal, err error) {
	if !slices.Contains([]UsageKey{UsageByTeam, UsageByClass, UsageByKind, UsageByTask, UsageByPerson}, by) {
		return nil, fmt.Errorf("runs are not grouped by %q", by)
	}
	now, err := t.state()
	if err != nil {
		return nil, err
	}
	var args []any
	ranges, whole := 0, []timeRange(nil)
	add := func(r timeRange, closed int) {
		if r.from < r.to {
			ranges++
			args = append(args, r.from, r.to, floor(r.from, day), closed)
		}
	}
	for _, r := range known {
		days := timeRange{floor(r.from+day-1, day), floor(r.to, day)}
		if by == UsageByTeam || by == UsageByTask || now.summed < 0 || days.from >= days.to {
			add(r, 1)
			continue
		}
		add(timeRange{r.from, days.from}, 1)
		add(days, 0)
		add(timeRange{days.to, r.to}, 1)
		whole = append(whole, days)
	}
	var where conditions
	where.equal("r.resource", q.Resource)
	where.equal("r.pool", q.Pool)
	if q.Teams != nil {
		where.in("r.team", q.Teams)
	}
	// A run that goes on is not divided, so that it can begin before the first day.
	// Of whole days, runs that ended are in task_usage_days.
	part := func(index, condition string) string {
		return fmt.Sprintf(`SELECT key, ms AS used, preempted * ms AS lost FROM (
			SELECT r.pool || '/' || r.%s AS key, r.preempted, r.amount * (%s(CASE r.ended WHEN 0 THEN k.until ELSE r.ended END, k.until) - %s(r.began, k.since)) AS ms
			FROM known k CROSS JOIN task_usage r%s WHERE %s AND %s) AS runs`, by, t.least, t.greatest, index, where.String(), condition)
	}
	parts := []string{
		part("", "k.closed = 1 AND r.began >= k.day AND r.began < k.until AND (r.ended > k.since OR r.ended = 0)"),
		part(t.openRuns, "r.ended = 0 AND r.began < CASE k.closed WHEN 1 THEN k.day ELSE k.until END"),
	}
	args = slices.Concat(args, where.args, where.args)
	teams := q.Teams
	if teams == nil {
		teams = []string{allTeamsOf}
	}
	for _, days := range whole {
		var where conditions
		where.equal("dimension", string(by))
		where.equal("resource", q.Resource)
		where.in("team", teams)
		where.add("day >= ? AND day < ?", days.from, days.to)
		where.equal("pool", q.Pool)
		args = append(args, where.args...)
		parts = append(parts, "SELECT pool || '/' || name AS key, used, lost FROM task_usage_days WHERE "+where.String())
	}
	// One key is sorted faster than two. Sums are of the upper and the lower 32 bits.
	query := fmt.Sprintf(`WITH known (since, until, day, closed) AS (VALUES %s)
		SELECT key, CAST(SUM(used >> 32) AS BIGINT), CAST(SUM(used & 4294967295) AS BIGINT), CAST(SUM(lost >> 32) AS BIGINT), CAST(SUM(lost & 4294967295) AS BIGINT)
		FROM (%s) AS found GROUP BY key ORDER BY CAST(SUM(used >> 32) AS BIGINT) + (CAST(SUM(used & 4294967295) AS BIGINT) >> 32) DESC, CAST(SUM(used & 4294967295) AS BIGINT) & 4294967295 DESC, key`,
		strings.Repeat(", (CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT))", ranges)[2:], strings.Join(parts, " UNION ALL "))
	if q.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, q.Limit)
	}
	return totals, t.query(query, args, func(scan scanFunc) error {
		var total TaskUsageTotal
		var sum, lost [2]int64
		var key string
		err := scan(&key, &sum[0], &sum[1], &lost[0], &lost[1])
		whole := func(parts [2]int64) *big.Int {
			of := new(big.Int).Lsh(big.NewInt(parts[0]), 32)
			return of.Add(of, big.NewInt(parts[1]))
		}
		total.Pool, total.Key, _ = strings.Cut(key, "/") // names of pools have no slash
		total.Sum, total.Preempted = whole(sum), whole(lost)
		totals = append(totals, total)
		return err
	})
}

// knownRanges returns the parts of a range with data.
func (t *tx) knownRanges(in timeRange) (known []timeRange, err error) {
	state, err := t.state()
	if err != nil || state.since == 0 {
		return nil, err
	}
	in = in.intersect(timeRange{state.since, state.seen})
	err = t.query("SELECT began, ended FROM gaps WHERE ended > ? AND began < ? ORDER BY began", []any{in.from, in.to}, func(scan scanFunc) error {
		var gap timeRange
		err := scan(&gap.from, &gap.to)
		if in.from < gap.from {
			known = append(known, timeRange{in.from, gap.from})
		}
		in.from = max(in.from, gap.to)
		return err
	})
	if in.from < in.to {
		known = append(known, in)
	}
	return known, err
}

// TasksOf returns the records of tasks by UID.
func (s *Store) TasksOf(ctx context.Context, uids []string) (map[string]Task, error) {
	found := map[string]Task{}
	err := s.read(ctx, "list tasks of runs", func(t *tx) error {
		return keyBatches(uids, func(keys string, args []any) error {
			tasks, err := list(t, (*Task).row, "SELECT "+taskColumns+" FROM tasks WHERE uid IN ("+keys+")", args...)
			for _, task := range tasks {
				found[task.UID] = task
			}
			return err
		})
	})
	return found, err
}

// forgetUsage deletes one batch of runs that began before a midnight and ended, and
// reports whether there may be more.
func (t *tx) forgetUsage(old int64) (more bool, err error) {
	resources, err := t.resources()
	for _, resource := range resources {
		if err != nil {
			break
		}
		last := old - 1
		switch err = t.queryRow("SELECT began FROM task_usage WHERE resource = ? AND began < ? AND ended > 0 ORDER BY began LIMIT 1 OFFSET ?", []any{resource, old, forgetBatch}, &last); {
		case errors.Is(err, sql.ErrNoRows):
			err = nil
		case err == nil:
			more = true
		}
		if err == nil {
			err = t.exec("DELETE FROM task_usage WHERE resource = ? AND began <= ? AND ended > 0", resource, last)
		}
	}
	return more, err
}

// resources returns the resources of all series, as runs may have them.
func (t *tx) resources() (resources []string, err error) {
	found, err := values[string](t, "SELECT DISTINCT resource FROM holders")
	for _, resource := range found {
		resources = append(resources, resource, resource+largeSuffix)
	}
	return resources, err
}
