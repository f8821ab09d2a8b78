package webtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/session"
)

// invalidCredentials returns headers that must not authenticate, by description.
func (c *Console) invalidCredentials(t *testing.T) map[string][]string {
	t.Helper()
	cookie := func(id string) []string { return []string{"Cookie", c.CookieName() + "=" + id} }
	changed := func(change func(*session.Session)) []string {
		id, name := c.newSession(t)
		record := c.Record(t, name)
		change(&record)
		c.Store.Put(name, c.sealed(t, c.Ring, name, record))
		return cookie(id)
	}
	real, name := c.newSession(t)
	otherKey, otherKeyName := c.newSession(t)
	c.Store.Put(otherKeyName, c.sealed(t, NewRing(t, NewKey()), otherKeyName, c.Record(t, otherKeyName)))
	moved, movedName := c.newSession(t)
	c.Store.Put(movedName, c.sealed(t, c.Ring, name, c.Record(t, name)))
	ended, endedName := c.newSession(t)
	if err := c.Store.Delete(t.Context(), endedName); err != nil {
		t.Fatal(err)
	}
	other := "A"
	if real[0] == 'A' {
		other = "B"
	}
	return map[string][]string{
		"nothing":                          nil,
		"no cookie's value":                cookie(""),
		"garbage":                          cookie("garbage"),
		"garbage as long as an id":         cookie(strings.Repeat("A", len(real))),
		"an id with another first letter":  cookie(other + real[1:]),
		"an id cut off":                    cookie(real[:len(real)-1]),
		"an id with more after it":         cookie(real + "A"),
		"an id in small letters":           cookie(strings.ToLower(real)),
		"what the store calls the session": cookie(name),
		"a session twice":                  {"Cookie", c.CookieName() + "=" + real + "; " + c.CookieName() + "=" + real},
		"an id under another name":         {"Cookie", "session=" + real},
		"a bearer token of nothing":        {"Authorization", "Bearer nothing"},
		"an id as bearer token":            {"Authorization", "Bearer " + real},
		"an id as password":                {"Authorization", "Basic " + real},
		"a session of another key":         cookie(otherKey),
		"a session of another name":        cookie(moved),
		"a session that ended":             cookie(ended),
		"a session that was idle":          changed(func(s *session.Session) { s.Seen = s.Seen.Add(-Limits.Idle - time.Minute) }),
		"a session that is too old":        changed(func(s *session.Session) { s.Began = s.Began.Add(-Limits.Absolute - time.Minute) }),
	}
}

// CookieName returns the full name of the cookie with the session ID.
func (c *Console) CookieName() string {
	if strings.HasPrefix(c.URL, "https:") {
		return "__Host-kuota"
	}
	return "kuota"
}

// newSession signs in, and returns the id and what the store calls it.
func (c *Console) newSession(t testing.TB) (id, name string) {
	t.Helper()
	before := c.Store.Names()
	id = c.Browser(t).SignIn().Cookie("kuota").Value
	for _, name := range c.Store.Names() {
		if !slices.Contains(before, name) {
			return id, name
		}
	}
	t.Fatal("signing in kept no session")
	return "", ""
}

// Record reads what the store keeps under a name.
func (c *Console) Record(t testing.TB, name string) (record session.Session) {
	t.Helper()
	sealed, _, err := c.Store.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.Ring.Open(name, sealed)
	if err == nil {
		err = json.Unmarshal(plain, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func (c *Console) sealed(t testing.TB, ring *session.Ring, name string, record session.Session) string {
	t.Helper()
	plain, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := ring.Seal(name, plain)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}
