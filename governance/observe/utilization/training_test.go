package utilization

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/observe/progress"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
)

// What kuota.elastic serves becomes a Training, with the rate that it had for two hours at the
// same number of workers.
func TestTrainings(t *testing.T) {
	now := time.Now()
	const target = `job="trainings",namespace="ns"`
	var earlier strings.Builder
	earlier.WriteString("# TYPE kuota_training_samples counter\n")
	for _, was := range []struct {
		labels string
		rate   int
	}{{`pod="train-base-0-abcde",world_size="4"`, 100}, {`pod="train-base-0-abcde",world_size="8"`, 999}, {`pod="other-0",world_size="1"`, 7}} {
		for seconds := 2 * 3600; seconds > 660; seconds -= 30 {
			fmt.Fprintf(&earlier, "kuota_training_samples_total{%s,%s} %d %d\n", target, was.labels, (2*3600-seconds)*was.rate, now.Unix()-int64(seconds))
		}
	}
	earlier.WriteString("# EOF\n")
	l := newLabSince(t, earlier.String(), map[string]string{"train": `# TYPE kuota_training_step gauge
kuota_training_step 210
# TYPE kuota_training_samples_total counter
kuota_training_samples_total{world_size="4"} @30
# TYPE kuota_training_loss gauge
kuota_training_loss NaN
# TYPE kuota_training_start_time_seconds gauge
kuota_training_start_time_seconds 1000000000.5
# TYPE kuota_training_last_checkpoint_timestamp_seconds gauge
kuota_training_last_checkpoint_timestamp_seconds 1000000060.25
# TYPE kuota_training_last_checkpoint_duration_seconds gauge
kuota_training_last_checkpoint_duration_seconds 2.5
# TYPE kuota_training_continued_from_timestamp_seconds gauge
kuota_training_continued_from_timestamp_seconds 999999999
`}, `- {job_name: trainings, metrics_path: /train, static_configs: [{targets: ["EXPORTER"], labels: {namespace: ns, pod: train-base-0-abcde}}]}`)
	s, err := New(Options{URL: l.url})
	must(t, err)
	var got Training
	until(t, s, func(r *Reading) error {
		if len(r.Trainings) != 1 || math.IsNaN(r.Trainings[0].SamplesPerSecond) || math.IsNaN(r.Trainings[0].Usual) {
			return fmt.Errorf("got %+v, want one training with its rates", r.Trainings)
		}
		got = r.Trainings[0]
		return nil
	})
	if age := time.Since(got.At); age < 0 || age > 10*time.Second {
		t.Errorf("got time %s, want that of the last scrape", got.At)
	}
	if rate := got.SamplesPerSecond; math.Abs(rate-30) > 1 {
		t.Errorf("got %v samples a second, want 30", rate)
	}
	if math.Abs(got.Usual-100) > 1 {
		t.Errorf("got the usual rate %v, want 100", got.Usual)
	}
	start := time.Unix(1_000_000_000, 0).UTC()
	want := Training{Pod: PodName{"ns", "train-base-0-abcde"}, Progress: progress.Progress{
		World: 4, Step: 210, Samples: math.NaN(), Loss: math.NaN(), HasLoss: true, Started: start.Add(500 * time.Millisecond), Checkpoint: start.Add(60250 * time.Millisecond), CheckpointSeconds: 2.5, ContinuedFrom: start.Add(-time.Second),
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Training{}, "At", "SamplesPerSecond", "Usual")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	span := Range{From: now.Add(-time.Hour).Truncate(time.Minute), To: now.Add(-20 * time.Minute), Step: time.Minute}
	times, rates, err := s.Samples(t.Context(), "ns", "train-base-[0-9]+-[a-z0-9]{5}", span)
	if err != nil || len(times) != len(rates) || len(rates) < 39 {
		t.Fatalf("got %d times, %d rates, %v", len(times), len(rates), err)
	}
	for i, rate := range rates {
		if math.Abs(rate-1099) > 1 { // of both sizes, without the other pod
			t.Errorf("at %s: got %v samples a second, want 1099", times[i], rate)
		}
	}
	if _, _, err := s.Samples(t.Context(), "ns", "train", Range{}); err == nil {
		t.Error("an empty range is queried")
	}
}

// Series that are no numbers, or of no pod, are no training.
func TestOddTrainings(t *testing.T) {
	sample := func(metric string, value float64, pod string) *model.Sample {
		return &model.Sample{Metric: model.Metric{model.MetricNameLabel: model.LabelValue(metric), "exported_namespace": "ns", "exported_pod": model.LabelValue(pod), "namespace": "monitoring", "pod": "prometheus-0"}, Value: model.SampleValue(value)}
	}
	var now model.Vector
	for i, value := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		pod := fmt.Sprint("train-", i)
		now = append(now, sample(trainingLoss, 1, pod), sample(trainingStep, value, pod))
	}
	if got := readTrainings(append(now, sample(trainingLoss, 1, "")), nil); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
	got := readTrainings(model.Vector{sample(trainingStep, 3, "train-0"), sample(trainingCheckpoint, 1e300, "train-0"), sample(trainingSaved, math.NaN(), "train-0")}, model.Vector{sample("", 5, "train-0")})
	if len(got) != 1 || got[0].Pod != (PodName{"ns", "train-0"}) || !got[0].Checkpoint.IsZero() || !math.IsNaN(got[0].CheckpointSeconds) || !math.IsNaN(got[0].Usual) || got[0].HasLoss {
		t.Errorf("got %+v", got)
	}
}
