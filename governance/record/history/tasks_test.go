package history

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func testManifests(t *testing.T, url string) {
	ctx := t.Context()
	s, other := open(t, url, Options{Retention: 400 * 24 * time.Hour}), open(t, url, Options{})
	must[time.Time](t)(other.BeginTerm(ctx)) // a replica that does not lead keeps them too
	texts := map[string]string{"a": "kind: Job\nname: ä\n", "b": strings.Repeat("x", 300<<10), "old": "kind: JobSet\n"}
	for uid, text := range texts {
		at := start
		if uid == "old" {
			at = start.Add(-ManifestRetention - 24*time.Hour)
		}
		ok(t, s.KeepManifest(ctx, uid, at, text))
		ok(t, other.KeepManifest(ctx, uid, at, "another"))
	}
	random := make([]byte, 600<<10)
	for i := range random {
		random[i] = byte(rand.N(256))
	}
	ok(t, s.KeepManifest(ctx, "large", start, string(random)))
	check := func(want ...string) {
		t.Helper()
		uids := []string{"a", "b", "old", "large", "none"}
		for n := range 3000 { // several batches
			uids = append(uids, fmt.Sprint("more", n))
		}
		kept, err := s.WithManifest(ctx, uids)
		if err != nil || len(kept) != len(want) {
			t.Errorf("got %v, want %v (%v)", kept, want, err)
		}
		for _, uid := range want {
			if text, found, err := other.Manifest(ctx, uid); err != nil || !found || text != texts[uid] {
				t.Errorf("%s is %.40q, %v (%v)", uid, text, found, err)
			}
		}
		if _, found, err := s.Manifest(ctx, "large"); err != nil || found {
			t.Errorf("what is too large is kept: %v (%v)", found, err)
		}
	}
	check("a", "b", "old")
	must[time.Time](t)(s.BeginTerm(ctx))
	ok(t, s.Forget(ctx, start))
	check("a", "b")
}
