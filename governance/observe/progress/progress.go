package progress

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// Progress is how far a training is. A field that is zero or NaN is not known.
type Progress struct {
	At                time.Time // when the training reported it
	World             int       // workers
	Step              int64
	Samples           float64 // trained on, as the script counts them; NaN if unknown
	SamplesPerSecond  float64 // NaN if unknown
	Loss              float64 // meaningful if HasLoss: the loss itself may be NaN
	HasLoss           bool
	Started           time.Time // of the workers
	Checkpoint        time.Time // when the last one was written
	CheckpointSeconds float64   // that this took; NaN if unknown
	ContinuedFrom     time.Time // when the checkpoint was written that the workers continued from
}

// event is the value of a line's field event.
const event = "progress"

// Mark is a text that each line of progress contains, in any notation of JSON.
const Mark = `"` + event + `"`

// line is a line of a log.
type line struct {
	Time              string       `json:"time"`
	Event             string       `json:"event"`
	World             int          `json:"world"`
	Step              *json.Number `json:"step"`
	Samples           *float64     `json:"samples"`
	SamplesPerSecond  *float64     `json:"samples_per_second"`
	Loss              any          `json:"loss"`
	Started           string       `json:"started"`
	Checkpoint        string       `json:"checkpoint"`
	CheckpointSeconds *float64     `json:"checkpoint_seconds"`
	ContinuedFrom     string       `json:"continued_from"`
}

// Parse reads a line of a log. It returns false for a line that is no progress. written
// is when the line was written, for one that does not say so.
func Parse(text string, written time.Time) (Progress, bool) {
	var l line
	if !strings.Contains(text, Mark) || json.Unmarshal([]byte(strings.TrimSpace(text)), &l) != nil || l.Event != event || l.Step == nil {
		return Progress{}, false
	}
	step, err := l.Step.Float64()
	if err != nil || step < 0 || step > 1<<53 {
		return Progress{}, false
	}
	p := Progress{
		At: moment(l.Time), World: max(0, l.World), Step: int64(step), Samples: number(l.Samples), SamplesPerSecond: number(l.SamplesPerSecond),
		Started: moment(l.Started), Checkpoint: moment(l.Checkpoint), CheckpointSeconds: number(l.CheckpointSeconds), ContinuedFrom: moment(l.ContinuedFrom),
	}
	if p.At.IsZero() {
		p.At = written
	}
	switch loss := l.Loss.(type) {
	case float64:
		p.Loss, p.HasLoss = loss, true
	case string: // JSON has no NaN
		if p.Loss, err = strconv.ParseFloat(loss, 64); err == nil {
			p.HasLoss = true
		}
	}
	return p, true
}

// moment parses a time; it is zero for none, and for one that is not valid.
func moment(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return time.Time{}
	}
	return at.UTC()
}

// number returns a value that cannot be negative; NaN for none.
func number(v *float64) float64 {
	if v == nil || *v < 0 {
		return math.NaN()
	}
	return *v
}
