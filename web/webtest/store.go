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

// Store is a session.Store in memory.
type Store struct {
	mu          sync.Mutex
	kept        map[string]record
	counter     int
	unavailable bool
}

type record struct{ sealed, version string }

var errUnavailable = errors.New("the store is away, as the test wants")

// SetAway makes every call fail, or work again.
func (s *Store) SetUnavailable(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = away
}

// Names are those that something is kept under, sorted.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.kept))
}

// Put keeps something whatever was there, as only somebody who can write to
// the store itself does.
func (s *Store) Put(name, sealed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(name, sealed)
}

func (s *Store) put(name, sealed string) {
	if s.kept == nil {
		s.kept = map[string]record{}
	}
	s.counter++
	s.kept[name] = record{sealed, strconv.Itoa(s.counter)}
}

// Get implements session.Store.
func (s *Store) Get(_ context.Context, name string) (sealed, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return "", "", errUnavailable
	}
	return s.kept[name].sealed, s.kept[name].version, nil
}

// Create implements session.Store.
func (s *Store) Create(_ context.Context, name, sealed string, _ time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return false, errUnavailable
	}
	if _, taken := s.kept[name]; taken {
		return false, nil
	}
	s.put(name, sealed)
	return true, nil
}

// Update implements session.Store.
func (s *Store) Update(_ context.Context, name, sealed string, _ time.Time, version string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return false, errUnavailable
	}
	if is, there := s.kept[name]; !there || is.version != version {
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
	delete(s.kept, name)
	return nil
}
