package submit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"
)

// A task whose manifest cannot be kept does not stop those behind it, and is not tried
// again. While the API server or the database is away, the others wait.
func TestKeepEach(t *testing.T) {
	var list []*tasks.Task
	for _, uid := range []string{"odd", "kept", "last"} {
		list = append(list, &tasks.Task{UID: uid})
	}
	for _, tc := range []struct {
		err                 error
		wantTried, wantDone []string
	}{
		{errors.New("odd"), []string{"odd", "last"}, []string{"kept", "last", "odd"}},
		{context.DeadlineExceeded, []string{"odd"}, nil},
		{&governance.Error{Kind: governance.Unavailable}, []string{"odd"}, nil},
	} {
		k := &Keeper{Log: slog.New(slog.DiscardHandler), known: map[string]bool{}}
		var tried []string
		err := k.keepEach(t.Context(), list, map[string]bool{"kept": true}, func(_ context.Context, task *tasks.Task) error {
			if tried = append(tried, task.UID); task.UID == "odd" {
				return tc.err
			}
			return nil
		})
		var done []string
		for uid := range k.known {
			done = append(done, uid)
		}
		slices.Sort(done)
		if !slices.Equal(tried, tc.wantTried) || !slices.Equal(done, tc.wantDone) || (err == nil) != (tc.wantDone != nil) {
			t.Errorf("with %v: tried %v, done %v, error %v; want %v and %v", tc.err, tried, done, err, tc.wantTried, tc.wantDone)
		}
	}
}
