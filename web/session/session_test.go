package session_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/web/session"
	"kuota.dev/kuota/web/session/sessiontest"
)

var errStoreDown = errors.New("the store is down")

// memory is a store that can delay the visibility of writes, like one that reads
// from a watch, and that can be down.
type memory struct {
	lag  time.Duration // until Get returns a write
	slow time.Duration // duration of a write

	mu      sync.Mutex
	kept    map[string]entry
	written []write // oldest first
	version int
	down    bool
	gets    int
	refused int // updates of an old version
}

type entry struct {
	sealed, version string
	expires         time.Time
}

type write struct {
	at   time.Time
	name string
	was  entry // value before the write
}

func newMemory() *memory { return &memory{kept: map[string]entry{}} }

func TestMemory(t *testing.T) {
	sessiontest.TestStore(t, func(*testing.T) session.Store { return newMemory() })
}

// Delayed visibility, like in the cluster.
func TestMemoryThatLags(t *testing.T) {
	sessiontest.TestStore(t, func(*testing.T) session.Store {
		m := newMemory()
		m.lag = 20 * time.Millisecond
		return m
	})
}

func (m *memory) Get(_ context.Context, name string) (sealed, version string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	if m.down {
		return "", "", errStoreDown
	}
	found := m.kept[name]
	for i := len(m.written) - 1; i >= 0 && time.Since(m.written[i].at) < m.lag; i-- {
		// A value that did not exist has no past versions.
		if m.written[i].name == name && m.written[i].was.version != "" {
			found = m.written[i].was
		}
	}
	return found.sealed, found.version, nil
}

// change writes if may allows it.
func (m *memory) change(ctx context.Context, name string, to *entry, may func(was entry) bool) (bool, error) {
	if m.slow > 0 {
		time.Sleep(m.slow)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch was := m.kept[name]; {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case m.down:
		return false, errStoreDown
	case !may(was):
		return false, nil
	case to == nil:
		m.written = append(m.written, write{time.Now(), name, was})
		delete(m.kept, name)
	default:
		m.version++
		to.version = strconv.Itoa(m.version)
		m.written = append(m.written, write{time.Now(), name, was})
		m.kept[name] = *to
	}
	return true, nil
}

func (m *memory) Create(ctx context.Context, name, sealed string, expires time.Time) (bool, error) {
	return m.change(ctx, name, &entry{sealed: sealed, expires: expires}, func(was entry) bool { return was.version == "" })
}

func (m *memory) Update(ctx context.Context, name, sealed string, expires time.Time, version string) (bool, error) {
	return m.change(ctx, name, &entry{sealed: sealed, expires: expires}, func(was entry) bool {
		if was.version != version {
			m.refused++
		}
		return was.version == version && version != ""
	})
}

func (m *memory) Delete(ctx context.Context, name string) error {
	_, err := m.change(ctx, name, nil, func(entry) bool { return true })
	return err
}

// look reads a value from the store under its lock.
func look[T any](m *memory, read func(*memory) T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return read(m)
}

func size(m *memory) int { return look(m, func(m *memory) int { return len(m.kept) }) }
func gets(m *memory) int { return look(m, func(m *memory) int { return m.gets }) }

// readOnly is a store that refuses writes from some time on.
type readOnly struct {
	*memory
	now atomic.Bool
}

func (r *readOnly) Create(ctx context.Context, name, sealed string, expires time.Time) (bool, error) {
	if r.now.Load() {
		return false, errStoreDown
	}
	return r.memory.Create(ctx, name, sealed, expires)
}

func (r *readOnly) Update(ctx context.Context, name, sealed string, expires time.Time, version string) (bool, error) {
	if r.now.Load() {
		return false, errStoreDown
	}
	return r.memory.Update(ctx, name, sealed, expires, version)
}

func (r *readOnly) Delete(ctx context.Context, name string) error {
	if r.now.Load() {
		return errStoreDown
	}
	return r.memory.Delete(ctx, name)
}
