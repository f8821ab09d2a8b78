package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kuota.dev/kuota/web/signin"

	"golang.org/x/sync/singleflight"
)

const (
	// confirmAfter is how old what the provider said may get before it is asked
	// again; beyond confirmLimit nothing is answered without asking. A group
	// that somebody lost is lost here within confirmLimit.
	confirmAfter = 4 * time.Minute
	confirmLimit = 5 * time.Minute
	// tryLimit is how long one replica's question to the provider keeps the
	// others from asking too, askLimit how much of that the provider may take,
	// and tryAgain how soon one that gave no answer is asked again.
	confirmTimeout  = 15 * time.Second
	providerTimeout = 10 * time.Second
	retryAfter      = 5 * time.Second
)

// Provider confirms that somebody is still who they were, and names their
// groups anew.
type Provider interface {
	Refresh(ctx context.Context, identity signin.Identity) (signin.Identity, error)
}

// Limits say when a session ends by itself.
type Limits struct {
	Idle     time.Duration // after the person last used it
	Absolute time.Duration // after sign-in
}

// Sessions are all who are signed in.
type Sessions struct {
	Store    Store
	Ring     *Ring
	Provider Provider
	Limits   Limits
	Now      func() time.Time // the clock
	Log      *slog.Logger

	confirming sync.WaitGroup     // questions under way
	once       singleflight.Group // what requests at the same time do together
}

// Begin makes a session. The id was made with NewID when the sign-in began:
// one sign-in makes one session, so that its answer cannot be played again.
func (s *Sessions) Create(ctx context.Context, id string, identity signin.Identity) error {
	now := s.Now()
	record := Session{Identity: identity, Began: now, Seen: now, Confirmed: now}
	name := storeName(id)
	sealed, err := s.seal(name, record)
	if err != nil {
		return err
	}
	made, err := s.Store.Create(ctx, name, sealed, s.expires(record))
	if err != nil {
		return fmt.Errorf("%w: keeping the session: %w", ErrUnavailable, err)
	}
	if !made {
		return fmt.Errorf("%w: this sign-in was answered before", ErrNotFound)
	}
	return nil
}

// Drain waits until the answers to all questions under way are kept, or ctx
// ends: a provider may give each refresh token only once.
func (s *Sessions) Drain(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		s.confirming.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// End ends a session, and returns who it was as far as that can be read;
// ErrNone when there was none.
func (s *Sessions) End(ctx context.Context, id string) (Session, error) {
	record, version, err := s.read(ctx, id)
	if version == "" {
		return Session{}, err
	}
	// What cannot be opened here, another replica may be able to open.
	if err := s.Store.Delete(ctx, storeName(id)); err != nil {
		return Session{}, fmt.Errorf("%w: deleting the session: %w", ErrUnavailable, err)
	}
	return record, nil
}

// Find returns the session that an id stands for, confirmed within
// confirmLimit. used says that the person did something, which an open page
// does not.
func (s *Sessions) Find(ctx context.Context, id string, used bool) (Session, error) {
	record, version, err := s.read(ctx, id)
	if err != nil {
		return Session{}, err
	}
	now := s.Now()
	if now.Sub(record.Began) > s.Limits.Absolute || now.Sub(record.Seen) > s.Limits.Idle {
		s.drop(ctx, id, record, "its time is over")
		return Session{}, fmt.Errorf("%w: its time is over", ErrNotFound)
	}
	if used && now.Sub(record.Seen) > s.Limits.Idle/10 {
		record.Seen = now
		// Once for all requests of this moment; whoever changes the session first
		// leaves it to the next request.
		_, err, _ := s.once.Do("seen "+storeName(id), func() (any, error) { return s.update(ctx, id, record, version) })
		if err != nil {
			s.Log.Warn("session not marked as used", "user", record.User, "error", err)
		}
	}
	switch age := now.Sub(record.Confirmed); {
	case age > confirmLimit:
		return s.confirm(ctx, id)
	case age > confirmAfter:
		// Nobody waits for the provider as long as what it said is fresh enough.
		s.confirming.Go(func() { _, _ = s.confirm(context.WithoutCancel(ctx), id) })
	}
	return record, nil
}

// confirm asks the provider, once for all who wait in this process; the store
// sees to it that only one replica asks.
func (s *Sessions) confirm(ctx context.Context, id string) (Session, error) {
	s.confirming.Add(1)
	defer s.confirming.Done()
	found, err, _ := s.once.Do("confirm "+storeName(id), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
		defer cancel()
		return s.awaitConfirmed(ctx, id)
	})
	return found.(Session), err
}

