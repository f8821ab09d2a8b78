package estimate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks/estimate"
)

func TestPattern(t *testing.T) {
	for name, want := range map[string]string{
		"train-resnet-7f3k2":       "train-resnet",
		"train-resnet-00012":       "train-resnet",
		"train-resnet50-b64-1":     "train-resnet-b",
		"finetune-llama-8b-3":      "finetune-llama-8b",
		"eval-2026-11-23":          "eval",
		"sweep-3f9c2a1b-x":         "sweep-x",
		"Train.LLaMA_2":            "train-llama",
		"12345":                    "",
		"preprocess":               "preprocess",
		"ray-cluster-mnist-abc-12": "ray-cluster-mnist-abc",
	} {
		if got := estimate.Pattern(name); got != want {
			t.Errorf("Pattern(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDraw(t *testing.T) {
	kind := estimate.Kind{Team: "vision", Class: "high", Pattern: "train"}
	var all []estimate.Run
	add := func(n int, k estimate.Kind, from time.Duration) {
		for i := range n {
			all = append(all, estimate.Run{Kind: k, Length: from + time.Duration(i)*time.Minute})
		}
	}
	add(40, kind, time.Hour)                                                           // 60 to 99 minutes
	add(29, estimate.Kind{Team: "vision", Class: "low", Pattern: "eval"}, time.Minute) // too few of its own
	add(5, estimate.Kind{Team: "nlp"}, 100*time.Hour)
	runs := estimate.NewRuns(all)
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name         string
		kind         estimate.Kind
		elapsed      time.Duration
		wantLow, max time.Duration
	}{
		{"own kind", kind, 0, time.Hour, 99 * time.Minute},
		{"longer than elapsed", kind, 80 * time.Minute, 81 * time.Minute, 99 * time.Minute},
		{"few of its kind: those of the team", estimate.Kind{Team: "vision", Class: "low", Pattern: "eval"}, 0, time.Minute, 99 * time.Minute},
		{"few ran longer: all", kind, 98 * time.Minute, 99 * time.Minute, 101 * time.Hour},
		{"longer than all: as long again on average", kind, 200 * time.Hour, 200 * time.Hour, 600 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 1000 {
				got, ok := runs.Draw(c.kind, c.elapsed, random)
				if !ok || got < c.wantLow || got > c.max {
					t.Fatalf("drew %v, %v; want %v to %v", got, ok, c.wantLow, c.max)
				}
			}
		})
	}
	if _, ok := estimate.NewRuns(all[:estimate.MinRuns-1]).Draw(kind, 0, random); ok {
		t.Error("drew from too few runs")
	}
}

// TestSubmissions repeats three weeks with one task at noon of each weekday and two at
// that of each weekend, and further ones that are too old.
func TestSubmissions(t *testing.T) {
	monday := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	var past estimate.Submissions
	for at := monday.Add(-21*24*time.Hour + 3*time.Hour); at.Before(monday); at = at.Add(24 * time.Hour) {
		if monday.Sub(at) > 14*24*time.Hour {
			past = append(past, estimate.Submission{At: at.Add(time.Hour), Workload: 9})
			continue
		}
		past = append(past, estimate.Submission{At: at, Workload: 1})
		if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
			past = append(past, estimate.Submission{At: at, Workload: 2})
		}
	}
	random := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		var got []string
		for _, one := range past.Draw(monday, 6*24*time.Hour+time.Hour, random) {
			got = append(got, fmt.Sprint(one.At.Format("Mon 15:04 "), one.Workload))
		}
		want := []string{"Mon 12:00 1", "Tue 12:00 1", "Wed 12:00 1", "Thu 12:00 1", "Fri 12:00 1", "Sat 12:00 1", "Sat 12:00 2"}
		if !slices.Equal(got, want) {
			t.Fatalf("drew %q, want %q", got, want)
		}
	}
	if got := past[len(past)-1:].Draw(monday, 24*time.Hour, random); got != nil {
		t.Errorf("drew %v without a whole day", got)
	}
	if got := past[len(past)-4:].Draw(monday, 24*time.Hour, random); len(got) != 2 {
		t.Errorf("drew %v, want a day of the weekend: no other is known", got)
	}
}

func TestForecast(t *testing.T) {
	never := time.Duration(math.MaxInt64)
	for name, tc := range map[string]struct {
		starts []time.Duration
		want   time.Duration
		wantOK bool
	}{
		"median":                   {[]time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour}, 2 * time.Hour, true},
		"some do not start":        {[]time.Duration{never, time.Hour, 2 * time.Hour}, 2 * time.Hour, true},
		"most do not start":        {[]time.Duration{never, never, 2 * time.Hour}, 0, false},
		"there are no simulations": {},
	} {
		if got, ok := estimate.Forecast(tc.starts, never); ok != tc.wantOK || ok && got != tc.want {
			t.Errorf("%s: got %v, %v; want %v, %v", name, got, ok, tc.want, tc.wantOK)
		}
	}
}

// TestCalibrate estimates 2,400 tasks one after the other. What happens to a task
// compared with its forecast changes twice: the share that holds stays that of
// Coverage.
func TestCalibrate(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	var past []estimate.Past
	held, of := 0, 0
	for i := range 2400 {
		now = now.Add(10 * time.Minute)
		known := past[max(0, len(past)-400):]
		f := time.Duration(20+random.IntN(200)) * time.Minute
		error, spread := 0.0, 1.0
		if i > 800 { // later than simulated
			error = 0.8
		}
		if i > 1600 {
			error, spread = -0.3, 2.5
		}
		wait := time.Duration(float64(f) * math.Exp(error+0.5*spread*random.NormFloat64()))
		p := estimate.Past{Team: fmt.Sprint("team-", i%3), Class: "high", Made: now, Forecast: f}
		p.Range = estimate.Calibrate(visible(known, now), now).Range(p.Team, p.Class, f)
		p.Started = now.Add(wait)
		if past = append(past, p); i >= 300 {
			of++
			if p.Held() {
				held++
			}
		}
	}
	if share := float64(held) / float64(of); share < 0.77 || share > 0.83 {
		t.Errorf("%.3f held, want about %v", share, estimate.Coverage)
	}
	if r := estimate.RecordOf(visible(past, now), now); r.Of < 2200 || r.Of > 2400 || r.Held*100 < 75*r.Of || r.Held*100 > 85*r.Of {
		t.Errorf("the record is %+v", r)
	}
}

// visible returns what is known of estimates at a time.
func visible(past []estimate.Past, now time.Time) []estimate.Past {
	known := make([]estimate.Past, len(past))
	for i, p := range past {
		if p.Started.After(now) {
			p.Started = time.Time{}
		}
		known[i] = p
	}
	return known
}

// TestRecord counts an estimate of a task that still waits once it is too late.
func TestRecord(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	p := estimate.Past{Made: now, Range: estimate.Range{Low: time.Minute, High: time.Hour}}
	if r := estimate.RecordOf([]estimate.Past{p}, now.Add(30*time.Minute)); r.Of != 0 {
		t.Errorf("counted %+v while it can hold", r)
	}
	if r := estimate.RecordOf([]estimate.Past{p}, now.Add(2*time.Hour)); r.Of != 1 || r.Held != 0 {
		t.Errorf("counted %+v, want one that did not hold", r)
	}
	p.Started = now.Add(time.Hour)
	if r := estimate.RecordOf([]estimate.Past{p}, now.Add(2*time.Hour)); r.Of != 1 || r.Held != 1 {
		t.Errorf("counted %+v, want one that held", r)
	}
}
