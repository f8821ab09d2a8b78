package utilization

import (
	"context"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Limits of polling.
const (
	maxAge     = 5 * time.Minute // of a Reading that State returns
	peaksEvery = 4               // polls, unless the query is cheap
	cheap      = time.Second

	// A Prometheus that starts with the console is polled more often at first.
	startup      = time.Minute
	startupEvery = 2 * time.Second
)

// Service polls a Prometheus and keeps the last Reading. It is safe for concurrent
// use.
type Service struct {
	o       Options
	queries queries
	api     prometheus.API

	mu      sync.Mutex
	started time.Time // of Run
	last    *Reading
	warning string // of the last poll
	peaks   model.Vector
	usual   model.Vector // rates of trainings
	polls   int
	// peaksTook is how long the last query of peaks took.
	peaksTook time.Duration

	histories historyCache
}

// New returns a service that queries nothing before Run. It returns an error for an
// invalid URL or CA file.
func New(o Options) (*Service, error) {
	o = o.withDefaults()
	api, err := connect(o)
	if err != nil {
		return nil, err
	}
	return &Service{o: o, api: api, queries: queries{match: strings.Trim(strings.TrimSpace(o.Match), "{}"), nodeLabel: o.NodeLabel}, histories: newHistoryCache()}, nil
}

// Run polls until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.started = s.o.Now()
	s.mu.Unlock()
	for {
		s.Poll(ctx)
		next := s.o.Interval
		if s.starts() {
			next = min(next, startupEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// starts reports whether Prometheus may still be starting, or has scraped nothing yet.
func (s *Service) starts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.last == nil || len(s.last.Devices)+len(s.last.Nodes) == 0) && s.o.Now().Sub(s.started) < startup
}

// State is the current state.
type State struct {
	// Reading is the last one; nil if there is none or it is too old.
	Reading *Reading
	Age     time.Duration // of the Reading
	// Warning is a sentence about what went wrong in the last poll; empty for nothing.
	Warning string
}

// Now returns the current state without a query.
func (s *Service) Now() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Warning: s.warning}
	switch {
	case s.last == nil && s.warning == "":
		state.Warning = "Prometheus has not been queried yet. Data appears in a moment."
	case s.last == nil:
	default:
		if state.Age = max(0, s.o.Now().Sub(s.last.At)); state.Age <= maxAge {
			state.Reading = s.last
		}
	}
	return state
}

// IdleAfter returns the time without activity after which a device is idle.
func (s *Service) IdleAfter() time.Duration { return s.o.IdleAfter }

// Poll queries Prometheus once. If the query for devices fails, the Reading stays; if
// another query fails, its figures are missing in the new one.
func (s *Service) Poll(ctx context.Context) {
	s.mu.Lock()
	withPeaks := s.polls%peaksEvery == 0 || s.peaks == nil || s.peaksTook < cheap
	peaks, usual := s.peaks, s.usual
	s.mu.Unlock()
	var took time.Duration
	var texts []string
	vector := func(query string) (model.Vector, bool) {
		v, text, err := s.instant(ctx, query)
		switch {
		case err == nil:
		case isNetwork(err) && s.starts():
			text = "Prometheus does not answer yet. Data appears in a moment."
		default:
			s.o.Warn("Prometheus query failed", err)
			text = errorText(err, s.o.Timeout)
		}
		if text != "" && (len(texts) == 0 || texts[0] != text) {
			texts = append(texts, text)
		}
		return v, err == nil
	}
	var reading *Reading
	if now, ok := vector(s.queries.now()); ok {
		cpu, _ := vector(s.queries.cpu())
		if withPeaks {
			begun := time.Now()
			peaks, _ = vector(s.queries.peaks(s.o.IdleAfter))
			took = time.Since(begun)
		}
		trainings, _ := vector(s.queries.trainings())
		if withPeaks && len(trainings) > 0 {
			usual, _ = vector(s.queries.usual())
		}
		if err := governance.Recovered(func() error {
			reading = read(now, cpu, peaks)
			reading.Trainings = readTrainings(trainings, usual)
			reading.At = s.o.Now()
			return nil
		}); err != nil {
			s.o.Warn("the data of Prometheus cannot be read", err)
			texts = append(texts, "The data of Prometheus cannot be read. See the console's log for the reason.")
		}
	}
	if ctx.Err() != nil { // shutting down
		return
	}
	s.mu.Lock()
	s.polls++
	s.warning = strings.Join(texts, " ")
	if reading != nil {
		s.last, s.peaks, s.usual = reading, peaks, usual
	}
	if withPeaks {
		s.peaksTook = took
	}
	s.mu.Unlock()
	s.o.OnChange()
}

// instant queries a vector as of now, by the clock of Prometheus. It also returns a
// sentence if Prometheus reports warnings.
func (s *Service) instant(ctx context.Context, query string) (model.Vector, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, query, time.Time{}, prometheus.WithTimeout(s.o.Timeout))
	if err != nil {
		return nil, "", err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, "", errResultType
	}
	return vector, s.warningText(warnings), nil
}

// warningText logs warnings and returns the sentence for pages.
func (s *Service) warningText(warnings prometheus.Warnings) string {
	if len(warnings) == 0 {
		return ""
	}
	s.o.Warn("Prometheus warns: "+strings.Join(warnings, "; "), nil)
	return "Prometheus reports that its answer may be incomplete. See the console's log for the warning."
}
