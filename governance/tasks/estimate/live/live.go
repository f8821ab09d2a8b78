// Package live estimates when the tasks that wait now start: it draws run times and
// submissions from history, asks package simulate, and records the estimates, so that
// later ones are calibrated by what happened.
//
//	history.RunTimes ──► estimate.Runs ─────────┐
//	history.Tasks ─────► estimate.Submissions ──┴► simulate (worker) ──► estimate.Forecast ──► Range
//	history.Estimates ─► estimate.Calibration ──────────────────────────────────────────────────▲ │
//	       ▲────────────────────────────── the leader records the first one of each Workload ─────┘
package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/estimate"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Horizon is how much virtual time is simulated.
	Horizon = 5 * 24 * time.Hour
	// Draws is how often a cluster is simulated, with other run times and submissions
	// each time.
	Draws = 20

	// maxAge is how old the estimates of an open page are at most, unless computing
	// them takes long: at most a quarter of the time is spent on it.
	maxAge = time.Minute
	// recordPeriod is how often the leader makes estimates while nobody looks, so that
	// there are enough to calibrate by.
	recordPeriod = 10 * time.Minute
	// historyAge is how long past runs and submissions are used without reading them again.
	historyAge = 5 * time.Minute
	// timeout bounds the computation of estimates.
	timeout = time.Minute

	maxRuns      = 20_000 // past runs, and past submissions, that are read
	maxEstimates = 5_000  // past estimates that are read
)

// Simulator answers questions about the cluster: see package simulate/live.
type Simulator interface {
	Snapshot(ctx context.Context) (*simulate.Snapshot, error)
	Answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error)
}

// Store is the part of history.Store that estimates need.
type Store interface {
	history.Asider
	RunTimes(ctx context.Context, limit int) ([]history.RunTime, error)
	Tasks(ctx context.Context, q history.Query) ([]history.Task, error)
	Estimates(ctx context.Context, limit int) ([]history.Estimate, error)
	RecordEstimates(ctx context.Context, estimates []history.Estimate) error
}

// Estimator estimates the starts of all waiting tasks at once. It is safe for
// concurrent use.
type Estimator struct {
	Simulator Simulator
	Store     Store
	// Task returns the task of a Workload; nil for none.
	Task  func(workload types.UID) *tasks.Task
	Teams func(ctx context.Context) (clusterstate.Teams, error)
	// Leader elects the replica that records; nil means that there is only one.
	Leader *leader.Leader
	// Changed signals that there are new estimates.
	Changed func()
	Log     *slog.Logger
	Now     func() time.Time

	mu      sync.Mutex
	latest  *Estimates
	took    time.Duration
	running bool

	computing   sync.Mutex // guards what follows
	runs        *estimate.Runs
	submissions estimate.Submissions
	submitted   []history.Task // by Submission.Workload
	readAt      time.Time      // when these three were read
}

// Estimates are the estimates of one moment.
type Estimates struct {
	At     time.Time
	Runs   int             // that are recorded
	Record estimate.Record // of past estimates
	Starts map[types.UID]Start
	Failed error // why there are none; nil if there are
}

// Start is the estimate of one Workload.
type Start struct {
	estimate.Range      // from Estimates.At on; zero with Late, Exceeds and Unknown
	Late           bool // it probably does not start within Horizon
	Exceeds        bool // it requests more than its queue can ever have
	Unknown        bool // so many tasks wait before it that the simulations ended earlier
}

// TooFew reports whether too few runs are recorded for estimates.
func (e *Estimates) TooFew() bool { return e.Failed == nil && e.Runs < estimate.MinRuns }

// Latest returns the latest estimates without waiting; nil before the first. If they
// are old, or do not contain a Workload, new ones are computed in the background, and
// Changed is called.
func (e *Estimator) Latest(workload types.UID) *Estimates {
	e.mu.Lock()
	defer e.mu.Unlock()
	age := maxAge
	if e.latest != nil {
		if _, known := e.latest.Starts[workload]; !known {
			age = maxAge / 6
		}
	}
	if !e.running && (e.latest == nil || e.Now().Sub(e.latest.At) > max(age, 4*e.took)) {
		e.running = true
		go e.update(context.Background())
	}
	return e.latest
}

// Run makes and records estimates regularly while this replica leads, until ctx ends.
func (e *Estimator) Run(ctx context.Context) error {
	e.Leader.Lead(ctx, func(ctx context.Context) {
		ticker := time.NewTicker(recordPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				e.estimateUnattended(ctx)
			}
		}
	})
	return nil
}

// estimateUnattended records the estimates of tasks that have none, which calibrate
// later ones.
func (e *Estimator) estimateUnattended(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := e.compute(ctx, true); err != nil {
		e.Log.Info("starts not estimated", "error", err)
	}
}

// update computes estimates for pages, while running is set.
func (e *Estimator) update(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := e.Now()
	found, err := e.compute(ctx, false)
	if err != nil {
		e.Log.Info("starts not estimated", "error", err)
		found = &Estimates{At: began, Failed: err}
	}
	e.mu.Lock()
	e.latest, e.took, e.running = found, e.Now().Sub(began), false
	e.mu.Unlock()
	e.Changed()
}

