package session_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/signin"
)

// Tests of time run in a bubble of testing/synctest: time.Sleep advances its clock
// at once, and Now reads the same clock.

const (
	idle     = 30 * time.Minute
	absolute = 12 * time.Hour
)

var ada = signin.Identity{Subject: "1234", User: "ada", Groups: []string{"vision-team"}, RefreshToken: "refresh-0", IDToken: "id"}

// provider answers as a test configures it. By default it confirms at once, with a
// new refresh token each time.
type provider struct {
	mu     sync.Mutex
	asked  int
	tokens []string // tokens of the requests
	answer func(ctx context.Context, was signin.Identity) (signin.Identity, error)
}

func (p *provider) Refresh(ctx context.Context, was signin.Identity) (signin.Identity, error) {
	p.mu.Lock()
	p.asked++
	p.tokens = append(p.tokens, was.RefreshToken)
	answer := p.answer
	p.mu.Unlock()
	if answer != nil {
		return answer(ctx, was)
	}
	return yes(ctx, was)
}

func yes(_ context.Context, was signin.Identity) (signin.Identity, error) {
	was.Groups, was.RefreshToken = []string{"speech-team"}, was.RefreshToken+"+"
	return was, nil
}

// hangs returns an answer that comes after a while, or when the context ends.
func hangs(while time.Duration, then func(context.Context, signin.Identity) (signin.Identity, error)) func(context.Context, signin.Identity) (signin.Identity, error) {
	return func(ctx context.Context, was signin.Identity) (signin.Identity, error) {
		select {
		case <-ctx.Done():
			return signin.Identity{}, errors.Join(signin.ErrUnavailable, ctx.Err())
		case <-time.After(while):
			return then(ctx, was)
		}
	}
}

func no(context.Context, signin.Identity) (signin.Identity, error) {
	return signin.Identity{}, &signin.Refusal{Message: "Sign in again."}
}

func away(context.Context, signin.Identity) (signin.Identity, error) {
	return signin.Identity{}, signin.ErrUnavailable
}

// from changes the provider's answer from now on.
func (p *provider) from(answer func(context.Context, signin.Identity) (signin.Identity, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *provider) wantAsked(t *testing.T, want int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked != want {
		t.Errorf("the provider was asked %d times, want %d", p.asked, want)
	}
}

// bubble is a console with one session that was just created.
type bubble struct {
	t        *testing.T
	store    *memory
	provider *provider
	ring     *session.Ring
	sessions *session.Sessions
	id       string
}

// inBubble runs a test with its own clock. The store shows writes at once.
func inBubble(t *testing.T, test func(*bubble)) {
	t.Helper()
	key := newKey()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, store: newMemory(), provider: &provider{}, ring: newRing(t, key), id: session.NewID()}
		b.sessions = b.replica()
		if err := b.sessions.Create(t.Context(), b.id, ada); err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(time.Minute) // wait for background work
		test(b)
	})
}

// replica returns another console on the same store.
func (b *bubble) replica() *session.Sessions {
	return &session.Sessions{
		Store: b.store, Ring: b.ring, Provider: b.provider, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Limits: session.Limits{Idle: idle, Absolute: absolute},
	}
}

func (b *bubble) find(used bool) (session.Session, error) {
	return b.sessions.Find(b.t.Context(), b.id, used)
}

// wantFound fails unless the session exists, with this group.
func (b *bubble) wantFound(used bool, group string) session.Session {
	b.t.Helper()
	found, err := b.find(used)
	if err != nil {
		b.t.Fatal(err)
	}
	if found.User != "ada" || len(found.Groups) != 1 || found.Groups[0] != group {
		b.t.Fatalf("found %s of %q, want ada of %s", found.User, found.Groups, group)
	}
	return found
}

// wantError fails unless Find returns want, and no identity.
func (b *bubble) wantError(want error) {
	b.t.Helper()
	found, err := b.find(true)
	if !errors.Is(err, want) || found.User != "" {
		b.t.Fatalf("found %q, %v; want %v", found.User, err, want)
	}
}

// wantEnded fails unless the session is deleted permanently.
func (b *bubble) wantEnded() {
	b.t.Helper()
	b.wantError(session.ErrNotFound)
	if kept := size(b.store); kept != 0 {
		b.t.Errorf("%d sessions are still kept", kept)
	}
}
