package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/bulk"
)

var ada = governance.User{Name: "ada"}

func as(context.Context) (governance.User, error) { return ada, nil }

func items(n int) (list []bulk.Item) {
	for i := range n {
		list = append(list, bulk.Item{Name: fmt.Sprint("task-", i)})
	}
	return list
}

func start(t *testing.T, s *bulk.Service, as bulk.As, list []bulk.Item, do func(context.Context, governance.User, int) error) string {
	t.Helper()
	id, err := s.Start(t.Context(), as, bulk.Run{Title: "Stop", Items: list}, do)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func get(t *testing.T, s *bulk.Service, id string) bulk.Run {
	t.Helper()
	run, err := s.Get(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Each object is changed once, those with a problem are not, and every replica shows the
// outcomes.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulk.Memory{}
		s := &bulk.Service{Context: t.Context(), Store: store, Log: slog.New(slog.DiscardHandler)}
		list := items(100)
		list[7].Problem = "It has ended."
		var mu sync.Mutex
		var changed []int
		id := start(t, s, as, list, func(_ context.Context, user governance.User, i int) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			changed = append(changed, i)
			switch i {
			case 3:
				return &governance.Error{Kind: governance.Conflict, Message: "It was deleted."}
			case 4:
				return errors.New("secret: password")
			case 5:
				panic("odd task")
			}
			return nil
		})
		other := &bulk.Service{Context: t.Context(), Store: store, Log: slog.New(slog.DiscardHandler)}
		time.Sleep(5 * time.Second)
		early := get(t, other, id)
		if done, failed, left := early.Counts(); done == 0 || left == 0 || failed == 0 {
			t.Errorf("after 5 s: got %d done, %d failed, %d left, want some of each", done, failed, left)
		}
		time.Sleep(time.Minute)
		for name, s := range map[string]*bulk.Service{"this replica": s, "another": other} {
			run := get(t, s, id)
			if done, failed, left := run.Counts(); done != 96 || failed != 4 || left != 0 || !run.Ended || run.Lost(time.Now()) {
				t.Errorf("%s: got %d done, %d failed, %d left, ended %t", name, done, failed, left, run.Ended)
			}
			if got := []string{run.Items[3].Problem, run.Items[4].Problem, run.Items[7].Problem}; got[0] != "It was deleted." || got[1] != "It failed. The log of the console has the reason." || got[2] != "It has ended." {
				t.Errorf("%s: got the problems %q", name, got)
			}
		}
		slices.Sort(changed)
		if len(slices.Compact(changed)) != 99 || slices.Contains(changed, 7) {
			t.Errorf("changed %d objects, want each of 99 once", len(changed))
		}
		time.Sleep(25 * time.Hour)
		if _, err := other.Get(t.Context(), ada, id); governance.KindOf(err) != governance.NotFound {
			t.Errorf("after a day: got %v, want not found", err)
		}
	})
}

// A session that ends stops the rest of a run.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &bulk.Service{Context: t.Context(), Store: &bulk.Memory{}, Log: slog.New(slog.DiscardHandler)}
		began := time.Now()
		until := func(context.Context) (governance.User, error) {
			if time.Since(began) > 3*time.Second {
				return governance.User{}, &governance.Error{Kind: governance.Forbidden, Message: "Your session ended before its turn."}
			}
			return ada, nil
		}
		id := start(t, s, until, items(100), func(context.Context, governance.User, int) error { time.Sleep(time.Second); return nil })
		time.Sleep(time.Minute)
		run := get(t, s, id)
		if done, failed, left := run.Counts(); done == 0 || done > 40 || done+failed != 100 || left != 0 || run.Items[99].Problem != "Your session ended before its turn." {
			t.Errorf("got %d done, %d failed, %d left", done, failed, left)
		}
	})
}

// What a replica that stops has not changed is not done, and never said to be.
func TestReplicaIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &bulk.Memory{}
		life, stop := context.WithCancel(t.Context())
		s := &bulk.Service{Context: life, Store: store, Log: slog.New(slog.DiscardHandler)}
		id := start(t, s, as, items(100), func(ctx context.Context, _ governance.User, _ int) error { return governance.Sleep(ctx, time.Second) })
		time.Sleep(3500 * time.Millisecond)
		stop()
		other := &bulk.Service{Context: t.Context(), Store: store, Log: slog.New(slog.DiscardHandler)}
		time.Sleep(time.Minute)
		run := get(t, other, id)
		if done, failed, left := run.Counts(); !run.Lost(time.Now()) || run.Ended || done == 0 || failed != 0 || left == 0 {
			t.Errorf("got %d done, %d failed, %d left, lost %t", done, failed, left, run.Lost(time.Now()))
		}
	})
}

// A run is found by its user only.
func TestRunsOfOthers(t *testing.T) {
	s := &bulk.Service{Context: t.Context(), Store: &bulk.Memory{}, Log: slog.New(slog.DiscardHandler)}
	id := start(t, s, as, items(1), func(context.Context, governance.User, int) error { return nil })
	for _, tc := range []struct {
		user governance.User
		id   string
	}{{governance.User{Name: "grace"}, id}, {ada, "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, {ada, "../" + id}, {ada, ""}} {
		if _, err := s.Get(t.Context(), tc.user, tc.id); governance.KindOf(err) != governance.NotFound {
			t.Errorf("%s reads %q: got %v, want not found", tc.user.Name, tc.id, err)
		}
	}
	for _, n := range []int{0, bulk.MaxItems + 1} {
		if _, err := s.Start(t.Context(), as, bulk.Run{Items: items(n)}, nil); governance.KindOf(err) != governance.Invalid {
			t.Errorf("%d objects: got %v, want invalid", n, err)
		}
	}
}