func (s *Sessions) awaitConfirmed(ctx context.Context, id string) (Session, error) {
	for {
		record, version, err := s.read(ctx, id)
		if err != nil {
			return Session{}, err
		}
		now := s.Now()
		if now.Sub(record.Confirmed) <= confirmAfter {
			return record, nil // somebody else did it
		}
		if now.Sub(record.Failed) < retryAfter {
			return Session{}, fmt.Errorf("%w: the provider gave no answer a moment ago", ErrUnavailable)
		}
		if now.Sub(record.Trying) >= confirmTimeout {
			record.Trying = now
			won, err := s.update(ctx, id, record, version)
			if err != nil {
				return Session{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if won {
				return s.refresh(ctx, id, record)
			}
		}
		// Another replica is asking, or the store has not shown yet that it did.
		if err := waitForStore(ctx); err != nil {
			return Session{}, err
		}
	}
}

// pause lets the store show what was written to it.
func waitForStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// refresh asks the provider and keeps the answer, within tryLimit from now. The
// provider gets less, so that what it said, or that it said nothing, is kept.
func (s *Sessions) refresh(ctx context.Context, id string, record Session) (Session, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	asking, stop := context.WithTimeout(ctx, providerTimeout)
	identity, refused := s.Provider.Refresh(asking, record.Identity)
	stop()
	if refused != nil && !errors.Is(refused, signin.ErrUnavailable) {
		// A replica whose clock is ahead may have asked with the same token, and
		// have the yes.
		if now, _, err := s.read(ctx, id); err == nil && now.Confirmed.After(record.Confirmed) {
			return now, nil
		}
		s.drop(ctx, id, record, refused.Error())
		return Session{}, fmt.Errorf("%w: %w", ErrNotFound, refused)
	}
	answered := s.Now()
	for {
		record, version, err := s.read(ctx, id)
		if err != nil {
			return Session{}, err // signed out in between, which stands
		}
		record.Trying = time.Time{}
		if refused != nil {
			record.Failed = answered
		} else {
			record.Identity, record.Confirmed = identity, answered
		}
		kept, err := s.update(ctx, id, record, version)
		switch {
		case err != nil:
			return Session{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case kept && refused != nil:
			return Session{}, fmt.Errorf("%w: %w", ErrUnavailable, refused)
		case kept:
			return record, nil
		}
		if err := waitForStore(ctx); err != nil {
			return Session{}, err
		}
	}
}

// drop deletes a session that is over.
func (s *Sessions) drop(ctx context.Context, id string, record Session, why string) {
	s.Log.Info("session ended", "user", record.User, "why", why)
	if err := s.Store.Delete(ctx, storeName(id)); err != nil {
		s.Log.Warn("session not deleted; it is deleted when it expires", "user", record.User, "error", err)
	}
}

// read returns what is kept for an id. A version with an error says that there
// is something, and it cannot be opened.
func (s *Sessions) read(ctx context.Context, id string) (record Session, version string, err error) {
	if len(id) != idLength {
		return record, "", ErrNotFound
	}
	name := storeName(id)
	sealed, version, err := s.Store.Get(ctx, name)
	if err != nil {
		return record, "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if version == "" {
		return record, "", ErrNotFound
	}
	plain, err := s.Ring.Open(name, sealed)
	if err == nil {
		err = json.Unmarshal(plain, &record)
	}
	if err != nil {
		return Session{}, version, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return record, version, nil
}

func (s *Sessions) update(ctx context.Context, id string, record Session, version string) (bool, error) {
	name := storeName(id)
	sealed, err := s.seal(name, record)
	if err != nil {
		return false, err
	}
	return s.Store.Update(ctx, name, sealed, s.expires(record), version)
}

// expires is when a session is over if nobody comes back. Use is marked to
// within a tenth of the idle limit.
func (s *Sessions) expires(record Session) time.Time {
	idle, absolute := record.Seen.Add(s.Limits.Idle+s.Limits.Idle/10), record.Began.Add(s.Limits.Absolute)
	if idle.Before(absolute) {
		return idle
	}
	return absolute
}

func (s *Sessions) seal(name string, record Session) (string, error) {
	plain, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("writing the session down: %w", err)
	}
	return s.Ring.Seal(name, plain)
}
