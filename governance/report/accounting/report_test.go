package accounting_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"
	"kuota.dev/kuota/governance/report/accounting"
)

var start = time.Date(2026, 3, 27, 17, 41, 12, 0, time.UTC) // summer time begins in Berlin two days later

// model is a random history, second by second.
type model struct {
	from    time.Time
	states  []map[history.SeriesKey]int64
	seconds []int // the state at each second; -1 without data
}

func key(team, pool string, m history.Measure) history.SeriesKey {
	return history.SeriesKey{Team: team, Pool: pool, Resource: catalog.GPU, Measure: m}
}

// randomAmounts returns the amounts of pools and of teams: what the recorder writes. Some
// usage is that of queues without a team.
func randomAmounts(r *rand.Rand, teams, pools []string) map[history.SeriesKey]int64 {
	all := map[history.SeriesKey]int64{}
	for _, pool := range pools {
		sum := map[history.Measure]int64{}
		for _, team := range append(teams, "") {
			own, borrowed, lent := r.Int64N(4)*r.Int64N(8), r.Int64N(3)*r.Int64N(8), r.Int64N(3)
			growth := r.Int64N(4) * r.Int64N(2) * (own + borrowed) / 3
			if team != "" {
				all[key(team, pool, history.OwnBound)], all[key(team, pool, history.BorrowedBound)] = own, borrowed
				all[key(team, pool, history.Growth)], all[key(team, pool, history.OwnGrowth)] = growth, max(0, growth-borrowed)
				all[key(team, pool, history.LentToCohort)] = lent
				all[key(team, pool, history.Unplaced)] = r.Int64N(3)
				all[key("", pool, history.Unplaced)] += all[key(team, pool, history.Unplaced)]
			}
			sum[history.OwnBound] += own
			sum[history.BorrowedBound] += borrowed
		}
		for _, m := range []history.Measure{history.Outside, history.Unhealthy, history.Idle} {
			sum[m] = r.Int64N(5) * r.Int64N(8)
		}
		for m, amount := range sum {
			all[key("", pool, m)] = amount
			all[key("", pool, history.Physical)] += amount
		}
	}
	return all
}

// record writes a random history of some days into a store.
func record(t *testing.T, store *history.Store, r *rand.Rand) *model {
	t.Helper()
	m := &model{from: start}
	before := map[history.SeriesKey]int64{}
	teams, pools := []string{"vision", "deleted"}, []string{"a100", "removed"}
	length := 5 * 24 * 3600
	for at := 0; at < length; {
		if at > length/2 { // both go in the middle
			teams, pools = []string{"vision"}, []string{"a100"}
		}
		amounts := randomAmounts(r, teams, pools)
		sample := history.Sample{At: start.Add(time.Duration(at) * time.Second)}
		for k := range before {
			if _, ok := amounts[k]; !ok {
				amounts[k] = 0
			}
		}
		for k, amount := range amounts {
			if was, ok := before[k]; !ok || was != amount {
				sample.Amounts = append(sample.Amounts, history.Amount{SeriesKey: k, Amount: amount})
			}
		}
		must(t, store.AppendSamples(t.Context(), []history.Sample{sample}))
		before = amounts
		m.states = append(m.states, amounts)
		for n := 1 + r.IntN(2*3600); n > 0; n-- {
			m.seconds = append(m.seconds, len(m.states)-1)
			at++
		}
		if r.IntN(12) == 0 {
			must(t, store.AppendSamples(t.Context(), []history.Sample{{At: start.Add(time.Duration(at) * time.Second)}}))
			from := start.Add(time.Duration(at) * time.Second)
			for n := 1 + r.IntN(3*3600); n > 0; n-- {
				m.seconds = append(m.seconds, -1)
				at++
			}
			must(t, store.RecordGap(t.Context(), history.Gap{From: from, To: start.Add(time.Duration(at) * time.Second), Reason: "The console was not running."}))
			before = map[history.SeriesKey]int64{}
		}
	}
	must(t, store.AppendSamples(t.Context(), []history.Sample{{At: m.end()}}))
	return m
}

func (m *model) end() time.Time { return m.from.Add(time.Duration(len(m.seconds)) * time.Second) }

