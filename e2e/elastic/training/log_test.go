package training_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// line is a line of the log of train.py.
type line struct {
	Time     time.Time
	Event    string // loaded, start, step, checkpoint, stop or end
	World    int
	Step     int
	Position int64
	From, To int64
	Loss     float64
	Shares   [][2]int64 // of a step: the positions of each worker, as they reported them
}

// parse returns the lines of JSON of a log, which has lines of torchrun too. The last one
// may be cut off.
func parse(log string) (lines []line) {
	for text := range strings.Lines(log) {
		var l line
		if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &l) == nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// trajectory is what a log says about a training.
type trajectory struct {
	Steps    []line  // those that count: without those that were repeated
	Worlds   []int   // the numbers of workers, one after the other
	Repeated []int64 // positions, at each start but the first
}

// trace checks a log: each start continues where a checkpoint was written, and each step
// that counts trains on the positions after those of the step before, each on one worker.
func trace(lines []line) (t trajectory, err error) {
	checkpoints := map[int64]bool{0: true}
	position, world := int64(-1), 0
	for i, l := range lines {
		if l.Event == "start" {
			world = l.World
			t.Worlds = append(t.Worlds, world)
		}
		if l.Event != "loaded" && l.World != world {
			return t, fmt.Errorf("line %d: %d workers, want those %d that started", i, l.World, world)
		}
		switch l.Event {
		case "start":
			if !checkpoints[l.Position] {
				return t, fmt.Errorf("line %d: starts at %d, where no checkpoint was written", i, l.Position)
			}
			if l.Position > position && position >= 0 {
				return t, fmt.Errorf("line %d: starts at %d after position %d", i, l.Position, position)
			}
			if position >= 0 {
				t.Repeated = append(t.Repeated, position-l.Position)
			}
			for len(t.Steps) > 0 && t.Steps[len(t.Steps)-1].To > l.Position {
				t.Steps = t.Steps[:len(t.Steps)-1]
			}
			position = l.Position
		case "step":
			if l.From != position {
				return t, fmt.Errorf("line %d: trains from %d after position %d", i, l.From, position)
			}
			if len(l.Shares) != world {
				return t, fmt.Errorf("line %d: shares of %d workers, want %d", i, len(l.Shares), world)
			}
			at := l.From
			for _, s := range l.Shares {
				if s[0] != at || s[1] < s[0] {
					return t, fmt.Errorf("line %d: shares %v do not cover %d to %d once", i, l.Shares, l.From, l.To)
				}
				at = s[1]
			}
			if at != l.To {
				return t, fmt.Errorf("line %d: shares %v do not cover %d to %d once", i, l.Shares, l.From, l.To)
			}
			t.Steps, position = append(t.Steps, l), l.To
		case "checkpoint":
			checkpoints[l.Position] = true
		}
	}
	return t, nil
}

// The check of a log finds what it is for.
func TestTrace(t *testing.T) {
	const (
		start2 = `{"event": "start", "world": 2, "position": 0}` + "\n"
		step1  = `{"event": "step", "world": 2, "from": 0, "to": 4, "shares": [[0, 2], [2, 4]]}` + "\n"
		saved  = `{"event": "checkpoint", "world": 2, "position": 4}` + "\n"
		step2  = `{"event": "step", "world": 2, "from": 4, "to": 8, "shares": [[4, 6], [6, 8]]}` + "\n"
		start1 = `{"event": "start", "world": 1, "position": 4}` + "\n"
		again  = `{"event": "step", "world": 1, "from": 4, "to": 8, "shares": [[4, 8]]}` + "\n"
	)
	for name, c := range map[string]struct{ log, wantErr string }{
		"repeated":      {start2 + "W torchrun\n" + step1 + saved + step2 + start1 + again, ""},
		"left out":      {start2 + step2, "trains from 4 after position 0"},
		"no checkpoint": {start2 + step1 + step2 + start1, "no checkpoint"},
		"skipped":       {start2 + step1 + saved + strings.ReplaceAll(start1, "4", "8"), "no checkpoint"},
		"twice":         {start2 + strings.Replace(step1, "[2, 4]", "[1, 4]", 1), "once"},
		"one missing":   {start2 + strings.Replace(step1, "[2, 4]", "[2, 3]", 1), "once"},
		"silent worker": {start2 + strings.Replace(step1, ", [2, 4]", "", 1), "shares of 1"},
		"other world":   {start2 + again, "1 workers"},
	} {
		got, err := trace(parse(c.log))
		if c.wantErr == "" && (err != nil || len(got.Steps) != 2 || len(got.Repeated) != 1 || got.Repeated[0] != 4) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
			t.Errorf("%s: error %v, want %q", name, err, c.wantErr)
		}
	}
}
