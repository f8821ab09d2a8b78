package utilization

import (
	"context"
	"strings"
	"sync"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Times that bound what is shown and asked.
const (
	tooOld     = 5 * time.Minute // a Reading that is older is no longer what is now
	peaksEvery = 4               // rounds
)

// Service asks a Prometheus, and remembers what it said last.
type Service struct {
	o   Options
	ask ask
	api prometheus.API

	mu      sync.Mutex
	last    *Reading
	trouble string // of the last round
	peaks   model.Vector
	rounds  int

	histories histories
}

// New makes a service, which asks nothing before it runs. It answers an error for
// an address or a file that cannot be used.
func New(o Options) (*Service, error) {
	o = o.withDefaults()
	api, err := connect(o)
	if err != nil {
		return nil, err
	}
	return &Service{o: o, api: api, ask: ask{match: strings.Trim(strings.TrimSpace(o.Match), "{}"), nodeLabel: o.NodeLabel}, histories: newHistories()}, nil
}

// Run asks for what is now, again and again, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	ticks := time.NewTicker(s.o.Interval)
	defer ticks.Stop()
	for {
		s.Poll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// State is what is known of now.
type State struct {
	// Reading is the last one; nil for none, or none that is new enough.
	Reading *Reading
	Age     time.Duration // of the Reading
	// Trouble is a sentence about what went wrong when Prometheus was asked last;
	// empty for nothing.
	Warning string
}

// Now is what is known of now. It asks nobody.
func (s *Service) Now() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Warning: s.trouble}
	switch {
	case s.last == nil && s.trouble == "":
		state.Warning = "Prometheus has not been queried yet. Data appears in a moment."
	case s.last == nil:
	default:
		if state.Age = max(0, s.o.Now().Sub(s.last.At)); state.Age <= tooOld {
			state.Reading = s.last
		}
	}
	return state
}

// IdleAfter is the time after which a device that did nothing is idle.
func (s *Service) IdleAfter() time.Duration { return s.o.IdleAfter }

// Round asks for what is now, once. Without devices there is no new Reading; what
// else cannot be had is missing in it.
func (s *Service) Poll(ctx context.Context) {
	s.mu.Lock()
	withPeaks := s.rounds%peaksEvery == 0 || s.peaks == nil
	peaks := s.peaks
	s.mu.Unlock()
	var trouble []string
	vector := func(query string) (model.Vector, bool) {
		v, told, err := s.instant(ctx, query)
		if err != nil {
			s.o.Warn("asking Prometheus", err)
			told = sentence(err, s.o.Timeout)
		}
		if told != "" && (len(trouble) == 0 || trouble[0] != told) {
			trouble = append(trouble, told)
		}
		return v, err == nil
	}
	var reading *Reading
	if now, ok := vector(s.ask.now()); ok {
		cpu, _ := vector(s.ask.cpu())
		if withPeaks {
			peaks, _ = vector(s.ask.peaks(s.o.IdleAfter))
		}
		reading = read(now, cpu, peaks)
		reading.At = s.o.Now()
	}
	if ctx.Err() != nil { // it ends
		return
	}
	s.mu.Lock()
	s.rounds++
	s.trouble = strings.Join(trouble, " ")
	if reading != nil {
		s.last, s.peaks = reading, peaks
	}
	s.mu.Unlock()
	s.o.OnChange()
}

// instant asks for a vector as of now, by the clock of Prometheus. Beside it stands
// what Prometheus warns of, as a sentence.
func (s *Service) instant(ctx context.Context, query string) (model.Vector, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, query, time.Time{}, prometheus.WithTimeout(s.o.Timeout))
	if err != nil {
		return nil, "", err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, "", errNonsense
	}
	return vector, s.warned(warnings), nil
}

// warned is what people are told of warnings.
func (s *Service) warned(warnings prometheus.Warnings) string {
	if len(warnings) == 0 {
		return ""
	}
	s.o.Warn("Prometheus warns: "+strings.Join(warnings, "; "), nil)
	return "Prometheus reports that its answer may be incomplete. See the console's log for the warning."
}
