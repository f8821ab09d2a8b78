// Package sessiontest says what every session.Store must do, as tests that run
// against any of them.
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
	// longest is what the largest session takes, in bytes: a user with thousands
	// of groups, and tokens that repeat them.
	largestSession = 700 << 10
	// shown is how long a store may take to show what was written.
	visibleWithin = 10 * time.Second
)

// TestStore runs all tests. Writes take effect at once; what Get returns
// may lag behind, as a watch does. Each call of newStore may return the same
// store: no test looks at what it did not make.
func TestStore(t *testing.T, newStore func(t *testing.T) session.Store) {
	for name, test := range map[string]func(*testing.T, store){
		"nothing is kept under a name before Create":      testNothing,
		"what is created can be read":                     testCreate,
		"every write makes another version":               testVersions,
		"Create does not replace":                         testNameTaken,
		"Update at an old version changes nothing":        testStaleUpdate,
		"Update does not bring back what is deleted":      testUpdateAfterDelete,
		"Update does not change another of the same name": testUpdateAfterRecreate,
		"Delete of nothing is no error":                   testDeleteTwice,
		"a large session is kept whole":                   testLarge,
		"one name does not touch another":                 testSeparateNames,
		"of many updates at once, one wins":               testConcurrentUpdates,
		"of many creations at once, one wins":             testConcurrentCreates,
		"a write that nobody waits for is an error":       testCanceledContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, store{t, newStore(t)}) })
	}
}

// newName is a name as sessions have.
func newName() string {
	sum := sha256.Sum256([]byte(rand.Text()))
	return hex.EncodeToString(sum[:])
}

// newSealed is a text as sealed sessions are: letters that base64 has, and dots.
func newSealed(size int) string {
	return strings.Repeat(rand.Text()+".", size/27+1)[:size]
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

// store fails the test where the Store fails.
type store struct {
	t testing.TB
	session.Store
}

func (s store) create(name, sealed string, want bool) {
	s.t.Helper()
	s.t.Cleanup(func() { _ = s.Store.Delete(context.Background(), name) })
	made, err := s.Create(s.t.Context(), name, sealed, inAnHour())
	if err != nil || made != want {
		s.t.Fatalf("Create returns %t, %v; want %t", made, err, want)
	}
}

func (s store) update(name, sealed, version string, want bool) {
	s.t.Helper()
	kept, err := s.Update(s.t.Context(), name, sealed, inAnHour(), version)
	if err != nil || kept != want {
		s.t.Fatalf("Update returns %t, %v; want %t", kept, err, want)
	}
}

func (s store) delete(name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), name); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until Get returns the text; "" for nothing. It returns the
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

// many calls something many times at once, and returns how often it was true.
func countTrue(t testing.TB, do func(i int) (bool, error)) int {
	t.Helper()
	var together sync.WaitGroup
	won := make([]bool, 10)
	begin := make(chan struct{})
	for i := range won {
		together.Go(func() {
			<-begin
			var err error
			if won[i], err = do(i); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	together.Wait()
	count := 0
	for _, one := range won {
		if one {
			count++
		}
	}
	return count
}
