package webtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Store is an in-memory session.Store.
type Store struct {
	mu          sync.Mutex
	records     map[string]record
	counter     int
	unavailable bool
}

type record struct{ sealed, version string }

var errUnavailable = errors.New("the store is unavailable")

// SetUnavailable makes every call fail, or succeed again.
func (s *Store) SetUnavailable(unavailable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = unavailable
}

// Names returns the names of all sessions, sorted.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.records))
}

// Put creates or replaces a session without a version check.
func (s *Store) Put(name, sealed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, sealed)
}

func (s *Store) put(name, sealed string) {
	if s.records == nil {
		s.records = map[string]record{}
	}
	s.counter++
	s.records[name] = record{sealed, strconv.Itoa(s.counter)}
}

// Get implements session.Store.
func (s *Store) Get(_ context.Context, name string) (sealed, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return "", "", errUnavailable
	}
	return s.records[name].sealed, s.records[name].version, nil
}

// Create implements session.Store.
func (s *Store) Create(ctx context.Context, name, sealed string, until time.Time) (bool, error) {
	return s.Update(ctx, name, sealed, until, "") // the version of a session that does not exist
}

// Update implements session.Store.
func (s *Store) Update(_ context.Context, name, sealed string, _ time.Time, version string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return false, errUnavailable
	}
	if s.records[name].version != version {
		return false, nil
	}
	s.put(name, sealed)
	return true, nil
}

// Delete implements session.Store.
func (s *Store) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return errUnavailable
	}
	delete(s.records, name)
	return nil
}
