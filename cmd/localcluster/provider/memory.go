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

// session is the sign-in of a browser.
type session struct {
	ID       string    `json:"id"` // the claim sid; the value of the cookie is a secret and differs
	Subject  string    `json:"subject"`
	AuthTime time.Time `json:"authTime"`
	Expires  time.Time `json:"expires"`
}

// grant is what an access or refresh token allows.
type grant struct {
	Chain    string    `json:"chain"`   // shared by all tokens that descend from one code
	Session  string    `json:"session"` // empty for tokens of a terminal
	Subject  string    `json:"subject"`
	Client   string    `json:"client"`
	Scopes   []string  `json:"scopes"`
	AuthTime time.Time `json:"authTime"`
	Expires  time.Time `json:"expires"`
}

// memory has the sessions and grants, in a file that survives a restart.
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
	m.file = memoryFile{Sessions: map[string]session{}, Access: map[string]grant{}, Refresh: map[string]grant{}}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read sessions and grants: %w", err)
	default:
		if err := json.Unmarshal(b, &m.file); err != nil {
			return nil, fmt.Errorf("read sessions and grants of %s: %w", path, err)
		}
	}
	return m, nil
}

// change calls f, removes what has expired, and saves the result.
func (m *memory) change(f func(*memoryFile)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.file)
	now := m.now()
	expired := func(_ string, g grant) bool { return now.After(g.Expires) }
	maps.DeleteFunc(m.file.Access, expired)
	maps.DeleteFunc(m.file.Refresh, expired)
	maps.DeleteFunc(m.file.Sessions, func(_ string, s session) bool { return now.After(s.Expires) })
	if err := writeJSON(m.path, m.file); err != nil {
		m.log.Error("sessions and grants not saved; a restart loses them", "error", err)
	}
}

// session returns the session of a cookie.
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

// endSession deletes a session with all of its tokens.
func (m *memory) endSession(id string) {
	m.change(func(f *memoryFile) {
		of := func(_ string, g grant) bool { return g.Session == id }
		maps.DeleteFunc(f.Access, of)
		maps.DeleteFunc(f.Refresh, of)
		maps.DeleteFunc(f.Sessions, func(_ string, s session) bool { return s.ID == id })
	})
}

// endChain deletes the tokens of one sign-in. The session of the browser remains.
func (m *memory) endChain(chain string) {
	m.change(func(f *memoryFile) {
		of := func(_ string, g grant) bool { return g.Chain == chain }
		maps.DeleteFunc(f.Access, of)
		maps.DeleteFunc(f.Refresh, of)
	})
}
