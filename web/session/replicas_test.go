package session_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/web/session"
)

// lags are the delays after which a store shows a write.
var lags = map[string]time.Duration{"a store that shows writes at once": 0, "a store that lags": 30 * time.Millisecond}

// A provider that rotates refresh tokens ends the session if the same token is used
// twice.
func TestOneConfirmationForAllWaiters(t *testing.T) {
	for name, tc := range map[string]struct{ lag, answer time.Duration }{
		"a store that shows writes at once, and a provider that takes its time": {0, 2 * time.Second},
		"a store that lags, and a provider that takes its time":                 {30 * time.Millisecond, 2 * time.Second},
		"a provider that answers before the store shows that a user asks":       {30 * time.Millisecond, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.store.lag, b.store.slow = tc.lag, 2*time.Millisecond
				b.provider.from(hangs(tc.answer, yes))
				time.Sleep(6 * time.Minute)
				replicas := []*session.Sessions{b.sessions, b.replica()}
				var all sync.WaitGroup
				for i := range 50 {
					all.Go(func() {
						found, err := replicas[i%2].Find(t.Context(), b.id, true)
						if err != nil || len(found.Groups) != 1 || found.Groups[0] != "speech-team" {
							t.Errorf("found groups %q, %v", found.Groups, err)
						}
					})
				}
				all.Wait()
				b.provider.wantAsked(t, 1)
				if refused := look(b.store, func(m *memory) int { return m.refused }); refused > 10 {
					t.Errorf("%d writes in vain", refused)
				}
			})
		})
	}
}

func TestConfirmationAfterAReplicaDied(t *testing.T) {
	inBubble(t, func(b *bubble) {
		dead, store := b.replica(), &readOnly{memory: b.store}
		dead.Store, dead.Provider = store, &provider{answer: hangs(time.Hour, yes)}
		time.Sleep(6 * time.Minute)
		go func() { _, _ = dead.Find(t.Context(), b.id, true) }()
		synctest.Wait()
		store.now.Store(true)
		time.Sleep(time.Second)
		began := time.Now()
		b.wantFound(true, "speech-team")
		if waited := time.Since(began); waited > 15*time.Second {
			t.Errorf("waited %s", waited)
		}
		b.provider.wantAsked(t, 1)
	})
}

func TestSignOutDuringConfirmation(t *testing.T) {
	for name, lag := range lags {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.provider.from(hangs(3*time.Second, yes))
				time.Sleep(6 * time.Minute)
				b.store.lag, b.store.slow = lag, 2*time.Millisecond
				waits := make(chan error, 1)
				go func() {
					_, err := b.find(true)
					waits <- err
				}()
				time.Sleep(3 * time.Second) // the answer arrives a moment later
				b.provider.wantAsked(t, 1)
				ended, err := b.replica().End(t.Context(), b.id)
				if err != nil || ended.User != "ada" || ended.IDToken != "id" {
					t.Fatalf("ended %q, %v", ended.User, err)
				}
				if err := <-waits; !errors.Is(err, session.ErrNotFound) {
					t.Errorf("the waiting replica: got %v, want ErrNotFound", err)
				}
				b.wantEnded()
			})
		})
	}
}

func TestOneSessionPerSignIn(t *testing.T) {
	inBubble(t, func(b *bubble) {
		other := ada
		other.User = "eve"
		if err := b.replica().Create(t.Context(), b.id, other); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v, want ErrNone", err)
		}
		b.wantFound(true, "vision-team")
	})
}

// Write access to the store is not enough to turn one user into another.
func TestSwappingSessionsInTheStore(t *testing.T) {
	inBubble(t, func(b *bubble) {
		eve := ada
		eve.User = "eve"
		id := session.NewID()
		if err := b.sessions.Create(t.Context(), id, eve); err != nil {
			t.Fatal(err)
		}
		look(b.store, func(m *memory) any {
			var names []string
			for name := range m.kept {
				names = append(names, name)
			}
			m.kept[names[0]], m.kept[names[1]] = m.kept[names[1]], m.kept[names[0]]
			return nil
		})
		for _, id := range []string{b.id, id} {
			if found, err := b.sessions.Find(t.Context(), id, true); !errors.Is(err, session.ErrNotFound) || found.User != "" {
				t.Errorf("found %q, %v", found.User, err)
			}
		}
	})
}

func TestSessionsUnderARemovedKey(t *testing.T) {
	inBubble(t, func(b *bubble) {
		if err := b.ring.Replace([]byte(newKey())); err != nil {
			t.Fatal(err)
		}
		b.wantError(session.ErrNotFound)
	})
}

func TestWhileTheStoreIsDown(t *testing.T) {
	inBubble(t, func(b *bubble) {
		turn := func(down bool) { look(b.store, func(m *memory) any { m.down = down; return nil }) }
		turn(true)
		b.wantError(session.ErrUnavailable)
		if _, err := b.sessions.End(t.Context(), b.id); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("ended: %v", err) // else the user would believe that they are signed out
		}
		if err := b.sessions.Create(t.Context(), session.NewID(), ada); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("began: %v", err)
		}
		turn(false)
		b.wantFound(true, "vision-team")
	})
}

// A store that refuses writes does not prevent reading.
func TestWhileTheStoreTakesNoWrites(t *testing.T) {
	inBubble(t, func(b *bubble) {
		store := &readOnly{memory: b.store}
		store.now.Store(true)
		b.sessions.Store = store
		time.Sleep(4*time.Minute - time.Second)
		b.wantFound(true, "vision-team")
		if _, err := b.sessions.End(t.Context(), b.id); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("ended: %v", err)
		}
		time.Sleep(2 * time.Minute)
		b.wantError(session.ErrUnavailable)
		b.provider.wantAsked(t, 0) // its answer could not be stored
	})
}
