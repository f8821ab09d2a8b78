package handlerstest

import (
	"context"
	"math/big"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/revisions"
)

// HistoryBackend is history in memory. Like the store, it answers for the teams that
// it is asked of, and knows nothing of who asks.
type HistoryBackend struct {
	began    time.Time
	Classes  map[string][]history.ClassStats // by team
	Records  []history.Task
	EventsOf map[string][]history.Event
	Held     map[history.SeriesKey]int64
	Scales   map[string][]history.ScaleEvent    // by UID of the task
	Starts   map[string][]history.TrainingStart // by UID of the task
	Entries  []history.Activity                 // the latest first
	Failure  error
	// TrendGroups are the trends of the last interval, TrendsBy and TrendsOf what was asked last.
	TrendGroups map[string]history.Trend
	TrendsBy    history.TrendKey
	TrendsOf    []string
	// UsageTotals are the runs of every range, UsageOf what was asked last.
	UsageTotals map[history.UsageKey][]history.TaskUsageTotal
	UsageOf     history.TaskUsageQuery
	Queries     []history.Query
	From        time.Time // that classes were asked from last
	Asked       int
}

func (d *HistoryBackend) Since(context.Context) (time.Time, error) { return d.began, d.Failure }

func (d *HistoryBackend) ClassStats(_ context.Context, teams []string, from, _ time.Time) (sums []history.ClassStats, _ error) {
	d.From = from
	d.Asked++
	for team, of := range d.Classes {
		if teams == nil || slices.Contains(teams, team) {
			sums = append(sums, of...)
		}
	}
	return sums, d.Failure
}

func (d *HistoryBackend) Trends(_ context.Context, by history.TrendKey, teams []string, _, _ time.Time, buckets int) (map[string][]history.Trend, error) {
	d.TrendsBy, d.TrendsOf = by, teams
	found := map[string][]history.Trend{}
	for name, trend := range d.TrendGroups {
		found[name] = make([]history.Trend, buckets)
		found[name][buckets-1] = trend
	}
	return found, d.Failure
}

func (d *HistoryBackend) Tasks(_ context.Context, q history.Query) (found []history.Task, _ error) {
	d.Queries = append(d.Queries, q)
	for _, t := range d.Records {
		if (q.Teams == nil || slices.Contains(q.Teams, t.Team)) && (q.Name == "" || q.Name == t.Name && q.Namespace == t.Namespace && strings.EqualFold(q.Kind, t.Kind)) && (q.Limit == 0 || len(found) < q.Limit) {
			found = append(found, t)
		}
	}
	return found, d.Failure
}

// Activity answers by team, object, time and limit.
func (d *HistoryBackend) Activity(_ context.Context, q history.ActivityQuery) (found []history.Activity, _ error) {
	for _, e := range d.Entries {
		older := q.Before == nil || e.At.Before(q.Before.At) || e.At.Equal(q.Before.At) && e.ID < q.Before.ID
		if older && (q.Teams == nil || slices.Contains(q.Teams, e.Team)) && (q.UID == "" || q.UID == e.UID) && (q.Limit == 0 || len(found) < q.Limit) {
			found = append(found, e)
		}
	}
	return found, d.Failure
}

func (d *HistoryBackend) Timeline(_ context.Context, uid string) (history.Task, []history.Event, bool, error) {
	for _, t := range d.Records {
		if t.UID == uid {
			return t, d.EventsOf[uid], true, d.Failure
		}
	}
	return history.Task{}, nil, false, d.Failure
}

func (d *HistoryBackend) TrainingStarts(_ context.Context, uid string, _ int) ([]history.TrainingStart, error) {
	return d.Starts[uid], d.Failure
}

func (d *HistoryBackend) ScaleEvents(_ context.Context, uid string, limit int) ([]history.ScaleEvent, error) {
	events := d.Scales[uid]
	return events[max(0, len(events)-limit):], d.Failure
}

func (d *HistoryBackend) Series(_ context.Context, keys []history.SeriesKey, from, to time.Time, buckets int) (map[history.SeriesKey][]history.Point, error) {
	series := map[history.SeriesKey][]history.Point{}
	for _, key := range keys {
		for i := range buckets {
			series[key] = append(series[key], history.Point{At: from.Add(to.Sub(from) / time.Duration(buckets) * time.Duration(i)), Value: float64(d.Held[key]), Known: i > 0})
		}
	}
	return series, d.Failure
}

// AboveSince answers for the amounts of Held, ten minutes after from.
func (d *HistoryBackend) AboveSince(_ context.Context, sums []history.Above, from time.Time) (times []time.Time, _ error) {
	for _, sum := range sums {
		at, amount := time.Time{}, int64(0)
		for _, key := range sum.Keys {
			amount += d.Held[key]
		}
		if amount > sum.Amount {
			at = from.Add(10 * time.Minute)
		}
		times = append(times, at)
	}
	return times, d.Failure
}

func (d *HistoryBackend) Totals(_ context.Context, keys []history.SeriesKey, from, to time.Time) (map[history.SeriesKey]history.Total, error) {
	totals := map[history.SeriesKey]history.Total{}
	for _, key := range keys {
		totals[key] = history.Total{Sum: big.NewInt(d.Held[key] * to.Sub(from).Milliseconds()), Known: to.Sub(from)}
	}
	return totals, d.Failure
}

