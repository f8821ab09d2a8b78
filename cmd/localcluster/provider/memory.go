package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"
)

// session is one sign-in of one browser.
type session struct {
	ID       string    `json:"id"` // the claim sid; the cookie's value is another, secret one
	Subject  string    `json:"subject"`
	AuthTime time.Time `json:"authTime"`
	Expires  time.Time `json:"expires"`
}

// grant is what a token stands for.
type grant struct {
	Chain    string    `json:"chain"` // shared by all tokens that came of one code
	Session  string    `json:"session"`
	Subject  string    `json:"subject"`
	Client   string    `json:"client"`
	Scopes   []string  `json:"scopes"`
	AuthTime time.Time `json:"authTime"`
	Expires  time.Time `json:"expires"`
}

// memory is what the provider gave out and has to know again after a restart.
type memory struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu   sync.Mutex
	file memoryFile
}

type memoryFile struct {
	Sessions map[string]session `json:"sessions"` // by the cookie's value
	Access   map[string]grant   `json:"access"`   // by the token's id
	Refresh  map[string]grant   `json:"refresh"`  // by the token itself
}

func loadMemory(path string, log *slog.Logger) (*memory, error) {
	m := &memory{path: path, log: log, now: time.Now}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read what was given out: %w", err)
	default:
		if err := json.Unmarshal(b, &m.file); err != nil {
			return nil, fmt.Errorf("read what was given out, %s: %w", path, err)
		}
	}
	if m.file.Sessions == nil {
		m.file.Sessions = map[string]session{}
	}
	if m.file.Access == nil {
		m.file.Access = map[string]grant{}
	}
	if m.file.Refresh == nil {
		m.file.Refresh = map[string]grant{}
	}
	return m, nil
}

// change runs f on what is known and saves the result.
func (m *memory) change(f func(*memoryFile)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.file)
	now := m.now()
	spent := func(_ string, g grant) bool { return now.After(g.Expires) }
	maps.DeleteFunc(m.file.Access, spent)
	maps.DeleteFunc(m.file.Refresh, spent)
	maps.DeleteFunc(m.file.Sessions, func(_ string, s session) bool { return now.After(s.Expires) })
	if err := writeJSON(m.path, m.file); err != nil {
		m.log.Error("what was given out is forgotten by a restart", "error", err)
	}
}

// session returns the sign-in of a cookie.
func (m *memory) session(cookie string) (session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.file.Sessions[cookie]
	return s, ok && m.now().Before(s.Expires)
}

func (m *memory) access(id string) (grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, ok := m.file.Access[id]
	return g, ok && m.now().Before(g.Expires)
}

func (m *memory) refresh(token string) (grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, ok := m.file.Refresh[token]
	return g, ok && m.now().Before(g.Expires)
}

// endSession forgets a sign-in with every token that came of it.
func (m *memory) endSession(id string) {
	m.change(func(f *memoryFile) {
		of := func(_ string, g grant) bool { return g.Session == id }
		maps.DeleteFunc(f.Access, of)
		maps.DeleteFunc(f.Refresh, of)
		maps.DeleteFunc(f.Sessions, func(_ string, s session) bool { return s.ID == id })
	})
}

// endChain forgets the tokens of one client's sign-in; the browser's stays.
func (m *memory) endChain(chain string) {
	m.change(func(f *memoryFile) {
		of := func(_ string, g grant) bool { return g.Chain == chain }
		maps.DeleteFunc(f.Access, of)
		maps.DeleteFunc(f.Refresh, of)
	})
}
