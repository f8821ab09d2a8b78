package live

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kuota.dev/kuota/governance/kueue/simulate"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestLimits asks at once and later, as two users, and then as more users than are
// remembered.
func TestLimits(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := &Simulator{Now: func() time.Time { return now }}
	allowed := func(user string, questions int) (n int) {
		for range questions {
			if s.allows(user) {
				n++
			}
		}
		return n
	}
	for _, tc := range []struct {
		user            string
		after           time.Duration
		questions, want int
	}{
		{user: "ada", questions: 8, want: questionBurst},
		{user: "bob", questions: 8, want: questionBurst},
		{user: "ada", after: 2 * time.Second, questions: 8, want: 2},
		{user: "bob", after: time.Hour, questions: 8, want: questionBurst},
	} {
		now = now.Add(tc.after)
		if got := allowed(tc.user, tc.questions); got != tc.want {
			t.Errorf("%s may ask %d of %d questions after %s, want %d", tc.user, got, tc.questions, tc.after, tc.want)
		}
	}
	for i := range 3 * maxLimits {
		now = now.Add(time.Second)
		allowed(fmt.Sprint(i), 1)
	}
	if n := len(s.limits.users); n > maxLimits {
		t.Errorf("%d users are remembered, want at most %d", n, maxLimits)
	}
}

// TestAskTooOften asks more often than a user may: no snapshot is taken for it.
func TestAskTooOften(t *testing.T) {
	now, snapshots, unread := time.Now(), 0, errors.New("not read")
	s := &Simulator{Now: func() time.Time { return now }, Reader: func() (client.Reader, error) {
		snapshots++
		return nil, unread
	}}
	for i := range questionBurst + 1 {
		want := unread
		if i == questionBurst {
			want = ErrTooMany
		}
		if _, _, err := s.Ask(t.Context(), "ada", &simulate.Question{}); !errors.Is(err, want) {
			t.Errorf("question %d: error %v, want %v", i, err, want)
		}
	}
	if snapshots != questionBurst {
		t.Errorf("%d snapshots, want %d", snapshots, questionBurst)
	}
}
