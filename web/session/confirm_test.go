package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"
)

func TestNoEarlyConfirmation(t *testing.T) {
	inBubble(t, func(b *bubble) {
		for range 4 {
			time.Sleep(time.Minute)
			b.wantFound(true, "vision-team")
			synctest.Wait()
		}
		b.provider.wantAsked(t, 0)
	})
}

// Between four and five minutes after the last confirmation, requests do not wait
// for the provider.
func TestBackgroundConfirmation(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.provider.from(hangs(8*time.Second, yes))
		time.Sleep(4*time.Minute + time.Second)
		began := time.Now()
		for range 3 {
			b.wantFound(true, "vision-team")
			synctest.Wait()
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %s", waited)
		}
		time.Sleep(9 * time.Second)
		if found := b.wantFound(true, "speech-team"); found.RefreshToken != "refresh-0+" {
			t.Errorf("the refresh token is %q, want the one that the provider gave last", found.RefreshToken)
		}
		synctest.Wait()
		b.provider.wantAsked(t, 1)

		time.Sleep(4*time.Minute - 9*time.Second) // counted from the last confirmation
		b.wantFound(true, "speech-team")
		synctest.Wait()
		b.provider.wantAsked(t, 1)
		time.Sleep(4 * time.Minute)
		b.wantFound(true, "speech-team")
		synctest.Wait()
		b.provider.wantAsked(t, 2)
	})
}

func TestFailedBackgroundConfirmation(t *testing.T) {
	for name, answer := range map[string]func(context.Context, signin.Identity) (signin.Identity, error){
		"away": away, "hangs": hangs(time.Hour, yes),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.provider.from(answer)
				time.Sleep(4*time.Minute + time.Second)
				for began := time.Now(); time.Since(began) < 59*time.Second; time.Sleep(time.Second) {
					b.wantFound(true, "vision-team")
				}
			})
		})
	}
}

// After five minutes, no request is answered without a confirmation by the provider.
func TestForegroundConfirmation(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.provider.from(hangs(7*time.Second, yes))
		time.Sleep(5*time.Minute + time.Second)
		began := time.Now()
		b.wantFound(false, "speech-team")
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited %s, want 7s", waited)
		}
	})
}

// A user who is removed at the provider is signed out.
func TestSessionEndsOnRefusal(t *testing.T) {
	for name, age := range map[string]time.Duration{"asked while a user waits": 6 * time.Minute, "asked in the background": 4*time.Minute + time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.provider.from(no)
				time.Sleep(age)
				_, _ = b.find(true)
				synctest.Wait()
				b.wantEnded()
				b.provider.wantAsked(t, 1)
			})
		})
	}
}

func TestSessionSurvivesAnOutage(t *testing.T) {
	for name, answer := range map[string]func(context.Context, signin.Identity) (signin.Identity, error){
		"away": away, "hangs": hangs(time.Hour, yes),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				b.provider.from(answer)
				time.Sleep(6 * time.Minute)
				b.store.slow = 100 * time.Millisecond
				b.wantError(session.ErrUnavailable)
				b.store.slow = 0
				b.provider.wantAsked(t, 1)
				other := b.replica()
				for range 4 { // no replica asks again within five seconds
					time.Sleep(time.Second)
					b.wantError(session.ErrUnavailable)
					if _, err := other.Find(t.Context(), b.id, true); err == nil {
						t.Error("another replica answers")
					}
				}
				b.provider.wantAsked(t, 1)
				b.provider.from(nil)
				time.Sleep(time.Second)
				began := time.Now()
				b.wantFound(true, "speech-team")
				if waited := time.Since(began); waited != 0 {
					t.Errorf("waited %s for a provider that is back", waited)
				}
				b.provider.wantAsked(t, 2)
			})
		})
	}
}

// While the provider does not answer about one session, others are found within 5 s.
func TestHangingProviderTimesOut(t *testing.T) {
	inBubble(t, func(b *bubble) {
		other := session.NewID()
		if err := b.sessions.Create(t.Context(), other, signin.Identity{Subject: "5678", User: "bob"}); err != nil {
			t.Fatal(err)
		}
		b.provider.from(func(ctx context.Context, was signin.Identity) (signin.Identity, error) {
			if was.User == "bob" {
				return yes(ctx, was)
			}
			return hangs(time.Hour, yes)(ctx, was)
		})
		time.Sleep(6 * time.Minute)
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			found, err := b.sessions.Find(t.Context(), other, true)
			if waited := time.Since(began); err != nil || found.User != "bob" || waited > 5*time.Second {
				t.Errorf("the session behind: got %q and %v after %s", found.User, err, waited)
			}
		}()
		b.wantError(session.ErrUnavailable)
		if waited := time.Since(began); waited > 15*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

// An open page starts a confirmation, and the user acts before it ends.
func TestUseDuringConfirmationCounts(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.provider.from(hangs(8*time.Second, yes))
		time.Sleep(4*time.Minute + time.Second)
		b.wantFound(false, "vision-team") // asks
		synctest.Wait()
		time.Sleep(time.Second)
		used := time.Now()
		b.wantFound(true, "vision-team")
		time.Sleep(20 * time.Second)
		if found := b.wantFound(false, "speech-team"); found.Seen.Before(used) {
			t.Errorf("last used %s before it was", used.Sub(found.Seen))
		}
	})
}

// Find starts the confirmation in the background and returns: Drain must count
// the confirmation from then on, not only once its goroutine runs.
func TestDrainWaitsForBackgroundConfirmations(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.provider.from(hangs(2*time.Second, yes))
		token := ada.RefreshToken
		for range 50 {
			time.Sleep(4*time.Minute + time.Second)
			if _, err := b.find(true); err != nil {
				b.t.Fatal(err)
			}
			b.sessions.Drain(b.t.Context())
			token += "+"
			found, err := b.find(true)
			if err != nil || found.RefreshToken != token {
				b.t.Fatalf("after Drain the refresh token has %d characters (%v), want %d", len(found.RefreshToken), err, len(token))
			}
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.provider.from(hangs(time.Hour, yes))
		time.Sleep(4*time.Minute + time.Second)
		b.wantFound(true, "vision-team")
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		b.sessions.Drain(ctx)
		if waited := time.Since(began); waited != time.Second {
			b.t.Errorf("Drain took %s, want 1s", waited)
		}
	})
}