// expected adds up every second of a range, by pool, team and measure; cost is by pool and
// team. Prices are in the order of time, and each time has one for every pool.
func (m *model) expected(from, to time.Time, prices accounting.Prices) (sums map[string]*big.Int, cost map[string]*big.Rat, unknown time.Duration) {
	sums, cost = map[string]*big.Int{}, map[string]*big.Rat{}
	lasted := map[[2]int]int64{} // seconds, by state and number of prices that hold or held
	for n, state := range m.seconds {
		at := m.from.Add(time.Duration(n) * time.Second)
		if at.Before(from) || !at.Before(to) {
			continue
		}
		held := 0
		for held < len(prices.List) && !prices.List[held].From.After(at) {
			held++
		}
		lasted[[2]int{state, held}]++
	}
	for of, seconds := range lasted {
		if of[0] < 0 {
			unknown += time.Duration(seconds) * time.Second
			continue
		}
		for k, amount := range m.states[of[0]] {
			name := fmt.Sprint(k.Pool, " ", k.Team, " ", k.Measure)
			if sums[name] == nil {
				sums[name] = new(big.Int)
			}
			sums[name].Add(sums[name], big.NewInt(amount*seconds*1000))
			if k.Team == "" || k.Measure != history.OwnBound && k.Measure != history.BorrowedBound {
				continue
			}
			for _, p := range slices.Backward(prices.List[:of[1]]) {
				if p.Pool == k.Pool {
					hour := p.Own
					if k.Measure == history.BorrowedBound {
						hour = p.Borrowed
					}
					if amount > 0 {
						cost[k.Pool+" "+k.Team] = accounting.Sum(cost[k.Pool+" "+k.Team], new(big.Rat).Mul(hour, big.NewRat(amount*seconds, 3600)))
					}
					break
				}
			}
		}
	}
	return sums, cost, unknown
}

