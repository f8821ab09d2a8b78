package utilization

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/observe/progress"

	"github.com/prometheus/common/model"
)

// Metrics of trainings, which kuota.elastic serves in the pod of the first worker.
const (
	trainingPrefix       = "kuota_training_"
	trainingSamples      = trainingPrefix + "samples_total" // by world_size
	trainingStep         = trainingPrefix + "step"
	trainingLoss         = trainingPrefix + "loss"
	trainingStart        = trainingPrefix + "start_time_seconds"
	trainingCheckpoint   = trainingPrefix + "last_checkpoint_timestamp_seconds"
	trainingSaved        = trainingPrefix + "last_checkpoint_duration_seconds"
	trainingContinued    = trainingPrefix + "continued_from_timestamp_seconds"
	worldLabel           = "world_size"
	trainingLabels       = "__name__, " + podLabels + ", " + worldLabel
	rateOver             = 2 * time.Minute // least window of a chart
	usualOver            = "1d:5m"
	usualBefore          = "10m" // the present, which is compared with it
	usualLeast           = 12    // so many points, an hour, make a rate usual
	trainingAt, rateNow  = "at", "rate"
	rateUsual            = "usual"
	maxTrainingTimestamp = 1 << 40 // seconds
)

// Training is a training whose first worker reports its progress in a pod.
type Training struct {
	Pod PodName
	progress.Progress
	// Usual is the median of its samples a second in this pod with this number of workers,
	// over a day without the last ten minutes; NaN before an hour is known.
	Usual float64
}

// trainings queries what trainings report now. Rates are those between the last two samples:
// over a longer time, they would rise slowly after each start of the workers.
func (q queries) trainings() string {
	names := strings.Join([]string{trainingStep, trainingLoss, trainingStart, trainingCheckpoint, trainingSaved, trainingContinued}, "|")
	samples := q.selector(trainingSamples)
	return fmt.Sprintf("max by (%s) (%s) or %s or %s", trainingLabels, q.selector(fmt.Sprintf("{__name__=~%q}", names)),
		part(trainingAt, fmt.Sprintf("max by (%s) (timestamp(%s))", podLabels, q.selector(trainingStep))),
		part(rateNow, fmt.Sprintf("max by (%s, %s) (irate(%s[%s]) and %s)", podLabels, worldLabel, samples, irateOver, samples)))
}

// usual queries the usual rates of trainings.
func (q queries) usual() string {
	over := fmt.Sprintf("irate(%s[%s])[%s] offset %s", q.selector(trainingSamples), irateOver, usualOver, usualBefore)
	return part(rateUsual, fmt.Sprintf("max by (%s, %s) (quantile_over_time(0.5, %s) and count_over_time(%s) >= %d)", podLabels, worldLabel, over, over, usualLeast))
}

// samples queries the samples a second of the pods of a namespace whose names a regular
// expression matches.
func (q queries) samples(namespace, pods string, step time.Duration) string {
	var parts []string
	for _, prefix := range []string{"", "exported_"} {
		matchers := fmt.Sprintf("%snamespace=%q, %[1]spod=~%q", prefix, namespace, pods)
		if prefix == "" {
			matchers += `, exported_pod=""`
		}
		parts = append(parts, fmt.Sprintf("rate(%s[%s])", q.selector(trainingSamples+"{"+matchers+"}"), model.Duration(max(rateOver, step))))
	}
	return "sum(" + strings.Join(parts, " or ") + ")"
}

// readTrainings converts series to trainings, by pod.
func readTrainings(now, usual model.Vector) []Training {
	type size struct {
		pod   PodName
		world int
	}
	byPod, usually := map[PodName]*Training{}, map[size]float64{}
	for _, s := range usual {
		usually[size{podOf(s), worldOf(s)}] = float64(s.Value)
	}
	of := func(s *model.Sample) *Training {
		pod := podOf(s)
		if byPod[pod] == nil {
			byPod[pod] = &Training{Pod: pod, Usual: math.NaN(), Progress: progress.Progress{Step: -1, Samples: math.NaN(), SamplesPerSecond: math.NaN(), CheckpointSeconds: math.NaN()}}
		}
		return byPod[pod]
	}
	for _, s := range now {
		if s.Histogram != nil {
			continue
		}
		if name := s.Metric[model.MetricNameLabel]; name == trainingLoss {
			t := of(s)
			t.Loss, t.HasLoss = float64(s.Value), true
			continue
		}
		v, ok := valueOf(s)
		if !ok || podOf(s).Name == "" {
			continue
		}
		t := of(s)
		switch cmp.Or(s.Metric[model.MetricNameLabel], s.Metric[partLabel]) {
		case trainingStep:
			if v <= 1<<53 {
				t.Step = int64(v)
			}
		case trainingStart:
			t.Started = unixTime(v)
		case trainingCheckpoint:
			t.Checkpoint = unixTime(v)
		case trainingSaved:
			t.CheckpointSeconds = v
		case trainingContinued:
			t.ContinuedFrom = unixTime(v)
		case trainingAt:
			t.At = unixTime(v)
		case rateNow:
			if math.IsNaN(t.SamplesPerSecond) || v > t.SamplesPerSecond {
				t.SamplesPerSecond, t.World = v, worldOf(s)
			}
		}
	}
	var all []Training
	for _, t := range byPod {
		if t.Step < 0 || t.Pod.Name == "" {
			continue
		}
		if rate, known := usually[size{t.Pod, t.World}]; known && !math.IsNaN(t.SamplesPerSecond) {
			t.Usual = rate
		}
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Training) int {
		return cmp.Or(strings.Compare(a.Pod.Namespace, b.Pod.Namespace), strings.Compare(a.Pod.Name, b.Pod.Name))
	})
	return all
}

func worldOf(s *model.Sample) int {
	n, _ := strconv.Atoi(string(s.Metric[worldLabel]))
	return n
}

// unixTime converts Unix seconds; it is zero for what is no time.
func unixTime(seconds float64) time.Time {
	if !(seconds > 0 && seconds < maxTrainingTimestamp) {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC()
}

// Samples returns the samples a second over a range, of the trainings in the pods of a
// namespace whose names a regular expression matches. It waits as History does.
func (s *Service) Samples(ctx context.Context, namespace, pods string, r Range) ([]time.Time, Series, error) {
	r, err := s.valid(r)
	if err != nil {
		return nil, nil, err
	}
	result, err := s.historyResult(ctx, s.queries.samples(namespace, pods, r.Step), r)
	if err != nil {
		return nil, nil, err
	}
	series := Series(slices.Repeat([]float64{math.NaN()}, result.points))
	for _, of := range result.matrix {
		for _, sample := range of.Values {
			if i := int(sample.Timestamp.Time().Sub(result.start) / result.step); i >= 0 && i < len(series) && float64(sample.Value) >= 0 {
				series[i] = float64(sample.Value)
			}
		}
	}
	return result.times(), series, nil
}
