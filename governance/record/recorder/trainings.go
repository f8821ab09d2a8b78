package recorder

import (
	"context"
	"errors"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/record/history"
)

// startsInterval is how often starts of trainings are recorded. A start is known until the next
// one, so that none is lost while the database does not answer for less than that.
const startsInterval = 5 * time.Second

// recordStarts records the starts of trainings until ctx ends or another replica begins a term.
func (r *Recorder) recordStarts(ctx context.Context) {
	if r.Trainings == nil {
		return
	}
	recorded := map[string]time.Time{} // the last start, by task
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, startsInterval) {
		starts := r.Trainings(ctx)
		if starts == nil {
			continue
		}
		latest, added := make(map[string]time.Time, len(starts)), []history.TrainingStart(nil)
		for _, s := range starts {
			if latest[s.TaskUID] = s.At; !recorded[s.TaskUID].Equal(s.At) {
				added = append(added, s)
			}
		}
		if len(added) == 0 {
			recorded = latest
			continue
		}
		switch err := history.WriteOrSetAside(ctx, r.Store, writerStarts, added, r.Store.RecordTrainingStarts); {
		case errors.Is(err, history.ErrNotLeader):
			return
		case err == nil:
			recorded = latest
		case ctx.Err() == nil:
			r.Log.Debug("starts of trainings are not recorded; retrying", "error", err)
		}
	}
}
