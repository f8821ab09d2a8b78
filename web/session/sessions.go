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
	// The provider confirms a session again once the last confirmation is older
	// than confirmAfter. Find returns no session whose confirmation is older than
	// confirmLimit: a user loses a group here within that time.
	confirmAfter = 4 * time.Minute
	confirmLimit = 5 * time.Minute
	// confirmTimeout bounds one confirmation: other replicas wait that long before
	// they start one. providerTimeout is the provider's share of it, so that the
	// result can still be stored. retryAfter is the pause after no answer.
	confirmTimeout  = 15 * time.Second
	providerTimeout = 10 * time.Second
	retryAfter      = 5 * time.Second
)

// Provider confirms an identity and returns it with the current groups.
type Provider interface {
	Refresh(ctx context.Context, identity signin.Identity) (signin.Identity, error)
}

// Limits are the maximum durations of a session.
type Limits struct {
	Idle     time.Duration // since the user last used it
	Absolute time.Duration // since sign-in
}

// Sessions creates, finds and ends sessions. It is safe for concurrent use.
type Sessions struct {
	Store    Store
	Ring     *Ring
	Provider Provider
	Limits   Limits
	Now      func() time.Time
	Log      *slog.Logger

	confirming sync.WaitGroup     // running confirmations
	once       singleflight.Group // merges concurrent requests for one session
}

// Create creates a session. id was returned by NewID when the sign-in began: one
// sign-in creates one session, so that a response of the provider cannot be
// replayed.
func (s *Sessions) Create(ctx context.Context, id string, identity signin.Identity) error {
	now := s.Now()
	record := Session{Identity: identity, Began: now, Seen: now, Confirmed: now}
	if len(identity.Unusable) > 0 {
		s.Log.Warn("groups of a sign-in are left out: their names are reserved by Kubernetes, or no names", "user", identity.User, "groups", identity.Unusable)
	}
	name := storeName(id)
	sealed, err := s.seal(name, record)
	if err != nil {
		return err
	}
	created, err := s.Store.Create(ctx, name, sealed, s.expires(record))
	if err != nil {
		return fmt.Errorf("%w: store the session: %w", ErrUnavailable, err)
	}
	if !created {
		return fmt.Errorf("%w: this sign-in created a session before", ErrNotFound)
	}
	return nil
}

// Drain waits until all running confirmations are stored, or ctx ends: the refresh
// token in the store may already be used up, and the new one only in memory.
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

// End deletes a session and returns it. It returns ErrNotFound if there was none,
// and an empty Session if this replica cannot decrypt it.
func (s *Sessions) End(ctx context.Context, id string) (Session, error) {
	record, version, err := s.read(ctx, id)
	if version == "" {
		return Session{}, err
	}
	// Another replica may be able to decrypt what this one cannot.
	if err := s.Store.Delete(ctx, storeName(id)); err != nil {
		return Session{}, fmt.Errorf("%w: delete the session: %w", ErrUnavailable, err)
	}
	return record, nil
}

// Find returns the session with this ID, confirmed by the provider within
// confirmLimit. used marks the session as used by the person, which an open page
// does not.
func (s *Sessions) Find(ctx context.Context, id string, used bool) (Session, error) {
	record, version, err := s.read(ctx, id)
	if err != nil {
		return Session{}, err
	}
	now := s.Now()
	if now.Sub(record.Began) > s.Limits.Absolute || now.Sub(record.Seen) > s.Limits.Idle {
		s.drop(ctx, id, record, "expired")
		return Session{}, fmt.Errorf("%w: expired", ErrNotFound)
	}
	if used && now.Sub(record.Seen) > s.Limits.Idle/10 {
		record.Seen = now
		// Once for concurrent requests. If the session changed since it was read, the
		// next request marks it.
		_, err, _ := s.once.Do("seen "+storeName(id), func() (any, error) { return s.update(ctx, id, record, version) })
		if err != nil {
			s.Log.Warn("session not marked as used", "user", record.User, "error", err)
		}
	}
	switch age := now.Sub(record.Confirmed); {
	case age > confirmLimit:
		return s.confirm(ctx, id)
	case age > confirmAfter:
		// In the background: the last confirmation is recent enough for this request.
		s.confirming.Go(func() { _, _ = s.confirm(context.WithoutCancel(ctx), id) })
	}
	return record, nil
}

