package accounting

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
)

// Store is the history that reports are computed from.
type Store interface {
	Usage(ctx context.Context, q history.UsageQuery, bounds []time.Time) ([]map[history.SeriesKey]history.Total, error)
	TaskUsage(ctx context.Context, by history.UsageKey, q history.TaskUsageQuery, from, to time.Time) ([]history.TaskUsageTotal, error)
	Gaps(ctx context.Context, from, to time.Time) ([]history.Gap, error)
	// Since and SampledUntil bound what is recorded.
	Since(ctx context.Context) (time.Time, error)
	SampledUntil(ctx context.Context) (time.Time, error)
}

// Query selects what is reported. Zero fields select everything.
type Query struct {
	// Teams selects lines of teams only, and of these. With nil the lines of a pool add up
	// to what it had.
	Teams          []string
	Pool, Resource string
	// Pools leaves out the teams: what all teams used is one line.
	Pools bool
}

// Kind is what a line is about.
type Kind string

// The kinds, in their order. The lines of a pool, each Own and Borrowed, add up to what
// its nodes had.
const (
	Team      Kind = "team"
	AllTeams  Kind = "teams"     // and queues without a team, of Query.Pools
	NoTeam    Kind = "no team"   // queues without a team
	Outside   Kind = "outside"   // pods that Kueue does not manage
	Unhealthy Kind = "unhealthy" // on nodes that cannot be used
	Idle      Kind = "idle"
)

var kinds = []Kind{Team, AllTeams, NoTeam, Outside, Unhealthy, Idle}

// Used reports whether the amounts of a kind are used quota, own and borrowed.
func (k Kind) Used() bool { return k == Team || k == AllTeams || k == NoTeam }

// Line is the use of one resource of one pool. All amounts are × ms.
type Line struct {
	Pool, Resource string
	Kind           Kind
	Team           string // of the kind Team
	Own            big.Int
	Borrowed       big.Int // beyond the nominal quota
	// Of the kinds Team and AllTeams. Growth is the part of Own and Borrowed that growth of
	// elastic tasks uses, OwnGrowth its part within the nominal quota. Lent is nominal quota
	// that other teams used, part of their Borrowed.
	Growth, OwnGrowth, Lent big.Int
	Cost                    *big.Rat // nil without a price
}

// Amount returns the part of what the nodes of the pool had, × ms.
func (l *Line) Amount() *big.Int { return new(big.Int).Add(&l.Own, &l.Borrowed) }

// Recovered returns what would have been idle without borrowing and growth, × ms.
func (l *Line) Recovered() *big.Int {
	if !l.Kind.Used() {
		return new(big.Int)
	}
	return new(big.Int).Add(&l.Borrowed, &l.OwnGrowth)
}

// used are the measures of the amounts of a line, in their order. Lines of a pool without its
// teams have the first two.
var used = []history.Measure{history.OwnBound, history.BorrowedBound, history.Growth, history.OwnGrowth, history.LentToCohort}

func (l *Line) amounts() []*big.Int {
	return []*big.Int{&l.Own, &l.Borrowed, &l.Growth, &l.OwnGrowth, &l.Lent}
}

// Add adds the amounts and the cost of another line.
func (l *Line) Add(o *Line) {
	more := o.amounts()
	for i, amount := range l.amounts() {
		amount.Add(amount, more[i])
	}
	l.Cost = Sum(l.Cost, o.Cost)
}

// Sum adds two costs, each nil for none.
func Sum(a, b *big.Rat) *big.Rat {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(big.Rat).Add(a, b)
}

func (l *Line) empty() bool {
	return !slices.ContainsFunc(l.amounts(), func(amount *big.Int) bool { return amount.Sign() != 0 })
}

// Report is the use over [From, To).
type Report struct {
	From, To time.Time
	Unknown  time.Duration // without data
	Gaps     []history.Gap // of which Unknown is the sum
	Lines    []*Line       // by resource, pool, kind and team, without those of nothing
}

// measures are what reports are computed from.
var measures = append([]history.Measure{history.Physical, history.Outside, history.Unhealthy}, used...)

// Unit returns how many units of history one unit of a resource is: a device, a vCPU or a
// GiB.
func Unit(resource string) int64 {
	switch {
	case resource == catalog.CPU:
		return 1000
	case resource == catalog.Memory:
		return 1024
	case resources.InBytes(resource):
		return int64(catalog.GiB)
	}
	return 1
}

