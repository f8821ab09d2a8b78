package session_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/web/session"
)

func TestSessionLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		every time.Duration // interval of requests
		used  bool          // by actions, rather than with an open page
		until time.Duration // last time at which the session is valid
	}{
		"a person who comes a moment late":   {every: idle + time.Second, used: true, until: 0},
		"a person who comes just in time":    {every: idle, used: true, until: absolute},
		"a person who is there all day":      {every: time.Minute, used: true, until: absolute},
		"a page that nobody looks at":        {every: time.Minute, used: false, until: idle},
		"a page that asks every few seconds": {every: 10 * time.Second, used: false, until: idle},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				began, last := time.Now(), time.Duration(0)
				for range int(absolute/tc.every) + 2 {
					time.Sleep(tc.every)
					if _, err := b.find(tc.used); err != nil {
						break
					}
					last = time.Since(began)
				}
				if last != tc.until {
					t.Errorf("it held for %s, want %s", last, tc.until)
				}
				b.wantEnded()
			})
		})
	}
}

// Recording every use would write to the cluster with every request.
func TestUseIsRecordedRarely(t *testing.T) {
	inBubble(t, func(b *bubble) {
		writes := func() int { return look(b.store, func(m *memory) int { return m.version }) }
		before := writes()
		for range 180 {
			time.Sleep(time.Second)
			b.wantFound(true, "vision-team")
		}
		if n := writes() - before; n > 1 {
			t.Errorf("%d writes in three minutes", n)
		}
		time.Sleep(time.Second)
		if found := b.wantFound(true, "vision-team"); time.Since(found.Seen) > idle/10 {
			t.Errorf("last seen %s ago", time.Since(found.Seen))
		}
	})
}

// The store deletes sessions that cannot be used any more, and no others.
func TestStoreExpiry(t *testing.T) {
	inBubble(t, func(b *bubble) {
		end := time.Now().Add(absolute)
		for time.Until(end) > 0 {
			want := time.Now().Add(idle + idle/10)
			if want.After(end) {
				want = end
			}
			for _, kept := range look(b.store, func(m *memory) map[string]entry { return maps.Clone(m.kept) }) {
				if !kept.expires.Equal(want) {
					t.Errorf("it expires at %s, want %s", kept.expires, want)
				}
			}
			time.Sleep(idle - time.Minute)
			if _, err := b.find(true); err != nil && time.Until(end) > 0 {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}

func TestInvalidIDs(t *testing.T) {
	inBubble(t, func(b *bubble) {
		own := b.id
		for name, tc := range map[string]struct {
			id    string
			looks int // reads of the store
		}{
			"none":                         {"", 0},
			"short":                        {own[:len(own)-1], 0},
			"long":                         {own + "A", 0},
			"very long":                    {strings.Repeat(own, 1000), 0},
			"of letters that are longer":   {own[:len(own)-1] + "é", 0},
			"of the right length":          {session.NewID(), 1},
			"with NUL":                     {own[:len(own)-1] + "\x00", 1},
			"a path":                       {"../" + own[3:], 1},
			"in small letters":             {strings.ToLower(own), 1},
			"what the store knows it by":   {look(b.store, func(m *memory) string { return slices.Collect(maps.Keys(m.kept))[0] }), 0},
			"and the start of that, right": {look(b.store, func(m *memory) string { return slices.Collect(maps.Keys(m.kept))[0] })[:len(own)], 1},
		} {
			before := gets(b.store)
			found, err := b.sessions.Find(t.Context(), tc.id, true)
			if !errors.Is(err, session.ErrNotFound) || found.User != "" {
				t.Errorf("%s: found %q, %v", name, found.User, err)
			}
			if looks := gets(b.store) - before; looks != tc.looks {
				t.Errorf("%s: looked at the store %d times, want %d", name, looks, tc.looks)
			}
			if _, err := b.sessions.End(t.Context(), tc.id); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: ended: %v", name, err)
			}
		}
		b.wantFound(true, "vision-team")
	})
}