// confirm returns the session once it is confirmed. Concurrent calls of this
// process share one confirmation.
func (s *Sessions) confirm(ctx context.Context, id string) (Session, error) {
	s.confirming.Add(1)
	defer s.confirming.Done()
	confirmed, err, _ := s.once.Do("confirm "+storeName(id), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
		defer cancel()
		return s.awaitConfirmed(ctx, id)
	})
	return confirmed.(Session), err
}

// awaitConfirmed waits until a replica confirmed the session; it does so itself
// unless another one is doing it.
func (s *Sessions) awaitConfirmed(ctx context.Context, id string) (Session, error) {
	for {
		record, version, err := s.read(ctx, id)
		if err != nil {
			return Session{}, err
		}
		now := s.Now()
		if now.Sub(record.Confirmed) <= confirmAfter {
			return record, nil // another replica confirmed it
		}
		if now.Sub(record.Failed) < retryAfter {
			return Session{}, fmt.Errorf("%w: the provider did not answer a moment ago", ErrUnavailable)
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
		// Another replica confirms the session, or the store lags behind its write.
		if err := waitForStore(ctx); err != nil {
			return Session{}, err
		}
	}
}

// waitForStore waits a moment for the store to return what was written to it.
func waitForStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// refresh asks the provider and stores the result, within confirmTimeout. It also
// stores that the provider did not answer.
func (s *Sessions) refresh(ctx context.Context, id string, record Session) (Session, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	providerCtx, stop := context.WithTimeout(ctx, providerTimeout)
	identity, refreshErr := s.Provider.Refresh(providerCtx, record.Identity)
	stop()
	if refreshErr != nil && !errors.Is(refreshErr, signin.ErrUnavailable) {
		// Another replica, whose clock is ahead, may have used the same refresh token
		// and been confirmed.
		if now, _, err := s.read(ctx, id); err == nil && now.Confirmed.After(record.Confirmed) {
			return now, nil
		}
		s.drop(ctx, id, record, refreshErr.Error())
		return Session{}, fmt.Errorf("%w: %w", ErrNotFound, refreshErr)
	}
	answered := s.Now()
	for {
		record, version, err := s.read(ctx, id)
		if err != nil {
			return Session{}, err // the user signed out meanwhile
		}
		record.Trying = time.Time{}
		if refreshErr != nil {
			record.Failed = answered
		} else {
			record.Identity, record.Confirmed = identity, answered
		}
		updated, err := s.update(ctx, id, record, version)
		switch {
		case err != nil:
			return Session{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case updated && refreshErr != nil:
			return Session{}, fmt.Errorf("%w: %w", ErrUnavailable, refreshErr)
		case updated:
			return record, nil
		}
		if err := waitForStore(ctx); err != nil {
			return Session{}, err
		}
	}
}

// drop deletes a session that ended.
func (s *Sessions) drop(ctx context.Context, id string, record Session, reason string) {
	s.Log.Info("session ended", "user", record.User, "reason", reason)
	if err := s.Store.Delete(ctx, storeName(id)); err != nil {
		s.Log.Warn("session not deleted, the store deletes it when it expires", "user", record.User, "error", err)
	}
}

// read returns the stored session. If it exists but cannot be decrypted, read
// returns an error and the version.
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

// update reports whether the session was still at version.
func (s *Sessions) update(ctx context.Context, id string, record Session, version string) (bool, error) {
	name := storeName(id)
	sealed, err := s.seal(name, record)
	if err != nil {
		return false, err
	}
	return s.Store.Update(ctx, name, sealed, s.expires(record), version)
}

// expires returns when the store may delete the session if it is not used again.
// Seen is accurate to a tenth of the idle limit.
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
		return "", fmt.Errorf("encode the session: %w", err)
	}
	return s.Ring.Seal(name, plain)
}
