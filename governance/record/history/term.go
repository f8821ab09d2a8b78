package history

import (
	"context"
	"errors"
	"time"
)

// ErrNotLeader is returned for a write after another replica began a term.
var ErrNotLeader = errors.New("another replica of the console writes history now")

// BeginTerm makes this Store the only one that writes: writes of all others that
// began a term fail with ErrNotLeader from now on, also of a replica that was paused
// and continues. It returns SampledUntil, which no other Store changes afterwards.
// A Store that began no term writes without this protection.
func (s *Store) BeginTerm(ctx context.Context) (sampledUntil time.Time, err error) {
	var epoch int64
	err = s.writeAny(ctx, "begin a term", func(t *tx) error {
		if err := t.exec("UPDATE leader SET epoch = epoch + 1"); err != nil {
			return err
		}
		if err := t.queryRow("SELECT epoch FROM leader", nil, &epoch); err != nil {
			return err
		}
		// Sums are complete before the first sample, and not if an earlier version wrote.
		if err := t.exec("UPDATE state SET summed = CASE seen WHEN 0 THEN 0 ELSE -1 END WHERE summed < seen OR EXISTS (SELECT 1 FROM task_usage_days) AND NOT EXISTS (SELECT 1 FROM task_sizes)"); err != nil {
			return err
		}
		known, err := t.state()
		sampledUntil = fromMillis(known.seen)
		return err
	})
	if err == nil {
		s.epoch.Store(epoch)
	}
	return sampledUntil, err
}

// checkTerm returns ErrNotLeader if another Store began a term since this one. The
// lock of the transaction keeps others from beginning one before it ends.
func (t *tx) checkTerm(epoch int64) error {
	if epoch == 0 {
		return nil
	}
	var current int64
	if err := t.queryRow("SELECT epoch FROM leader", nil, &current); err != nil {
		return err
	}
	if current != epoch {
		return ErrNotLeader
	}
	return nil
}
