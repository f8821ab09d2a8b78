package index

import (
	"fmt"
	"kuota.dev/kuota/governance/tasks/taskstest"
	"math/rand/v2"
	"testing"
	"time"
)

// Since when somebody has their place is what one finds who remembers all that
// ever came and went; where much happened it may be later, and says so, but it
// is never earlier.
func TestPlaceSince(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 3))
		var l positionLog
		var all []positionChange
		joined := map[sortKey]time.Time{}
		at := taskstest.Start
		for range 600 {
			at = at.Add(time.Duration(random.IntN(100)) * time.Second)
			s := sortKey{int32(random.IntN(3)), at.Unix(), fmt.Sprint(random.IntN(10))}
			_, leaves := joined[s]
			for there := range joined { // somebody leaves, or comes back to their seat of before
				if random.IntN(2) == 0 {
					s, leaves = there, true
				}
				break
			}
			if !leaves && len(all) > 0 && random.IntN(4) == 0 {
				s = all[random.IntN(len(all))].key
				_, leaves = joined[s]
			}
			l.record(at, s)
			all = append(all, positionChange{at: at, key: s})
			if leaves {
				delete(joined, s)
			} else {
				joined[s] = at
			}
		}
		if len(l.changes) > maxChanges {
			t.Fatalf("it keeps %d changes", len(l.changes))
		}
		for s, since := range joined {
			want := since
			for _, other := range all {
				if other.key.compare(s) < 0 && other.at.After(want) {
					want = other.at
				}
			}
			got, about := l.since(s)
			if since.After(got) {
				got, about = since, false
			}
			if got.Before(want) || got.After(want) && !about {
				t.Fatalf("seat %+v has its place since %s (about: %t), want %s", s, got, about, want)
			}
		}
	}
}

// Tasks that queue one behind the other change nobody's place, however many
// they are; whoever leaves at the front changes all.
func TestPlaceSinceInAQueue(t *testing.T) {
	x, c := newTestIndex()
	x.SetWorkload(taskstest.Workload("ns", "first", "", 0, taskstest.Start, taskstest.Pending(taskstest.Start)...), true)
	list := []string{"first"}
	for i := range 3 * maxChanges {
		c.At = c.At.Add(time.Minute)
		name := fmt.Sprintf("t%03d", i)
		x.SetWorkload(taskstest.Workload("ns", name, "", 0, c.At, taskstest.Pending(c.At)...), false)
		list = append(list, name)
	}
	since := func(name string) (time.Time, bool) { return x.PositionSince(x.Find("ns", "Job", name, "")) }
	if at, atLeast := since("first"); !at.Equal(taskstest.Start) || !atLeast {
		t.Errorf("the first stands there since %s (at least: %t)", at, atLeast)
	}
	for i, name := range list[1:] {
		if at, atLeast := since(name); !at.Equal(taskstest.Start.Add(time.Duration(i+1)*time.Minute)) || atLeast {
			t.Fatalf("%s stands there since %s (at least: %t)", name, at, atLeast)
		}
	}
	c.At = c.At.Add(time.Hour)
	x.DeleteWorkload(taskstest.Workload("ns", "first", "", 0, taskstest.Start))
	for _, name := range list[1:] {
		if at, atLeast := since(name); !at.Equal(c.At) || atLeast {
			t.Fatalf("%s moved up at %s (at least: %t), not when the first left", name, at, atLeast)
		}
	}
}
