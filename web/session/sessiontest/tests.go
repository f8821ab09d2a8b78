package sessiontest

import (
	"context"
	"fmt"
	"testing"
)

func testNothing(t *testing.T, s store) {
	name := newName()
	for range 3 { // a store must not cache that the name does not exist
		s.waitFor(name, "")
	}
	s.create(name, "a.text", true)
	s.waitFor(name, "a.text")
}

func testCreate(t *testing.T, s store) {
	name, sealed := newName(), newSealed(3000)
	s.create(name, sealed, true)
	s.waitFor(name, sealed)
}

func testVersions(t *testing.T, s store) {
	name, seen := newName(), map[string]bool{}
	s.create(name, "text-0", true)
	version := s.waitFor(name, "text-0")
	for i := range 5 {
		if seen[version] {
			t.Errorf("version %q is repeated", version)
		}
		seen[version] = true
		next := fmt.Sprintf("text-%d", i+1)
		s.update(name, next, version, true)
		version = s.waitFor(name, next)
	}
}

func testNameTaken(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	s.create(name, "the-second", false)
	s.waitFor(name, "the-first")
	s.delete(name)
	s.create(name, "the-third", true)
}

func testStaleUpdate(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	old := s.waitFor(name, "the-first")
	s.update(name, "the-second", old, true)
	s.update(name, "the-third", old, false)
	now := s.waitFor(name, "the-second")
	s.update(name, "the-fourth", now, true)
	s.waitFor(name, "the-fourth")
}

func testUpdateAfterDelete(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.waitFor(name, "the-first")
	s.delete(name)
	s.update(name, "the-second", version, false)
	s.waitFor(name, "")
}

func testUpdateAfterRecreate(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.waitFor(name, "the-first")
	s.delete(name)
	s.create(name, "the-second", true)
	s.update(name, "the-third", version, false) // names are not used again, so Get need not return it
}

func testDeleteTwice(t *testing.T, s store) {
	name := newName()
	s.delete(name)
	s.create(name, "a.text", true)
	s.delete(name)
	s.delete(name)
	s.waitFor(name, "")
}

func testLarge(t *testing.T, s store) {
	name, sealed := newName(), newSealed(largestSession)
	s.create(name, sealed, true)
	version := s.waitFor(name, sealed)
	other := newSealed(largestSession)
	s.update(name, other, version, true)
	s.waitFor(name, other)
}

func testSeparateNames(t *testing.T, s store) {
	one, other := newName(), newName()
	s.create(one, "of-one", true)
	s.create(other, "of-other", true)
	s.update(one, "of-one-again", s.waitFor(one, "of-one"), true)
	s.delete(one)
	s.waitFor(one, "")
	s.waitFor(other, "of-other")
}

func testConcurrentUpdates(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.waitFor(name, "the-first")
	for round := range 5 {
		winner := make(chan string, 10)
		won := countTrue(t, func(i int) (bool, error) {
			text := fmt.Sprintf("round-%d-of-%d", round, i)
			updated, err := s.Update(t.Context(), name, text, inAnHour(), version)
			if updated {
				winner <- text
			}
			return updated, err
		})
		if won != 1 {
			t.Fatalf("%d updates succeeded, want 1", won)
		}
		version = s.waitFor(name, <-winner)
	}
}

func testConcurrentCreates(t *testing.T, s store) {
	name := newName()
	t.Cleanup(func() { _ = s.Store.Delete(context.Background(), name) })
	winner := make(chan string, 10)
	won := countTrue(t, func(i int) (bool, error) {
		text := fmt.Sprintf("of-%d", i)
		created, err := s.Create(t.Context(), name, text, inAnHour())
		if created {
			winner <- text
		}
		return created, err
	})
	if won != 1 {
		t.Fatalf("%d creations succeeded, want 1", won)
	}
	s.waitFor(name, <-winner)
}

func testCanceledContext(t *testing.T, s store) {
	name := newName()
	s.create(name, "the-first", true)
	version := s.waitFor(name, "the-first")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if created, err := s.Create(ctx, newName(), "the-second", inAnHour()); err == nil || created {
		t.Errorf("Create returns %t and no error", created)
	}
	if updated, err := s.Update(ctx, name, "the-second", inAnHour(), version); err == nil || updated {
		t.Errorf("Update returns %t and no error", updated)
	}
	s.waitFor(name, "the-first")
}
