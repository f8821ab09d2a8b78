package accounting

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance/history"

	"golang.org/x/sync/errgroup"
)

// TaskKind is what a TaskLine is about.
type TaskKind string

// The kinds, in their order. Task records have the quota that tasks used, nodes the pods
// that ran: the last two are the difference, so that the lines of a pool add up to what
// teams used of its nodes.
const (
	Tasks      TaskKind = "tasks"                // of one name
	OtherTasks TaskKind = "other tasks"          // smaller than those
	Unplaced   TaskKind = "without a node"       // quota of pods on no node; negative
	Unrecorded TaskKind = "not in a task record" // negative where records have more
)

var taskKinds = []TaskKind{Tasks, OtherTasks, Unplaced, Unrecorded}

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
// key of tasks, the largest first. limit bounds the names that have lines.
func TaskReport(ctx context.Context, store Store, by history.UsageKey, q Query, from, to time.Time, limit int) ([]TaskLine, error) {
	until, err := store.SampledUntil(ctx)
	if err != nil {
		return nil, err
	}
	if to = earlier(to, until); !from.Before(to) {
		return nil, nil
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
		return nil, err
	}
	var lines []TaskLine
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
	shown := map[string]TaskLine{}
	for _, total := range found {
		add(TaskLine{Pool: total.Pool, Kind: Tasks, Name: total.Key, Used: total.Sum, Preempted: total.Preempted})
		sum := shown[total.Pool]
		shown[total.Pool] = TaskLine{Used: plus(sum.Used, total.Sum), Preempted: plus(sum.Preempted, total.Preempted)}
	}
	if limit > 0 && len(found) == limit {
		sums := map[string]TaskLine{}
		for _, total := range all {
			sum := sums[total.Pool]
			sums[total.Pool] = TaskLine{Used: plus(sum.Used, total.Sum), Preempted: plus(sum.Preempted, total.Preempted)}
		}
		for pool, sum := range sums {
			other := TaskLine{Pool: pool, Kind: OtherTasks, Used: new(big.Int).Sub(sum.Used, plus(shown[pool].Used, nil)), Preempted: new(big.Int).Sub(sum.Preempted, plus(shown[pool].Preempted, nil))}
			if other.Used.Sign() != 0 {
				add(other)
			}
		}
	}
	unplaced := map[string]*big.Int{}
	for key, total := range measured[0] {
		switch key.Measure {
		case history.Unplaced:
			unplaced[key.Pool] = plus(unplaced[key.Pool], total.Sum)
		case history.OwnBound, history.BorrowedBound:
			subtract(key.Pool, new(big.Int).Neg(total.Sum))
		}
	}
	for pool, sum := range unplaced {
		if sum.Sign() != 0 {
			add(TaskLine{Pool: pool, Kind: Unplaced, Used: new(big.Int).Neg(sum), Preempted: new(big.Int)})
		}
	}
	for pool, sum := range left {
		if sum.Sign() != 0 {
			lines = append(lines, TaskLine{Pool: pool, Kind: Unrecorded, Used: sum, Preempted: new(big.Int)})
		}
	}
	slices.SortStableFunc(lines, func(a, b TaskLine) int {
		return cmp.Or(slices.Index(taskKinds, a.Kind)-slices.Index(taskKinds, b.Kind), b.Used.Cmp(a.Used), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
	})
	return lines, nil
}

// plus returns the sum of two amounts, each nil for 0.
func plus(a, b *big.Int) *big.Int {
	sum := new(big.Int)
	for _, of := range []*big.Int{a, b} {
		if of != nil {
			sum.Add(sum, of)
		}
	}
	return sum
}
