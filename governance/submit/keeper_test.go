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
// again. While an API does not answer, only the tasks of its kind wait.
func TestKeepEach(t *testing.T) {
	var list []*tasks.Task
	for _, uid := range []string{"odd", "kept", "same", "last"} {
		list = append(list, &tasks.Task{UID: uid, Kind: map[string]string{"odd": "RayJob", "same": "RayJob"}[uid]})
	}
	for _, tc := range []struct {
		err                 error
		wantTried, wantDone []string
	}{
		{nil, []string{"odd", "same", "last"}, []string{"kept", "last", "odd", "same"}}, // a panic
		{errors.New("odd"), []string{"odd", "same", "last"}, []string{"kept", "last", "odd", "same"}},
		{context.DeadlineExceeded, []string{"odd", "last"}, []string{"kept", "last"}},
		{&governance.Error{Kind: governance.Unavailable}, []string{"odd", "same", "last"}, []string{"kept", "last", "same"}},
	} {
		k := &Keeper{Log: slog.New(slog.DiscardHandler), known: map[string]bool{}}
		var tried []string
		err := k.keepEach(t.Context(), list, map[string]bool{"kept": true}, func(_ context.Context, task *tasks.Task) error {
			if tried = append(tried, task.UID); task.UID == "odd" {
				if tc.err == nil {
					panic("odd")
				}
				return tc.err
			}
			return nil
		})
		var done []string
		for uid := range k.known {
			done = append(done, uid)
		}
		slices.Sort(done)
		if !slices.Equal(tried, tc.wantTried) || !slices.Equal(done, tc.wantDone) || (err == nil) != (len(tc.wantDone) == len(list)) {
			t.Errorf("with %v: tried %v, done %v, error %v; want %v and %v", tc.err, tried, done, err, tc.wantTried, tc.wantDone)
		}
	}
}
