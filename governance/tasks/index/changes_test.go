package index

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks/taskstest"
)

// The log, which is bounded, returns the same time as a log of all changes. Where
// it has merged changes, the time may be later and is reported as approximate. It
// is never earlier.
func TestPositionSince(t *testing.T) {
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
			for queued := range joined { // one leaves, or one that left joins with its former key
				if random.IntN(2) == 0 {
					s, leaves = queued, true
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
			t.Fatalf("the log has %d changes, want at most %d", len(l.changes), maxChanges)
		}
		for s, since := range joined {
			want := since
			for _, other := range all {
				if other.key.compare(s) < 0 && other.at.After(want) {
					want = other.at
				}
			}
			got, approximate := l.since(s)
			if since.After(got) {
				got, approximate = since, false
			}
			if got.Before(want) || got.After(want) && !approximate {
				t.Fatalf("%+v has its position since %s (approximate: %t), want %s", s, got, approximate, want)
			}
		}
	}
}

// A task that joins at the end changes no other position, however many join. A
// task that leaves at the front changes all.
func TestPositionSinceInAQueue(t *testing.T) {
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
		t.Errorf("the first task has its position since %s (at least: %t), want %s (true)", at, atLeast, taskstest.Start)
	}
	for i, name := range list[1:] {
		if at, atLeast := since(name); !at.Equal(taskstest.Start.Add(time.Duration(i+1)*time.Minute)) || atLeast {
			t.Fatalf("%s has its position since %s (at least: %t), want the time at which it joined", name, at, atLeast)
		}
	}
	c.At = c.At.Add(time.Hour)
	x.DeleteWorkload(taskstest.Workload("ns", "first", "", 0, taskstest.Start))
	for _, name := range list[1:] {
		if at, atLeast := since(name); !at.Equal(c.At) || atLeast {
			t.Fatalf("%s moved up at %s (at least: %t), want %s, when the first task left", name, at, atLeast, c.At)
		}
	}
}
