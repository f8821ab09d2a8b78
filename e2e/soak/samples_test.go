package soak_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
)

const (
	sampleInterval = 5 * time.Second
	// settled is the age at which a process of a replica has read the cluster and serves
	// its streams, so that its memory can be compared with other times.
	settled = 45 * time.Second
)

// sample is what the metrics of a process reported.
type sample struct {
	at         time.Duration // since the start of the run
	age        time.Duration // of the process
	heap       float64       // bytes that were in use after the last garbage collection
	resident   float64       // bytes
	goroutines float64
}

// sampler reads the metrics of one replica. It is safe for concurrent use.
type sampler struct {
	replica *consoles.Replica

	mu      sync.Mutex
	samples []sample
}

// run reads samples until ctx ends. The metrics of a replica that was killed are
// missing meanwhile.
func (s *sampler) run(ctx context.Context, began time.Time) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		values, err := s.read(ctx)
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.samples = append(s.samples, sample{
			at: time.Since(began), age: time.Since(time.Unix(int64(values["process_start_time_seconds"]), 0)),
			heap: values["go_gc_heap_live_bytes"], resident: values["process_resident_memory_bytes"], goroutines: values["go_goroutines"],
		})
		s.mu.Unlock()
	}
}

// metricLine matches a metric with its labels and value.
var metricLine = regexp.MustCompile(`(?m)^([a-z_]+(?:\{[^}]*\})?) (\S+)$`)

// read returns the current values of all metrics, by name with labels.
func (s *sampler) read(ctx context.Context) (map[string]float64, error) {
	text, err := consoles.Get(ctx, http.DefaultClient, "http://"+s.replica.Metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, found := range metricLine.FindAllStringSubmatch(text, -1) {
		if values[found[1]], err = strconv.ParseFloat(found[2], 64); err != nil {
			return nil, fmt.Errorf("metric %s: %w", found[1], err)
		}
	}
	return values, nil
}

// after returns the samples of settled processes after the warm-up.
func (s *sampler) after(warmUp time.Duration) []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.samples), func(one sample) bool { return one.at < warmUp || one.age < settled })
}

// allowance is how much a figure may rise.
type allowance struct {
	part   float64 // of its median
	amount float64
}

// check prints the median of the values and the rise of their trend, and fails the
// test if it rises by more than the allowance.
func (a allowance) check(t *testing.T, name, unit string, scale float64, samples []sample, value func(sample) float64) {
	t.Helper()
	var at, values []float64
	for _, one := range samples {
		at, values = append(at, one.at.Seconds()), append(values, value(one))
	}
	if len(values) < 10 {
		t.Errorf("%s: got %d samples after the warm-up, want at least 10", name, len(values))
		return
	}
	middle := median(values)
	rise := trend(at, values) * (at[len(at)-1] - at[0])
	figure(name+"_median", middle/scale, unit)
	figure(name+"_rise", rise/scale, unit)
	if limit := a.part*middle + a.amount; rise > limit {
		t.Errorf("%s: rises by %.4g %s over %.0f s, want at most %.4g", name, rise/scale, unit, at[len(at)-1]-at[0], limit/scale)
	}
}

// trend returns the slope of values over at, whose single outliers do not change it:
// the median of the slopes between all pairs of values (Theil and Sen). at rises.
func trend(at, values []float64) float64 {
	var slopes []float64
	for i := range values {
		for j := range i {
			if at[i] > at[j] {
				slopes = append(slopes, (values[i]-values[j])/(at[i]-at[j]))
			}
		}
	}
	return median(slopes)
}

// median returns the middle of values, 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// TestTrend checks that the trend shows a leak and no noise.
func TestTrend(t *testing.T) {
	at := make([]float64, 100)
	for i := range at {
		at[i] = float64(5 * i)
	}
	for name, tc := range map[string]struct {
		value    func(i int) float64
		min, max float64
	}{
		"constant":                  {func(int) float64 { return 7 }, 0, 0},
		"rises by two each second":  {func(i int) float64 { return 10 * float64(i) }, 2, 2},
		"noise":                     {func(i int) float64 { return float64(i * 7919 % 31) }, -0.05, 0.05},
		"a leak under noise":        {func(i int) float64 { return 5*float64(i) + float64(i*7919%31) }, 0.95, 1.05},
		"high during a few outages": {func(i int) float64 { return 10 + 1000*float64(max(0, i%20-17)) }, 0, 0},
		"falls":                     {func(i int) float64 { return -5 * float64(i) }, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			values := make([]float64, len(at))
			for i := range values {
				values[i] = tc.value(i)
			}
			if got := trend(at, values); got < tc.min || got > tc.max {
				t.Errorf("got %g, want %g to %g", got, tc.min, tc.max)
			}
		})
	}
}
