// Package live estimates when the tasks that wait now start: it draws run times from
// history, asks package simulate, and records the estimates, so that later ones are
// calibrated by what happened.
//
//	history.RunTimes ──► estimate.Runs ──► simulate (worker) ──► estimate.Forecast ──► Range
//	history.Estimates ─► estimate.Calibration ─────────────────────────────────────────▲ │
//	       ▲──────────────────────── the leader records the first one of each Workload ──┘
package live

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/estimate"
	"kuota.dev/kuota/governance/history"
	"kuota.dev/kuota/governance/simulate"
	"kuota.dev/kuota/governance/tasks"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// Horizon is how much virtual time is simulated.
	Horizon = 5 * 24 * time.Hour
	// Draws is how often a cluster is simulated, with other run times each time.
	Draws = 20

	// maxAge is how old the estimates of an open page are at most, unless computing
	// them takes long: at most a quarter of the time is spent on it.
	maxAge = time.Minute
	// recordPeriod is how often the leader makes estimates while nobody looks, so that
	// there are enough to calibrate by.
	recordPeriod = 10 * time.Minute
	// runsAge is how long past runs are used without reading them again.
	runsAge = 5 * time.Minute
	// timeout bounds the computation of estimates.
	timeout = time.Minute

	maxRuns      = 20_000 // past runs that are read
	maxEstimates = 5_000  // past estimates that are read
)

// Simulator answers questions about the cluster: see package simulate/live.
type Simulator interface {
	Snapshot(ctx context.Context) (*simulate.Snapshot, error)
	Answer(ctx context.Context, s *simulate.Snapshot, q *simulate.Question) (*simulate.Report, error)
}

// Store is the part of history.Store that estimates need.
type Store interface {
	RunTimes(ctx context.Context, limit int) ([]history.RunTime, error)
	Estimates(ctx context.Context, limit int) ([]history.Estimate, error)
	RecordEstimates(ctx context.Context, estimates []history.Estimate) error
}

// Estimator estimates the starts of all waiting tasks at once. It is safe for
// concurrent use.
type Estimator struct {
	Simulator Simulator
	Store     Store
	// Task returns the task of a Workload; nil for none.
	Task func(workload types.UID) *tasks.Task
	// Teams returns the teams by namespace.
	Teams func(ctx context.Context) (map[string]string, error)
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

	computing sync.Mutex // guards what follows
	runs      *estimate.Runs
	runsAt    time.Time
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
	estimate.Range      // from Estimates.At on; zero with Late and Exceeds
	Late           bool // it probably does not start within Horizon
	Exceeds        bool // it requests more than its queue can ever have
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

// Run makes and records estimates regularly in each term in which this replica
// leads, until ctx ends.
func (e *Estimator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		e.Leader.EachTerm(ctx, func(term context.Context) {
			ticker := time.NewTicker(recordPeriod)
			defer ticker.Stop()
			for {
				select {
				case <-term.Done():
					return
				case <-ticker.C:
					e.mu.Lock()
					idle := !e.running
					e.running = true
					e.mu.Unlock()
					if idle {
						e.update(term)
					}
				}
			}
		})
	}
	return nil
}

// update computes estimates, while running is set.
func (e *Estimator) update(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := e.Now()
	found, err := e.compute(ctx)
	if err != nil {
		e.Log.Info("starts not estimated", "error", err)
		found = &Estimates{At: began, Failed: err}
	}
	e.mu.Lock()
	e.latest, e.took, e.running = found, e.Now().Sub(began), false
	e.mu.Unlock()
	e.Changed()
}

func (e *Estimator) compute(ctx context.Context) (*Estimates, error) {
	e.computing.Lock()
	defer e.computing.Unlock()
	if err := e.readRuns(ctx); err != nil {
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
	draws, waiting := e.draw(s, teams)
	if len(waiting) == 0 {
		return found, nil
	}
	report, err := e.Simulator.Answer(ctx, s, &simulate.Question{Horizon: Horizon, Draws: draws})
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
			found.Starts[w.UID] = Start{Late: !start.Exceeds, Exceeds: start.Exceeds}
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
		if err := e.Store.RecordEstimates(ctx, made); err != nil && !errors.Is(err, history.ErrNotLeader) {
			e.Log.Warn("estimates not recorded", "error", err)
		}
	})
}

func (e *Estimator) readRuns(ctx context.Context) error {
	if e.runs != nil && e.runs.Count() >= estimate.MinRuns && e.Now().Sub(e.runsAt) < runsAge {
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
	e.runs, e.runsAt = estimate.NewRuns(runs), e.Now()
	return nil
}

// pending is a Workload that waits.
type pending struct {
	*kueue.Workload
	kind estimate.Kind
	task string // UID
}

// draw draws the run times of all Workloads several times, and returns those that
// wait.
func (e *Estimator) draw(s *simulate.Snapshot, teams map[string]string) (draws []simulate.RunTimes, waiting []pending) {
	type running struct {
		pending
		elapsed time.Duration // negative while it waits
	}
	var all []running
	for _, w := range s.Workloads {
		one := running{pending{Workload: w, kind: estimate.Kind{Team: teams[w.Namespace], Pattern: estimate.Pattern(w.Name)}}, -1}
		if t := e.Task(w.UID); t != nil {
			one.kind.Class, one.kind.Pattern, one.task = t.PriorityClass, estimate.Pattern(t.Name), t.UID
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && c.Status == "True" {
			one.elapsed = max(0, s.Time.Sub(c.LastTransitionTime.Time))
		} else if w.Spec.Active == nil || *w.Spec.Active {
			waiting = append(waiting, one.pending)
		}
		all = append(all, one)
	}
	random := rand.New(rand.NewPCG(uint64(s.Time.UnixNano()), 0)) //nolint:gosec // not a secret
	for range Draws {
		d := simulate.RunTimes{Whole: map[string]time.Duration{}, Remaining: map[string]time.Duration{}}
		for _, w := range all {
			length, ok := e.runs.Draw(w.kind, max(0, w.elapsed), random)
			if !ok {
				continue
			}
			key := simulate.WorkloadKey(w.Workload)
			if d.Whole[key] = length; w.elapsed >= 0 {
				d.Remaining[key] = length - w.elapsed
			}
		}
		draws = append(draws, d)
	}
	return draws, waiting
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
