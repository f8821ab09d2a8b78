package bulk

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store for a console without sessions, which has one replica. What it has is lost
// with the program.
type Memory struct {
	mu    sync.Mutex
	texts map[string]string
}

// Get returns a text; empty for none.
func (m *Memory) Get(_ context.Context, name string) (text, version string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts[name], "", nil
}

// Create adds a text.
func (m *Memory) Create(ctx context.Context, name, text string, expires time.Time) (bool, error) {
	return m.Update(ctx, name, text, expires, "")
}

// Update replaces a text.
func (m *Memory) Update(_ context.Context, name, text string, expires time.Time, _ string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts == nil {
		m.texts = map[string]string{}
	}
	m.texts[name] = text
	time.AfterFunc(time.Until(expires), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.texts, name)
	})
	return true, nil
}
