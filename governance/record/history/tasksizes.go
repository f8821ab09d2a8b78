package history

import (
	"maps"
	"math/big"
	"slices"
)

// taskSizes are bounds of what runs that ended used, in amount × s, by task.
type taskSizes map[taskSize]sizeBound

// taskSize identifies a row of task_sizes.
type taskSize struct{ resource, task, team string }

type sizeBound struct {
	timeRange
	bound int64
}

// add adds a run that ended.
func (s taskSizes) add(r run) {
	key := taskSize{r.Resource, r.task, r.team}
	of, exists := s[key]
	if !exists {
		of.timeRange = timeRange{r.began, r.ended}
	}
	s[key] = sizeBound{timeRange{min(of.from, r.began), max(of.to, r.ended)}, of.bound + r.amount*((r.ended-r.began)/second+1)}
}

func (t *tx) addTaskSizes(sizes taskSizes) error {
	rows := make([][]any, 0, len(sizes))
	for k, of := range sizes {
		rows = append(rows, []any{k.resource, k.task, k.team, of.bound, of.from, of.to})
	}
	return t.insert("task_sizes AS s (resource, task, team, bound, began, ended)", rows,
		"ON CONFLICT (resource, task, team) DO UPDATE SET bound = s.bound + excluded.bound, began = "+t.least+"(s.began, excluded.began), ended = "+t.greatest+"(s.ended, excluded.ended)", nil)
}

// largestTasks returns the totals of the largest tasks over the known ranges. It reads the
// runs of the tasks with the largest bounds, until no other task can be larger. It is not
// done if these are too many, such as of a day in which all tasks run for weeks, or while
// bounds are not complete.
func (t *tx) largestTasks(q TaskUsageQuery, known []timeRange) (totals []TaskUsageTotal, done bool, err error) {
	if state, err := t.state(); err != nil || state.summed < 0 {
		return nil, false, err
	}
	for n := 4 * q.Limit; n <= 16*q.Limit; n *= 4 {
		tasks, rest, err := t.largestBounds(q, timeRange{known[0].from, known[len(known)-1].to}, n)
		if err != nil {
			return nil, false, err
		}
		if totals, err = t.totalsOf(tasks, q, known); err != nil {
			return nil, false, err
		}
		complete := rest == 0
		if len(totals) >= q.Limit {
			totals = totals[:q.Limit]
			bound := new(big.Int).Mul(big.NewInt(rest), big.NewInt(second))
			complete = complete || totals[q.Limit-1].Sum.Cmp(bound) >= 0
		}
		if complete {
			return totals, true, nil
		}
	}
	return nil, false, nil
}

// largestBounds returns the UIDs of the tasks with the largest bounds, at least n if there are
// so many, and the bound of all others, in amount × s.
func (t *tx) largestBounds(q TaskUsageQuery, in timeRange, n int) (tasks []string, rest int64, err error) {
	var where conditions
	where.equal("resource", q.Resource)
	if q.Teams != nil {
		where.in("team", q.Teams)
	}
	found := map[string]bool{}
	largest := func(query string, args ...any) error {
		rows, last := 0, int64(0)
		err := t.query(query+" ORDER BY bound DESC LIMIT ?", append(args, n), func(scan scanFunc) error {
			var task string
			err := scan(&task, &last)
			rows++
			found[task] = true
			return err
		})
		if rows == n {
			rest = max(rest, last)
		}
		return err
	}
	err = largest("SELECT task, bound FROM task_sizes WHERE "+where.String()+" AND ended > ? AND began < ?", slices.Concat(where.args, []any{in.from, in.to})...)
	if err != nil {
		return nil, 0, err
	}
	// Tasks with runs that go on.
	err = largest(`SELECT task, used + COALESCE((SELECT s.bound FROM task_sizes s WHERE s.resource = ? AND s.task = o.task AND s.team = o.team), 0) AS bound
		FROM (SELECT task, team, CAST(SUM(amount * ((? - began) / 1000 + 1)) AS BIGINT) AS used FROM task_usage`+t.openRuns+` WHERE ended = 0 AND began < ? AND `+where.String()+` GROUP BY task, team) AS o`,
		slices.Concat([]any{q.Resource, in.to, in.to}, where.args)...)
	return slices.Sorted(maps.Keys(found)), rest, err
}

// totalsOf returns the totals of tasks, the largest first.
func (t *tx) totalsOf(tasks []string, q TaskUsageQuery, known []timeRange) (totals []TaskUsageTotal, err error) {
	sums := map[[2]string]TaskUsageTotal{}
	err = keyBatches(tasks, func(list string, args []any) error {
		// More conditions would have SQLite read all runs of the resource.
		return t.query("SELECT task, resource, pool, team, began, ended, amount, preempted FROM task_usage WHERE task IN ("+list+")", args, func(scan scanFunc) error {
			var r run
			err := scan(&r.task, &r.Resource, &r.Pool, &r.team, &r.began, &r.ended, &r.amount, &r.preempted)
			if r.Resource != q.Resource || q.Pool != "" && r.Pool != q.Pool || q.Teams != nil && !slices.Contains(q.Teams, r.team) {
				return err
			}
			runs, length := timeRange{r.began, r.ended}, int64(0)
			if r.ended == 0 {
				runs.to = known[len(known)-1].to
			}
			for _, k := range known {
				part := k.intersect(runs)
				length += max(0, part.to-part.from)
			}
			if length == 0 {
				return err
			}
			of, exists := sums[[2]string{r.Pool, r.task}]
			if !exists {
				of = TaskUsageTotal{Pool: r.Pool, Key: r.task, Sum: new(big.Int), Preempted: new(big.Int)}
				sums[[2]string{r.Pool, r.task}] = of
			}
			used := new(big.Int).Mul(big.NewInt(r.amount), big.NewInt(length))
			of.Sum.Add(of.Sum, used)
			if r.preempted == 1 {
				of.Preempted.Add(of.Preempted, used)
			}
			return err
		})
	})
	return slices.SortedFunc(maps.Values(sums), byUsage), err
}
