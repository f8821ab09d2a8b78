package accounting

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/record/history"

	"golang.org/x/sync/errgroup"
)

// TaskKind is what a TaskLine is about.
type TaskKind string

// The kinds, in their order. The lines of a pool add up to the quota that teams used of
// it, with a node or without, or to what task records have where that is more.
const (
	Tasks      TaskKind = "tasks"                // of one name
	OtherTasks TaskKind = "other tasks"          // smaller than those
	Unrecorded TaskKind = "not in a task record" // the rest of the quota that teams used
)

var taskKinds = []TaskKind{Tasks, OtherTasks, Unrecorded}

// TaskLine is what tasks used of one pool. All amounts are × ms.
type TaskLine struct {
	Pool string
	Kind TaskKind
	Name string // of the kind Tasks: a priority class, kind of task or UID; can be empty
	Used *big.Int
	// Preempted is the part of Used of runs that ended with a preemption.
	Preempted *big.Int
}

// TaskReport returns the use of the resource that a query selects over [from, to), by a
// key of tasks, the largest first. limit bounds the names that have lines. unplaced is the
// part of it that was on no node, which Reports do not have.
func TaskReport(ctx context.Context, store Store, by history.UsageKey, q Query, from, to time.Time, limit int) (lines []TaskLine, unplaced *big.Int, err error) {
	until, err := store.SampledUntil(ctx)
	if err != nil {
		return nil, nil, err
	}
	if to = governance.Earlier(to, until); !from.Before(to) {
		return nil, new(big.Int), nil
	}
	selected := history.TaskUsageQuery{Teams: q.Teams, Pool: q.Pool, Resource: q.Resource, Limit: limit}
	teams := q.Teams
	if teams == nil {
		teams = []string{""}
	}
	var found, all []history.TaskUsageTotal
	var measured []map[history.SeriesKey]history.Total
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		found, err = store.TaskUsage(ctx, by, selected, from, to)
		return err
	})
	if limit > 0 {
		group.Go(func() (err error) {
			unlimited := selected
			unlimited.Limit = 0
			all, err = store.TaskUsage(ctx, history.UsageByKind, unlimited, from, to)
			return err
		})
	}
	group.Go(func() (err error) {
		measured, err = store.Usage(ctx, history.UsageQuery{Teams: teams, Pool: q.Pool, Resource: q.Resource, Measures: []history.Measure{history.OwnBound, history.BorrowedBound, history.Unplaced}}, []time.Time{from, to})
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	left := map[string]*big.Int{} // of each pool
	subtract := func(pool string, amount *big.Int) {
		if left[pool] == nil {
			left[pool] = new(big.Int)
		}
		left[pool].Sub(left[pool], amount)
	}
	add := func(l TaskLine) {
		lines = append(lines, l)
		subtract(l.Pool, l.Used)
	}
	others := map[string]TaskLine{} // by pool
	for _, total := range all {
		other, exists := others[total.Pool]
		if !exists {
			other = TaskLine{Pool: total.Pool, Kind: OtherTasks, Used: new(big.Int), Preempted: new(big.Int)}
			others[total.Pool] = other
		}
		other.Used.Add(other.Used, total.Sum)
		other.Preempted.Add(other.Preempted, total.Preempted)
	}
	for _, total := range found {
		add(TaskLine{Pool: total.Pool, Kind: Tasks, Name: total.Key, Used: total.Sum, Preempted: total.Preempted})
		if other, exists := others[total.Pool]; exists {
			other.Used.Sub(other.Used, total.Sum)
			other.Preempted.Sub(other.Preempted, total.Preempted)
		}
	}
	for _, other := range others {
		if len(found) == limit && other.Used.Sign() != 0 {
			add(other)
		}
	}
	unplaced = new(big.Int)
	for key, total := range measured[0] {
		switch key.Measure {
		case history.Unplaced:
			unplaced.Add(unplaced, total.Sum)
			fallthrough
		case history.OwnBound, history.BorrowedBound:
			subtract(key.Pool, new(big.Int).Neg(total.Sum))
		}
	}
	for pool, sum := range left {
		if sum.Sign() > 0 {
			lines = append(lines, TaskLine{Pool: pool, Kind: Unrecorded, Used: sum, Preempted: new(big.Int)})
		}
	}
	slices.SortStableFunc(lines, func(a, b TaskLine) int {
		return cmp.Or(slices.Index(taskKinds, a.Kind)-slices.Index(taskKinds, b.Kind), b.Used.Cmp(a.Used), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
	})
	return lines, unplaced, nil
}
