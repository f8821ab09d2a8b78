package progress

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		text string
		want *Progress // nil for none
	}{
		"of kuota.elastic": {
			text: `{"time": "2026-11-30T12:00:01.500+00:00", "event": "progress", "world": 4, "step": 210, "samples": 13440, "samples_per_second": 512.0, "loss": 0.25, "started": "2026-11-30T11:00:00.000+00:00", "checkpoint": "2026-11-30T11:59:00.000+00:00", "checkpoint_seconds": 2.5, "continued_from": "2026-11-30T10:59:00.000+00:00"}`,
			want: &Progress{At: noon.Add(1500 * time.Millisecond), World: 4, Step: 210, Samples: 13440, SamplesPerSecond: 512, Loss: 0.25, HasLoss: true, Started: noon.Add(-time.Hour), Checkpoint: noon.Add(-time.Minute), CheckpointSeconds: 2.5, ContinuedFrom: noon.Add(-61 * time.Minute)},
		},
		"the least":           {text: `{"event":"progress","step":1e3}`, want: &Progress{At: noon, Step: 1000, Samples: nan, SamplesPerSecond: nan, CheckpointSeconds: nan}},
		"a loss of NaN":       {text: `{"event":"progress","step":7,"loss":"nan"}`, want: &Progress{At: noon, Step: 7, Samples: nan, SamplesPerSecond: nan, Loss: nan, HasLoss: true, CheckpointSeconds: nan}},
		"odd values":          {text: `{"event":"progress","step":7,"loss":[1],"samples":-3,"world":-1,"checkpoint":"yesterday","time":"1601-01-01T00:00:00Z"}`, want: &Progress{At: noon, Step: 7, Samples: nan, SamplesPerSecond: nan, CheckpointSeconds: nan}},
		"no step":             {text: `{"event":"progress","loss":1}`},
		"a negative step":     {text: `{"event":"progress","step":-1}`},
		"a step of no number": {text: `{"event":"progress","step":"many"}`},
		"too large a step":    {text: `{"event":"progress","step":1e300}`},
		"another event":       {text: `{"event":"step","step":7,"about":"progress"}`},
		"text":                {text: `step 7, "progress"`},
		"cut off":             {text: `{"event":"progress","step":7`},
		"a list":              {text: `["progress"]`},
	} {
		got, ok := Parse(tc.text, noon)
		if ok != (tc.want != nil) {
			t.Errorf("%s: got %+v, %t", name, got, ok)
		} else if ok {
			if diff := cmp.Diff(*tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"event":"progress","step":7,"loss":"nan","time":"2026-11-30T12:00:00Z"}`)
	f.Add(`{"event":"progress","step":1e308,"samples":1e308}`)
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := Parse(text, noon); ok && (p.Step < 0 || p.World < 0 || !strings.Contains(text, "progress")) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