// TestReports compares reports of random histories with sums over all of their seconds,
// on both databases: a team and a pool that are deleted in the middle, gaps, prices that
// change within periods, days of 23 hours. Reports by class, kind and task add up too.
func TestReports(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testReports(t, filepath.Join(t.TempDir(), "history.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { testReports(t, historytest.Start(t).Database(t)+historytest.Patient) })
}

func testReports(t *testing.T, url string) {
	store, err := history.Open(t.Context(), url, history.Options{DetailRetention: 1000 * 24 * time.Hour})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	r := rand.New(rand.NewPCG(23, 2))
	m := record(t, store, r)
	recordTasks(t, store, m, r)
	prices := accounting.Prices{Currency: "EUR"}
	for n, at := range []time.Duration{24*time.Hour + 7*time.Second, 50*time.Hour + 1801*time.Second, 99*time.Hour + 59*time.Second} {
		for _, pool := range []string{"a100", "removed"} {
			prices.List = append(prices.List, accounting.Price{Pool: pool, Resource: catalog.GPU, From: start.Add(at), Own: big.NewRat(int64(n)*250+199, 100), Borrowed: big.NewRat(int64(n)*3+7, 1000)})
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	for _, g := range []accounting.Granularity{accounting.Day, accounting.Week, accounting.Month} {
		for _, location := range []*time.Location{time.UTC, berlin} {
			from := g.Begin(start.In(location)).Add(-48 * time.Hour)
			bounds := g.Bounds(from, m.end().Add(24*time.Hour))
			m.check(t, store, bounds, prices)
			m.checkTasks(t, store, bounds)
		}
	}
	for range 6 { // not at midnight
		from := m.from.Add(time.Duration(r.IntN(len(m.seconds))) * time.Second)
		m.check(t, store, []time.Time{from, from.Add(time.Duration(r.IntN(200000)) * time.Second)}, prices)
	}
}

func orZero(cost *big.Rat) *big.Rat {
	if cost == nil {
		return new(big.Rat)
	}
	return cost
}

// check compares the reports of periods with the model.
func (m *model) check(t *testing.T, store *history.Store, bounds []time.Time, prices accounting.Prices) {
	t.Helper()
	reports, err := accounting.Reports(t.Context(), store, accounting.Query{}, bounds, prices)
	must(t, err)
	pools, err := accounting.Reports(t.Context(), store, accounting.Query{Pools: true}, bounds, accounting.Prices{})
	must(t, err)
	own, err := accounting.Reports(t.Context(), store, accounting.Query{Teams: []string{"deleted"}}, bounds, prices)
	must(t, err)
	for n, report := range reports {
		sums, cost, unknown := m.expected(report.From, report.To, prices)
		unknown += max(0, min(m.from.Sub(report.From), report.To.Sub(report.From)))
		if report.Unknown != unknown {
			t.Errorf("%s to %s: unknown is %s, want %s", report.From, report.To, report.Unknown, unknown)
		}
		physical := map[string]*big.Int{"a100": new(big.Int), "removed": new(big.Int)}
		lines := map[string]bool{}
		for _, l := range report.Lines {
			physical[l.Pool].Add(physical[l.Pool], l.Amount())
			lines[fmt.Sprint(l.Pool, " ", l.Team)] = true
			want := func(measure history.Measure, got *big.Int) {
				t.Helper()
				sum := sums[fmt.Sprint(l.Pool, " ", l.Team, " ", measure)]
				if l.Kind == accounting.NoTeam { // the pool without its teams
					for _, team := range []string{"vision", "deleted"} {
						if of := sums[fmt.Sprint(l.Pool, " ", team, " ", measure)]; of != nil {
							sum = new(big.Int).Sub(sum, of)
						}
					}
				}
				if sum == nil {
					sum = new(big.Int)
				}
				if got.Cmp(sum) != 0 {
					t.Errorf("%s to %s: %s of %s %s in %s is %s, want %s", report.From, report.To, measure, l.Kind, l.Team, l.Pool, got, sum)
				}
			}
			switch l.Kind {
			case accounting.Outside, accounting.Unhealthy, accounting.Idle:
				want(history.Measure(l.Kind), &l.Own)
			case accounting.Team:
				want(history.Growth, &l.Growth)
				want(history.OwnGrowth, &l.OwnGrowth)
				want(history.LentToCohort, &l.Lent)
				if wanted, got := orZero(cost[l.Pool+" "+l.Team]), orZero(l.Cost); wanted.Cmp(got) != 0 {
					t.Errorf("%s to %s: %s costs %v in %s, want %v", report.From, report.To, l.Team, l.Cost, l.Pool, wanted)
				}
				fallthrough
			case accounting.NoTeam:
				want(history.OwnBound, &l.Own)
				want(history.BorrowedBound, &l.Borrowed)
			}
		}
		for pool, got := range physical {
			want := sums[fmt.Sprint(pool, "  ", history.Physical)]
			if want == nil {
				want = new(big.Int)
			}
			if got.Cmp(want) != 0 {
				t.Errorf("%s to %s: the lines of %s add up to %s, want %s", report.From, report.To, pool, got, want)
			}
			for _, team := range []string{"vision", "deleted"} {
				if used := sums[fmt.Sprint(pool, " ", team, " ", history.OwnBound)]; used != nil && used.Sign() > 0 && !lines[pool+" "+team] {
					t.Errorf("%s to %s: no line of %s in %s", report.From, report.To, team, pool)
				}
			}
			all := new(big.Int)
			for _, l := range pools[n].Lines {
				if l.Pool == pool {
					all.Add(all, l.Amount())
				}
				if l.Kind == accounting.Team || l.Kind == accounting.NoTeam {
					t.Errorf("a report of pools has a line of %s", l.Kind)
				}
			}
			if all.Cmp(want) != 0 {
				t.Errorf("%s to %s: the lines of pool %s add up to %s, want %s", report.From, report.To, pool, all, want)
			}
		}
		for _, l := range own[n].Lines {
			if l.Kind != accounting.Team || l.Team != "deleted" {
				t.Errorf("a report of one team has a line of %s %s", l.Kind, l.Team)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Growth that has no node yet is not part of the hours, as the pods of other tasks are not.
func TestReportOfGrowthWithoutNode(t *testing.T) {
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	var amounts []history.Amount
	for measure, amount := range map[history.Measure]int64{history.OwnBound: 2, history.BorrowedBound: 1, history.Growth: 8, history.OwnGrowth: 7} {
		for _, team := range []string{"", "vision"} {
			amounts = append(amounts, history.Amount{SeriesKey: key(team, "a100", measure), Amount: amount})
		}
	}
	must(t, store.AppendSamples(t.Context(), []history.Sample{{At: start, Amounts: amounts}, {At: start.Add(time.Second)}}))
	for _, q := range []accounting.Query{{}, {Pools: true}} {
		reports, err := accounting.Reports(t.Context(), store, q, []time.Time{start, start.Add(time.Second)}, accounting.Prices{})
		must(t, err)
		for _, l := range reports[0].Lines {
			if l.Kind.Used() && (l.Growth.Cmp(big.NewInt(3000)) != 0 || l.OwnGrowth.Cmp(big.NewInt(2000)) != 0 || l.Recovered().Cmp(l.Amount()) > 0) {
				t.Errorf("%s used %s, of it %s by growth and %s by own growth", l.Kind, l.Amount(), &l.Growth, &l.OwnGrowth)
			}
		}
	}
}

// An unreachable database is an error.
func TestReportsFail(t *testing.T) {
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	must(t, err)
	reports, err := accounting.Reports(t.Context(), store, accounting.Query{}, []time.Time{start, start.Add(time.Hour)}, accounting.Prices{})
	must(t, err)
	if len(reports) != 1 || len(reports[0].Lines) != 0 {
		t.Errorf("an empty history has %+v", reports)
	}
	store.Close()
	if _, err := accounting.Reports(context.Background(), store, accounting.Query{}, []time.Time{start, start.Add(time.Hour)}, accounting.Prices{}); err == nil {
		t.Error("a closed database reports no error")
	}
}

// recordTasks records tasks of both teams at random, one after the other, so that what
// they used has nothing to do with what was measured.
func recordTasks(t *testing.T, store *history.Store, m *model, r *rand.Rand) {
	t.Helper()
	for n := range 200 {
		began := m.from.Add(time.Duration(r.IntN(len(m.seconds))) * time.Second)
		uid := fmt.Sprint("task-", n)
		of := history.Record{Task: history.Task{UID: uid, Namespace: "ns", Name: uid, Kind: "Job", Team: []string{"vision", "deleted"}[n%2], PriorityClass: []string{"", "low", "high"}[n%3], SubmittedAt: began}}
		of.Usage = []history.TaskUsage{{WorkloadUID: "w-" + uid, Began: began, Amounts: map[history.PoolResource]int64{{Pool: []string{"a100", "removed"}[r.IntN(2)], Resource: catalog.GPU}: 1 + r.Int64N(2)}}}
		if n > 3 {
			of.Usage[0].Ended = began.Add(time.Duration(r.IntN(50000)) * time.Second)
		}
		must(t, store.RecordTasks(t.Context(), []history.Record{of}))
	}
}

// checkTasks checks that reports by class, kind and task add up to the quota that teams
// used of each pool, with few and with many lines, and that no line is negative.
func (m *model) checkTasks(t *testing.T, store *history.Store, bounds []time.Time) {
	t.Helper()
	kinds := map[accounting.TaskKind]bool{}
	for n, from := range bounds[:len(bounds)-1] {
		sums, _, _ := m.expected(from, bounds[n+1], accounting.Prices{})
		for _, by := range []history.UsageKey{history.UsageByClass, history.UsageByKind, history.UsageByTask} {
			for _, teams := range [][]string{nil, {"deleted"}} {
				for _, limit := range []int{0, 5} {
					lines, unplaced, err := accounting.TaskReport(t.Context(), store, by, accounting.Query{Teams: teams, Resource: catalog.GPU}, from, bounds[n+1], limit)
					must(t, err)
					got, tasks, want := map[string]*big.Int{"a100": new(big.Int), "removed": new(big.Int)}, map[string]*big.Int{"a100": new(big.Int), "removed": new(big.Int)}, map[string]*big.Int{"a100": new(big.Int), "removed": new(big.Int)}
					for _, l := range lines {
						got[l.Pool].Add(got[l.Pool], l.Used)
						kinds[l.Kind] = true
						if l.Kind != accounting.Unrecorded {
							tasks[l.Pool].Add(tasks[l.Pool], l.Used)
						}
						if l.Used.Sign() <= 0 {
							t.Errorf("%s used %s", l.Name, l.Used)
						}
					}
					for pool, sum := range want {
						for _, measure := range []history.Measure{history.OwnBound, history.BorrowedBound, history.Unplaced} {
							team := ""
							if teams != nil {
								team = teams[0]
							}
							if of := sums[fmt.Sprint(pool, " ", team, " ", measure)]; of != nil {
								sum.Add(sum, of)
								if measure == history.Unplaced {
									unplaced.Sub(unplaced, of)
								}
							}
						}
						if tasks[pool].Cmp(sum) > 0 {
							sum = tasks[pool]
						}
						if got[pool].Cmp(sum) != 0 {
							t.Errorf("%s to %s by %s of %v: the lines of %s add up to %s, want %s", from, bounds[n+1], by, teams, pool, got[pool], sum)
						}
					}
					if unplaced.Sign() != 0 {
						t.Errorf("%s to %s by %s of %v: what was without a node differs by %s", from, bounds[n+1], by, teams, unplaced)
					}
				}
			}
		}
	}
	for _, kind := range []accounting.TaskKind{accounting.Tasks, accounting.OtherTasks, accounting.Unrecorded} {
		if !kinds[kind] {
			t.Errorf("no line of %s", kind)
		}
	}
}
