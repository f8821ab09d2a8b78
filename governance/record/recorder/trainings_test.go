package recorder

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
)

// startStore is a database that fails as often as fails says.
type startStore struct {
	Store
	fails  int
	err    error
	writes [][]history.TrainingStart
}

func (s *startStore) RecordTrainingStarts(_ context.Context, starts []history.TrainingStart) error {
	if s.fails > 0 {
		s.fails--
		return s.err
	}
	s.writes = append(s.writes, starts)
	return nil
}

// Each start is written once, again if that failed, and none by a replica that does not lead any
// more.
func TestStartsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := func(task string, seconds int) history.TrainingStart {
			return history.TrainingStart{TaskUID: task, At: at(seconds), ContinuedFrom: at(0)}
		}
		rounds := [][]history.TrainingStart{{start("a", 1)}, {start("a", 1)}, nil, {start("b", 2), start("a", 1)}, {start("b", 9)}, {start("b", 9)}, {}}
		store := &startStore{err: context.DeadlineExceeded}
		round := 0
		ctx, stop := context.WithCancel(t.Context())
		r := &Recorder{Store: store, Log: slog.New(slog.DiscardHandler), Trainings: func(context.Context) []history.TrainingStart {
			if round == 4 {
				store.fails = 1
			}
			if round == len(rounds)-1 {
				stop()
			}
			round++
			return rounds[round-1]
		}}
		began := time.Now()
		r.recordStarts(ctx)
		if took := time.Since(began); took != time.Duration(len(rounds)-1)*startsInterval {
			t.Errorf("it took %s", took)
		}
		want := [][]history.TrainingStart{{start("a", 1)}, {start("b", 2)}, {start("b", 9)}}
		if diff := cmp.Diff(want, store.writes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		store = &startStore{fails: 1, err: errors.Join(history.ErrNotLeader)}
		r.Store, r.Trainings = store, func(context.Context) []history.TrainingStart { return rounds[0] }
		r.recordStarts(t.Context())
		if len(store.writes) > 0 {
			t.Errorf("got %v from a replica that does not lead", store.writes)
		}
	})
}