// Reports returns the report of each interval between two consecutive bounds. What is
// later than the last sample is cut off.
func Reports(ctx context.Context, store Store, q Query, bounds []time.Time, prices Prices) ([]Report, error) {
	until, err := store.SampledUntil(ctx)
	if err != nil {
		return nil, err
	}
	bounds = slices.Clone(bounds)
	for i := range bounds {
		bounds[i] = governance.Earlier(bounds[i], until)
	}
	reports := make([]Report, len(bounds)-1)
	gaps, err := unknown(ctx, store, bounds[0], bounds[len(bounds)-1])
	if err != nil {
		return nil, err
	}
	finer, at := prices.cut(q, bounds)
	selected := history.UsageQuery{Teams: q.Teams, Pool: q.Pool, Resource: q.Resource, Measures: measures}
	if q.Pools {
		selected.Teams = []string{""}
	}
	totals, err := store.Usage(ctx, selected, finer)
	if err != nil {
		return nil, err
	}
	type key struct {
		pool, resource, team string
		kind                 Kind
	}
	lines := make([]map[key]*Line, len(reports))
	for n, of := range totals {
		r := &reports[at[n]]
		if lines[at[n]] == nil {
			lines[at[n]] = map[key]*Line{}
		}
		for _, l := range linesOf(of, q) {
			if price := prices.At(l.Pool, l.Resource, finer[n]); price != nil && l.Kind.Used() {
				l.Cost = price.cost(&l.Own, &l.Borrowed, Unit(l.Resource))
			}
			k := key{l.Pool, l.Resource, l.Team, l.Kind}
			if sum := lines[at[n]][k]; sum != nil {
				sum.Add(l)
			} else {
				lines[at[n]][k] = l
				r.Lines = append(r.Lines, l)
			}
		}
	}
	for i := range reports {
		r := &reports[i]
		r.From, r.To = bounds[i], bounds[i+1]
		for _, gap := range gaps {
			if from, to := governance.Later(gap.From, r.From), governance.Earlier(gap.To, r.To); from.Before(to) {
				r.Unknown += to.Sub(from)
				r.Gaps = append(r.Gaps, history.Gap{From: from, To: to, Reason: gap.Reason})
			}
		}
		slices.SortFunc(r.Lines, func(a, b *Line) int {
			return cmp.Or(quota.Compare(a.Resource, b.Resource), strings.Compare(a.Pool, b.Pool), slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind), strings.Compare(a.Team, b.Team))
		})
	}
	return reports, nil
}

// unknown returns the parts of a range without data; they do not overlap.
func unknown(ctx context.Context, store Store, from, to time.Time) (gaps []history.Gap, err error) {
	since, err := store.Since(ctx)
	if err != nil {
		return nil, err
	}
	found, err := store.Gaps(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if since.IsZero() {
		since = to
	}
	end := from
	for _, gap := range append([]history.Gap{{From: from, To: since}}, found...) {
		if gap.From = governance.Later(gap.From, end); gap.From.Before(gap.To) {
			gaps, end = append(gaps, gap), gap.To
		}
	}
	return gaps, nil
}

// linesOf returns the lines of totals. Idle, and what queues without a team use, are what
// remains of the pool.
func linesOf(totals map[history.SeriesKey]history.Total, q Query) (lines []*Line) {
	teams := map[history.SeriesKey]*Line{} // by the key without a measure
	of := func(key history.SeriesKey) *Line {
		key.Measure = ""
		if teams[key] == nil {
			teams[key] = &Line{Pool: key.Pool, Resource: key.Resource, Kind: Team, Team: key.Team}
			if key.Team == "" {
				teams[key].Kind = NoTeam
				if q.Pools {
					teams[key].Kind = AllTeams
				}
			}
		}
		return teams[key]
	}
	for key, total := range totals {
		l := of(key)
		if i := slices.Index(used, key.Measure); i >= 0 && (i < 2 || l.Kind != NoTeam) {
			l.amounts()[i].Set(total.Sum)
		}
	}
	for key, pool := range teams {
		// Growth is recorded with pods that are on no node yet; Own and Borrowed are not.
		limit(&pool.Growth, pool.Amount())
		limit(&pool.OwnGrowth, &pool.Own)
		if key.Team != "" {
			continue
		}
		idle := &Line{Pool: key.Pool, Resource: key.Resource, Kind: Idle}
		if physical := totals[key.Of(history.Physical)].Sum; physical != nil {
			idle.Own.Set(physical)
		}
		idle.Own.Sub(&idle.Own, pool.Amount())
		for kind, measure := range map[Kind]history.Measure{Outside: history.Outside, Unhealthy: history.Unhealthy} {
			l := &Line{Pool: key.Pool, Resource: key.Resource, Kind: kind}
			if sum := totals[key.Of(measure)].Sum; sum != nil {
				l.Own.Set(sum)
				idle.Own.Sub(&idle.Own, sum)
			}
			lines = append(lines, l)
		}
		lines = append(lines, idle)
	}
	for key, l := range teams {
		if key.Team == "" {
			continue
		}
		key.Team = ""
		if pool := teams[key]; pool != nil {
			pool.Own.Sub(&pool.Own, &l.Own)
			pool.Borrowed.Sub(&pool.Borrowed, &l.Borrowed)
		}
	}
	return slices.DeleteFunc(slices.AppendSeq(lines, maps.Values(teams)), (*Line).empty)
}

// limit lowers an amount to a maximum.
func limit(amount, maximum *big.Int) {
	if amount.Cmp(maximum) > 0 {
		amount.Set(maximum)
	}
}
