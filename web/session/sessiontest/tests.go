package sessiontest

import (
	"context"
	"fmt"
	"testing"
)

func nothing(t *testing.T, s store) {
	name := newName()
	for range 3 { // a store that asks twice must not remember the first answer
		s.shows(name, "")
	}
	s.create(name, "a.text", true)
	s.shows(name, "a.text")
}

func created(t *testing.T, s store) {
	name, sealed := newName(), newSealed(3000)
	s.create(name, sealed, true)
	s.shows(name, sealed)
}

func versions(t *testing.T, s store) {
	name, seen := newName(), map[string]bool{}
	s.create(name, "text-0", true)
	version := s.shows(name, "text-0")
	for i := range 5 {
		if seen[version] {
			t.Errorf("version %q comes again", version)
		}
		seen[version] = true
		next := fmt.Sprintf("text-%d", i+1)
		s.update(name, next, version, true)
		version = s.shows(name, next)
	}
}

func taken(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	s.create(name, "the-second", false)
	s.shows(name, "the-first")
	s.delete(name)
	s.create(name, "the-third", true)
}

func stale(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	old := s.shows(name, "the-first")
	s.update(name, "the-second", old, true)
	s.update(name, "the-third", old, false)
	now := s.shows(name, "the-second")
	s.update(name, "the-fourth", now, true)
	s.shows(name, "the-fourth")
}

func deleted(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.shows(name, "the-first")
	s.delete(name)
	s.update(name, "the-second", version, false)
	s.shows(name, "")
}

func replaced(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.shows(name, "the-first")
	s.delete(name)
	s.create(name, "the-second", true)
	s.update(name, "the-third", version, false) // names are not used again, so it need not be shown
}

func deletedTwice(t *testing.T, s store) {
	name := newName()
	s.delete(name)
	s.create(name, "a.text", true)
	s.delete(name)
	s.delete(name)
	s.shows(name, "")
}

func large(t *testing.T, s store) {
	name, sealed := newName(), newSealed(longest)
	s.create(name, sealed, true)
	version := s.shows(name, sealed)
	other := newSealed(longest)
	s.update(name, other, version, true)
	s.shows(name, other)
}

func apart(t *testing.T, s store) {
	one, other := newName(), newName()
	s.create(one, "of-one", true)
	s.create(other, "of-other", true)
	s.update(one, "of-one-again", s.shows(one, "of-one"), true)
	s.delete(one)
	s.shows(one, "")
	s.shows(other, "of-other")
}

func racingUpdates(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.shows(name, "the-first")
	for round := range 5 {
		winner := make(chan string, 10)
		won := many(t, func(i int) (bool, error) {
			text := fmt.Sprintf("round-%d-of-%d", round, i)
			kept, err := s.Update(t.Context(), name, text, inAnHour(), version)
			if kept {
				winner <- text
			}
			return kept, err
		})
		if won != 1 {
			t.Fatalf("%d of the updates won, want one", won)
		}
		version = s.shows(name, <-winner)
	}
}

func racingCreates(t *testing.T, s store) {
	name := newName()
	t.Cleanup(func() { _ = s.Store.Delete(context.Background(), name) })
	winner := make(chan string, 10)
	won := many(t, func(i int) (bool, error) {
		text := fmt.Sprintf("of-%d", i)
		made, err := s.Create(t.Context(), name, text, inAnHour())
		if made {
			winner <- text
		}
		return made, err
	})
	if won != 1 {
		t.Fatalf("%d of the creations won, want one", won)
	}
	s.shows(name, <-winner)
}

func cancelled(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.shows(name, "the-first")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if made, err := s.Create(ctx, newName(), "the-second", inAnHour()); err == nil || made {
		t.Errorf("Create returns %t and no error", made)
	}
	if kept, err := s.Update(ctx, name, "the-second", inAnHour(), version); err == nil || kept {
		t.Errorf("Update returns %t and no error", kept)
	}
	s.shows(name, "the-first")
}
