// Package sessiontest tests implementations of session.Store.
package sessiontest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/web/session"
)

const (
	// largestSession is the size of the largest session in bytes: a user with
	// thousands of groups, and tokens that repeat them.
	largestSession = 700 << 10
	// visibleWithin is how long Get may lag behind a write.
	visibleWithin = 10 * time.Second
)

// TestStore runs all tests. newStore may return the same store each time: tests
// only use names that they created.
func TestStore(t *testing.T, newStore func(t *testing.T) session.Store) {
	for name, test := range map[string]func(*testing.T, store){
		"Get returns nothing before Create":                     testNothing,
		"Get returns what was created":                          testCreate,
		"every write changes the version":                       testVersions,
		"Create does not replace a session":                     testNameTaken,
		"Update at an old version changes nothing":              testStaleUpdate,
		"Update does not restore a deleted session":             testUpdateAfterDelete,
		"Update does not change a new session of the same name": testUpdateAfterRecreate,
		"Delete of a missing session succeeds":                  testDeleteTwice,
		"a large session is stored whole":                       testLarge,
		"sessions do not affect each other":                     testSeparateNames,
		"one of many concurrent updates succeeds":               testConcurrentUpdates,
		"one of many concurrent creations succeeds":             testConcurrentCreates,
		"a write with a canceled context fails":                 testCanceledContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, store{t, newStore(t)}) })
	}
}

// newName returns a name of the form that sessions have.
func newName() string {
	sum := sha256.Sum256([]byte(rand.Text()))
	return hex.EncodeToString(sum[:])
}

// newSealed returns a text of the form that encrypted sessions have: base64 and
// dots.
func newSealed(size int) string {
	return strings.Repeat(rand.Text()+".", size/27+1)[:size]
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// store is a Store whose errors fail the test.
type store struct {
	t testing.TB
	session.Store
}

func (s store) create(name, sealed string, want bool) {
	s.t.Helper()
	s.t.Cleanup(func() { _ = s.Store.Delete(context.Background(), name) })
	created, err := s.Create(s.t.Context(), name, sealed, inAnHour())
	if err != nil || created != want {
		s.t.Fatalf("Create returns %t, %v; want %t", created, err, want)
	}
}

func (s store) update(name, sealed, version string, want bool) {
	s.t.Helper()
	updated, err := s.Update(s.t.Context(), name, sealed, inAnHour(), version)
	if err != nil || updated != want {
		s.t.Fatalf("Update returns %t, %v; want %t", updated, err, want)
	}
}

func (s store) delete(name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), name); err != nil {
		s.t.Fatal(err)
	}
}

// waitFor waits until Get returns sealed, "" meaning no session, and returns the
// version.
func (s store) waitFor(name, sealed string) string {
	s.t.Helper()
	var got, version string
	for limit := time.Now().Add(visibleWithin); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		var err error
		if got, version, err = s.Get(s.t.Context(), name); err != nil {
			s.t.Fatal(err)
		}
		if got == sealed && (version == "") == (sealed == "") {
			return version
		}
	}
	s.t.Fatalf("Get returns %d bytes at version %q, want %d bytes", len(got), version, len(sealed))
	return ""
}

// countTrue calls do ten times concurrently, and returns how often it was true.
func countTrue(t testing.TB, do func(i int) (bool, error)) int {
	t.Helper()
	var calls sync.WaitGroup
	results := make([]bool, 10)
	begin := make(chan struct{})
	for i := range results {
		calls.Go(func() {
			<-begin
			var err error
			if results[i], err = do(i); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	calls.Wait()
	count := 0
	for _, result := range results {
		if result {
			count++
		}
	}
	return count
}
