package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// testSetAside writes items of which each odd one is refused: only those are set aside,
// once, and all others are written. What is wrong with the database sets nothing aside.
func testSetAside(t *testing.T, url string) {
	ctx := context.Background()
	s := open(t, url, Options{PersonRetention: 48 * time.Hour})
	var written []int
	write := func(_ context.Context, items []int) error {
		for _, n := range items {
			if n%2 == 1 {
				return errors.New("odd")
			}
		}
		written = append(written, items...)
		return nil
	}
	items := []int{0, 2, 3, 4, 5, 6, 8}
	for range 2 {
		written = nil
		ok(t, WriteOrSetAside(ctx, s, "numbers", items, write))
		if !slices.Equal(written, []int{0, 2, 4, 6, 8}) {
			t.Errorf("wrote %v", written)
		}
	}
	n, latest, err := s.CountSetAside(ctx, time.Now().Add(-time.Hour))
	if ok(t, err); n != 2 || latest == nil || latest.Writer != "numbers" || latest.Reason != "odd" || latest.Record != "3" && latest.Record != "5" {
		t.Errorf("set aside %d, the latest %+v", n, latest)
	}
	away := fmt.Errorf("history: record: %w", context.DeadlineExceeded)
	if err := WriteOrSetAside(ctx, s, "numbers", items, func(context.Context, []int) error { return away }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error", err)
	}
	ok(t, s.Forget(ctx, time.Now().Add(24*time.Hour)))
	if n, _, err := s.CountSetAside(ctx, time.Time{}); err != nil || n != 2 {
		t.Errorf("after a day %d are set aside, %v, want 2", n, err)
	}
	ok(t, s.Forget(ctx, time.Now().Add(72*time.Hour))) // persons are forgotten
	if n, _, err := s.CountSetAside(ctx, time.Time{}); err != nil || n != 0 {
		t.Errorf("after three days %d are set aside, %v, want none", n, err)
	}
}
