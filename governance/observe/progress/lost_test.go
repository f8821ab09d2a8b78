package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLost(t *testing.T) {
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	start := func(minute, from int) Start { return Start{at(minute), at(from)} }
	shrink := func(minute int) Interruption { return Interruption{at(minute), true} }
	growth := func(minute int) Interruption { return Interruption{at(minute), false} }
	const m = time.Minute
	for name, tc := range map[string]struct {
		starts        []Start
		interruptions []Interruption
		want          map[int]time.Duration
	}{
		"nothing known":                     {nil, []Interruption{shrink(5)}, map[int]time.Duration{}},
		"one start":                         {[]Start{start(6, 1)}, []Interruption{shrink(5)}, map[int]time.Duration{}},
		"not started again":                 {[]Start{start(0, 0)}, []Interruption{shrink(5)}, map[int]time.Duration{}},
		"lost":                              {[]Start{start(0, 0), start(6, 1)}, []Interruption{shrink(5)}, map[int]time.Duration{0: 4 * m}},
		"saved before it stopped":           {[]Start{start(0, 0), start(8, 6)}, []Interruption{shrink(5)}, map[int]time.Duration{0: 0}},
		"saved at that moment":              {[]Start{start(0, 0), start(8, 5)}, []Interruption{shrink(5)}, map[int]time.Duration{0: 0}},
		"continued from an unknown one":     {[]Start{start(0, 0), {At: at(6)}}, []Interruption{shrink(5)}, map[int]time.Duration{}},
		"a failure of a worker":             {[]Start{start(0, 0), start(6, 5), start(60, 50)}, []Interruption{growth(5)}, map[int]time.Duration{0: 0}},
		"before the first known start":      {[]Start{start(6, 1), start(60, 50)}, []Interruption{shrink(5)}, map[int]time.Duration{}},
		"each by its own start":             {[]Start{start(0, 0), start(6, 4), start(21, 14)}, []Interruption{growth(5), shrink(20)}, map[int]time.Duration{0: 1 * m, 1: 6 * m}},
		"twice without a checkpoint":        {[]Start{start(0, 0), start(6, 0), start(21, 0)}, []Interruption{shrink(5), shrink(20)}, map[int]time.Duration{0: 5 * m, 1: 20 * m}},
		"the first of two stopped the work": {[]Start{start(0, 0), start(9, 1)}, []Interruption{shrink(5), shrink(7)}, map[int]time.Duration{0: 4 * m}},
		"growth without its pods":           {[]Start{start(0, 0), start(9, 1)}, []Interruption{growth(2), shrink(7)}, map[int]time.Duration{1: 6 * m}},
		"growth after growth":               {[]Start{start(0, 0), start(9, 1)}, []Interruption{growth(2), growth(7)}, map[int]time.Duration{1: 6 * m}},
		"preempted, and grown when it runs": {[]Start{start(0, 0), start(300, 1)}, []Interruption{shrink(5), growth(299)}, map[int]time.Duration{0: 4 * m}},
		"a start between is not known":      {[]Start{start(0, 0), start(30, 12)}, []Interruption{shrink(5), shrink(20)}, map[int]time.Duration{1: 8 * m}},
		"all saved":                         {[]Start{start(0, 0), start(30, 25)}, []Interruption{shrink(5), shrink(20)}, map[int]time.Duration{1: 0}},
	} {
		if diff := cmp.Diff(tc.want, Lost(tc.starts, tc.interruptions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStarts(t *testing.T) {
	lines := []Progress{{Step: 1}, {Started: noon, ContinuedFrom: noon.Add(-time.Minute)}, {Started: noon, ContinuedFrom: noon.Add(-time.Minute)}, {Started: noon.Add(-time.Hour)}}
	want := []Start{{At: noon.Add(-time.Hour)}, {noon, noon.Add(-time.Minute)}}
	if diff := cmp.Diff(want, Starts(lines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, Merged(want[1:], want)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