// compute returns the result of computeAll, or that it panicked.
func (e *Estimator) compute(ctx context.Context, unattended bool) (found *Estimates, err error) {
	err = governance.Recovered(func() (err error) {
		found, err = e.computeAll(ctx, unattended)
		return err
	})
	return found, err
}

// computeAll estimates the starts of all tasks that wait and, unattended, only of those
// whose estimate is not recorded.
func (e *Estimator) computeAll(ctx context.Context, unattended bool) (*Estimates, error) {
	e.computing.Lock()
	defer e.computing.Unlock()
	if err := e.readHistory(ctx); err != nil {
		return nil, err
	}
	s, err := e.Simulator.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	found := &Estimates{At: s.Time, Runs: e.runs.Count(), Starts: map[types.UID]Start{}}
	if found.TooFew() {
		return found, nil
	}
	teams, err := e.Teams(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := e.Store.Estimates(ctx, maxEstimates)
	if err != nil {
		return nil, err
	}
	past := pastOf(recorded)
	found.Record = estimate.RecordOf(past, s.Time)
	all := e.pending(s, teams)
	waiting := slices.DeleteFunc(slices.Clone(all), func(w pending) bool { return w.runs })
	if unattended {
		known := make(map[string]bool, len(recorded))
		for _, r := range recorded {
			known[r.WorkloadUID] = true
		}
		waiting = slices.DeleteFunc(waiting, func(w pending) bool { return known[string(w.UID)] })
	}
	if len(waiting) == 0 {
		return found, nil
	}
	question := e.question(s, all)
	question.Unattended = unattended
	for _, w := range waiting {
		question.Waiting = append(question.Waiting, simulate.WorkloadKey(w.Workload))
	}
	report, err := e.Simulator.Answer(ctx, s, question)
	if err != nil {
		return nil, err
	}
	calibration := estimate.Calibrate(past, s.Time)
	var made []history.Estimate
	for _, w := range waiting {
		start := report.Starts[simulate.WorkloadKey(w.Workload)]
		if start == nil {
			start = &simulate.Start{}
		}
		f, ok := estimate.Forecast(start.After, simulate.NotStarted)
		if !ok {
			found.Starts[w.UID] = Start{Late: !start.Exceeds && !report.Cut, Exceeds: start.Exceeds, Unknown: !start.Exceeds && report.Cut}
			continue
		}
		r := calibration.Range(w.kind.Team, w.kind.Class, f)
		found.Starts[w.UID] = Start{Range: r}
		made = append(made, history.Estimate{WorkloadUID: string(w.UID), TaskUID: w.task, Team: w.kind.Team, PriorityClass: w.kind.Class,
			MadeAt: s.Time, Low: r.Low, High: r.High, Forecast: f})
	}
	e.record(ctx, made)
	return found, nil
}

// record records the first estimates of Workloads, if this replica leads.
func (e *Estimator) record(ctx context.Context, made []history.Estimate) {
	if len(made) == 0 {
		return
	}
	e.Leader.Within(ctx, func(ctx context.Context) {
		if err := history.WriteOrSetAside(ctx, e.Store, "estimates", made, e.Store.RecordEstimates); err != nil && !errors.Is(err, history.ErrNotLeader) {
			e.Log.Warn("estimates not recorded", "error", err)
		}
	})
}

func (e *Estimator) readHistory(ctx context.Context) error {
	now := e.Now()
	if e.runs != nil && e.runs.Count() >= estimate.MinRuns && now.Sub(e.readAt) < historyAge {
		return nil
	}
	recorded, err := e.Store.RunTimes(ctx, maxRuns)
	if err != nil {
		return err
	}
	runs := make([]estimate.Run, len(recorded))
	for i, r := range recorded {
		runs[i] = estimate.Run{Kind: estimate.Kind{Team: r.Team, Class: r.PriorityClass, Pattern: estimate.Pattern(r.Name)}, Length: r.Ran}
	}
	submitted, err := e.Store.Tasks(ctx, history.Query{From: estimate.Since(now), Limit: maxRuns})
	if err != nil {
		return err
	}
	slices.Reverse(submitted) // the oldest first
	submissions := make(estimate.Submissions, len(submitted))
	for i, t := range submitted {
		submissions[i] = estimate.Submission{Kind: estimate.Kind{Team: t.Team, Class: t.PriorityClass, Pattern: estimate.Pattern(t.Name)}, At: t.SubmittedAt, Workload: i}
	}
	e.runs, e.submissions, e.submitted, e.readAt = estimate.NewRuns(runs), submissions, submitted, now
	return nil
}

// pastOf converts recorded estimates. Those of tasks that ended without a start are
// left out.
func pastOf(recorded []history.Estimate) (past []estimate.Past) {
	for _, r := range recorded {
		if r.StartedAt.IsZero() && r.Ended {
			continue
		}
		past = append(past, estimate.Past{Team: r.Team, Class: r.PriorityClass, Made: r.MadeAt, Started: r.StartedAt,
			Forecast: r.Forecast, Range: estimate.Range{Low: r.Low, High: r.High}})
	}
	return past
}
