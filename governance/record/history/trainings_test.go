package history

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testTrainingStarts records starts twice, which changes nothing, and checks that they are deleted
// with their task, and by their time if their task was never recorded.
func testTrainingStarts(t *testing.T, url string) {
	ctx := t.Context()
	const days = 24 * time.Hour
	s := open(t, url, Options{Retention: 30 * days})
	now := start.Add(100 * days)
	ended, running := aTask("ended"), aTask("running")
	ended.SubmittedAt, ended.FinishedAt = start, start.Add(20*days)
	running.SubmittedAt = start
	ok(t, s.RecordTasks(ctx, []Record{{Task: ended}, {Task: running}}))
	want := map[string][]TrainingStart{}
	for _, uid := range []string{"ended", "running", "unknown"} {
		first, second := TrainingStart{uid, start.UTC().Truncate(time.Millisecond), time.Time{}}, TrainingStart{uid, now.Add(-days).UTC().Truncate(time.Millisecond), start.UTC().Truncate(time.Millisecond)}
		want[uid] = []TrainingStart{first, second}
		ok(t, s.RecordTrainingStarts(ctx, []TrainingStart{second}))
		again := second
		again.ContinuedFrom = time.Time{}
		ok(t, s.RecordTrainingStarts(ctx, []TrainingStart{first, again}))
	}
	if diff := cmp.Diff(want["running"], must[[]TrainingStart](t)(s.TrainingStarts(ctx, "running", 10))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want["running"][1:], must[[]TrainingStart](t)(s.TrainingStarts(ctx, "running", 1))); diff != "" {
		t.Errorf("the latest (-want +got):\n%s", diff)
	}
	ok(t, s.Forget(ctx, now))
	for uid, remain := range map[string]int{"ended": 0, "running": 2, "unknown": 1} {
		if found := must[[]TrainingStart](t)(s.TrainingStarts(ctx, uid, 10)); !slices.Equal(found, want[uid][2-remain:]) {
			t.Errorf("%v of the task %q remain, want %d", found, uid, remain)
		}
	}
}
