package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"
	"kuota.dev/kuota/governance/kueue/simulate/worker"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Bounds of the replays that a console keeps in memory.
const (
	maxReplays     = 20
	maxReplayBytes = 16 << 20
	maxReplayAge   = 24 * time.Hour
	// replayPeriod is how often a snapshot is written at most. All disagreements are
	// counted.
	replayPeriod = time.Minute
)

// Replay is a disagreement with its snapshot.
type Replay struct {
	ID         string
	Constraint string
	Time       time.Time
	Data       []byte // gzip of JSON: simulate.Replay
}

// replays are the last disagreements. Its zero value is ready.
type replays struct {
	mu      sync.Mutex
	kept    []Replay // the oldest first
	last    time.Time
	writing sync.WaitGroup
}

// Disagrees counts that the simulation of a question contradicts package explain,
// which names a constraint, and keeps the snapshot for a replay, with hashes for
// names.
func (s *Simulator) Disagrees(constraint string, of *simulate.Snapshot, q *simulate.Question) {
	disagreements.WithLabelValues(constraint).Inc()
	if now := s.Now(); s.replays.due(now) {
		s.replays.writing.Go(func() { s.keep(constraint, of, q, now) })
	}
}

// due reports whether a snapshot may be written now, and records that it is.
func (r *replays) due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() && now.Sub(r.last) < replayPeriod {
		return false
	}
	r.last = now
	return true
}

// keep writes a snapshot and drops the oldest ones.
func (s *Simulator) keep(constraint string, of *simulate.Snapshot, q *simulate.Question, now time.Time) {
	log := cmp.Or(s.Log, slog.Default())
	var random [20]byte
	rand.Read(random[:]) //nolint:errcheck // never fails
	id, salt := hex.EncodeToString(random[:4]), random[4:]
	names := simulate.NewNames(salt, of, q)
	var data bytes.Buffer
	replay := &simulate.Replay{ID: id, Constraint: constraint, Question: names.Question(q), Snapshot: names.Snapshot(of)}
	if err := replay.Write(&data); err != nil {
		log.Error("cannot write a snapshot for a replay", "error", err)
		return
	}
	s.replays.add(Replay{ID: id, Constraint: constraint, Time: now, Data: bytes.Clone(data.Bytes())}, now)
	log.Info("simulation contradicts explanation", "constraint", constraint, "replay", id, "bytes", data.Len(), "workloads", len(of.Workloads))
}

func (r *replays) add(new Replay, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, new)
	r.drop(now)
}

// drop drops what exceeds a bound. The caller locks.
func (r *replays) drop(now time.Time) {
	r.kept = slices.DeleteFunc(r.kept, func(k Replay) bool { return now.Sub(k.Time) > maxReplayAge })
	bytes := 0
	for _, k := range r.kept {
		bytes += len(k.Data)
	}
	for len(r.kept) > maxReplays || bytes > maxReplayBytes {
		bytes -= len(r.kept[0].Data)
		r.kept = slices.Delete(r.kept, 0, 1)
	}
}

// Replays returns the disagreements of the last day that are kept, the latest first.
func (s *Simulator) Replays() []Replay {
	if s == nil {
		return nil
	}
	s.replays.mu.Lock()
	defer s.replays.mu.Unlock()
	s.replays.drop(s.Now())
	list := slices.Clone(s.replays.kept)
	slices.Reverse(list)
	return list
}

var disagreements = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kuota_simulation_disagreements_total", Help: "Explanations that a simulation with Kueue's scheduler contradicts, by the constraint that the explanation names.",
}, []string{"constraint"})

var questions = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "kuota_simulation_duration_seconds", Help: "Duration of questions to the simulation with Kueue's scheduler, with the time until it is their turn, by result: answered, timeout, memory, crashed, canceled or failed.",
	Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30},
}, []string{"result"})

func init() { metrics.Registry.MustRegister(disagreements, questions) }

// result returns the label of a question that ended with err.
func result(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "answered"
	case errors.Is(err, worker.ErrTimeout):
		return "timeout"
	case errors.Is(err, worker.ErrMemory):
		return "memory"
	case errors.Is(err, worker.ErrCrashed):
		return "crashed"
	case ctx.Err() != nil:
		return "canceled"
	}
	return "failed"
}