// Usage answers by team, pool and resource: each series has its value from the beginning.
func (d *HistoryBackend) Usage(_ context.Context, q history.UsageQuery, bounds []time.Time) (found []map[history.SeriesKey]history.Total, _ error) {
	for i, from := range bounds[:len(bounds)-1] {
		if from.Before(d.began) {
			from = d.began
		}
		totals, length := map[history.SeriesKey]history.Total{}, bounds[i+1].Sub(from)
		for key, amount := range d.Held {
			if (q.Teams == nil || slices.Contains(q.Teams, key.Team)) && (q.Pool == "" || q.Pool == key.Pool) && (q.Resource == "" || q.Resource == key.Resource) && length > 0 {
				totals[key] = history.Total{Sum: big.NewInt(amount * length.Milliseconds()), Known: length}
			}
		}
		found = append(found, totals)
	}
	return found, d.Failure
}

// TaskUsage answers with UsageTotals by key.
func (d *HistoryBackend) TaskUsage(_ context.Context, by history.UsageKey, q history.TaskUsageQuery, _, _ time.Time) ([]history.TaskUsageTotal, error) {
	d.UsageOf = q
	return d.UsageTotals[by], d.Failure
}

// TasksOf answers with the tasks of Records.
func (d *HistoryBackend) TasksOf(_ context.Context, uids []string) (map[string]history.Task, error) {
	found := map[string]history.Task{}
	for _, r := range d.Records {
		if slices.Contains(uids, r.UID) {
			found[r.UID] = r
		}
	}
	return found, d.Failure
}

func (d *HistoryBackend) Recorded(context.Context) (pools, resources []string, err error) {
	for key := range d.Held {
		pools, resources = append(pools, key.Pool), append(resources, key.Resource)
	}
	slices.Sort(pools)
	slices.Sort(resources)
	return slices.Compact(pools), slices.Compact(resources), d.Failure
}

// SampledUntil is two days after the beginning.
func (d *HistoryBackend) SampledUntil(context.Context) (time.Time, error) {
	return d.began.Add(48 * time.Hour), d.Failure
}

func (d *HistoryBackend) Gaps(context.Context, time.Time, time.Time) ([]history.Gap, error) {
	return nil, d.Failure
}

var (
	Noon              = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	OwnScope          = access.ScopeOf("ns")
	DeletedTask       = history.Task{Namespace: "ns", Kind: "Job", Name: "train", UID: "u1", Team: "vision", PriorityClass: "dev-priority", Priority: 10, State: "Succeeded", Requests: map[string]resources.Amount{catalog.GPU: 4}, Pools: []string{H100}, SubmittedAt: Noon, FinishedAt: Noon.Add(2 * time.Hour), DeletedAt: Noon.Add(3 * time.Hour), Preemptions: 1, RunTime: 75 * time.Minute}
	OtherTask         = history.Task{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "u9", Team: "secret-team", PriorityClass: "secret-priority", State: "Failed", SubmittedAt: Noon, FinishedAt: Noon.Add(time.Hour)}
	DeletedTaskEvents = []history.Event{
		{At: Noon, Type: "Submitted", Ran: -1},
		{WorkloadUID: "w1", At: Noon.Add(10 * time.Minute), Type: "Admitted", Ran: -1},
		{WorkloadUID: "w1", At: Noon.Add(40 * time.Minute), Type: "Preempted", Reason: "InCohortReclamation", Message: "path: /secret-cq", Ran: 30 * time.Minute, Preemptor: history.TaskRef{Namespace: "secret-ns", Kind: "Job", Name: "secret-job", UID: "u9", Team: "secret-team"}},
		{WorkloadUID: "w1", At: Noon.Add(75 * time.Minute), Type: "Admitted", Ran: -1},
		{WorkloadUID: "w1", At: Noon.Add(2 * time.Hour), Type: "Finished", Message: "hidden finished", Ran: -1},
	}
)

func NewHistory() *HistoryBackend {
	return &HistoryBackend{
		began: Noon, Records: []history.Task{DeletedTask, OtherTask}, EventsOf: map[string][]history.Event{"u1": DeletedTaskEvents, "u9": {{At: Noon, Type: "Submitted"}}},
		Classes: map[string][]history.ClassStats{
			"vision":      {{Class: "dev-priority", Waits: 2, Runs: 2, WaitMillis: 90_000, RunMillis: 7_200_000, LongestWait: time.Minute, LongestRun: 90 * time.Minute}},
			"secret-team": {{Class: "secret-priority", Runs: 1, RunMillis: 1000, LongestRun: time.Second}},
		},
	}
}

// RevisionsBackend has versions in memory.
type RevisionsBackend struct {
	Versions  map[revisions.Owner][]revisions.Version // the newest first
	NoHistory error                                   // returned by all reads, if set
	asked     []revisions.Owner
}

func (d *RevisionsBackend) History(_ context.Context, _ governance.User, of revisions.Owner) ([]revisions.Revision, error) {
	d.asked = append(d.asked, of)
	var all []revisions.Revision
	for _, v := range d.Versions[of] {
		all = append(all, v.Revision)
	}
	return all, d.NoHistory
}

func (d *RevisionsBackend) Version(_ context.Context, _ governance.User, of revisions.Owner, number int64) (revisions.Version, error) {
	i := slices.IndexFunc(d.Versions[of], func(v revisions.Version) bool { return v.Number == number })
	if d.NoHistory != nil || i < 0 {
		return revisions.Version{}, &governance.Error{Kind: governance.NotFound, Message: "Version is not kept."}
	}
	return d.Versions[of][i], nil
}

func (d *RevisionsBackend) DeletedTeams([]v1alpha1.ComputeAllocation) []string {
	var teams []string
	for of, versions := range d.Versions {
		if of != revisions.PolicyOwner() && versions[0].Deleted {
			teams = append(teams, strings.Fields(versions[0].Summary)[0])
		}
	}
	return teams
}
