package session_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/web/session"

	"github.com/go-jose/go-jose/v4"
)

// newKey returns a line of a key file.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return base64.StdEncoding.EncodeToString(key)
}

func newRing(t testing.TB, keys ...string) *session.Ring {
	t.Helper()
	ring, err := session.NewRing([]byte(strings.Join(keys, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func seal(t testing.TB, ring *session.Ring, name, plain string) string {
	t.Helper()
	sealed, err := ring.Seal(name, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestSealing(t *testing.T) {
	ring := newRing(t, newKey())
	for name, plain := range map[string]string{"a text": "text", "bytes of all kinds": "\x00\xff\n.", "a large session": strings.Repeat("groups ", 100_000)} {
		t.Run(name, func(t *testing.T) {
			sealed := seal(t, ring, "place", plain)
			if sealed == seal(t, ring, "place", plain) {
				t.Error("the same text is sealed the same way twice")
			}
			if len(plain) < 1000 && strings.Contains(sealed, base64.RawURLEncoding.EncodeToString([]byte(plain))) {
				t.Errorf("%q shows the text", sealed)
			}
			got, err := ring.Open("place", sealed)
			if err != nil || string(got) != plain {
				t.Errorf("got %d bytes, %v; want %d", len(got), err, len(plain))
			}
		})
	}
}

func TestRefusingToOpen(t *testing.T) {
	key := newKey()
	ring := newRing(t, key)
	sealed := seal(t, ring, "place", "text")
	parts := strings.Split(sealed, ".")
	if _, err := ring.Open("place", crafted(t, jose.DIRECT, key, "place")); err != nil {
		t.Fatalf("what is crafted below is not refused for what is wrong with it: %v", err)
	}
	for name, tc := range map[string]struct {
		ring         *session.Ring
		name, sealed string
	}{
		"under another name":            {sealed: sealed, name: "another"},
		"under no name":                 {sealed: sealed, name: ""},
		"with another key":              {sealed: sealed, name: "place", ring: newRing(t, newKey())},
		"nothing":                       {name: "place"},
		"the text itself":               {sealed: "text", name: "place"},
		"sealed in another form":        {sealed: "{" + sealed + "}", name: "place"},
		"header of another":             {sealed: strings.Split(seal(t, ring, "another", "text"), ".")[0] + sealed[len(parts[0]):], name: "another"},
		"nonce of another":              {sealed: strings.Join([]string{parts[0], parts[1], strings.Split(seal(t, ring, "place", "text"), ".")[2], parts[3], parts[4]}, "."), name: "place"},
		"nonce that is too short":       {sealed: strings.Join([]string{parts[0], parts[1], "AAAA", parts[3], parts[4]}, "."), name: "place"},
		"without a tag":                 {sealed: strings.Join(append(parts[:4:4], ""), "."), name: "place"},
		"with a key wrapped inside":     {sealed: crafted(t, jose.A256KW, key, "place"), name: "place"},
		"with an algorithm of our keys": {sealed: crafted(t, jose.A256GCMKW, key, "place"), name: "place"},
		"without a name":                {sealed: crafted(t, jose.DIRECT, key, nil), name: ""},
		"with a number for a name":      {sealed: crafted(t, jose.DIRECT, key, 7), name: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.ring == nil {
				tc.ring = ring
			}
			if got, err := tc.ring.Open(tc.name, tc.sealed); err == nil || got != nil {
				t.Errorf("opened: %q", got)
			}
		})
	}
}

// crafted returns a JWE that the key can create, but that Seal never does.
func crafted(t *testing.T, algorithm jose.KeyAlgorithm, line string, name any) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Split(seal(t, newRing(t, line), "place", "text"), ".")[0]
	header, err := base64.RawURLEncoding.DecodeString(own)
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := bytes.Cut(header, []byte(`"kid":"`))
	options := &jose.EncrypterOptions{}
	if name != nil {
		options = options.WithHeader("kuota.dev/name", name)
	}
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: algorithm, Key: key, KeyID: string(id[:12])}, options)
	if err != nil {
		t.Fatal(err)
	}
	made, err := encrypter.Encrypt([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Changes the first bit of the letter at every position, which always counts. The
// last letter of a part has bits without meaning; changing those is not tampering.
func TestTamperedTextIsRefused(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	ring := newRing(t, newKey())
	sealed := seal(t, ring, "place", "a text that a user wants to change")
	for i := range sealed {
		letter := "A" // one part is missing
		if value := strings.IndexByte(alphabet, sealed[i]); value >= 0 {
			letter = alphabet[value^32 : value^32+1]
		}
		for what, changed := range map[string]string{"changed": sealed[:i] + letter + sealed[i+1:], "cut off": sealed[:i], "left out": sealed[:i] + sealed[i+1:]} {
			if got, err := ring.Open("place", changed); err == nil {
				t.Errorf("%s at %d: opened: %q", what, i, got)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	const text = "what was sealed"
	ring := newRing(f, newKey(), newKey())
	sealed := seal(f, ring, "place", text)
	parts := strings.Split(sealed, ".")
	for _, seed := range []string{
		sealed, seal(f, ring, "another", text), seal(f, newRing(f, newKey()), "place", text), "", "....", sealed + ".", sealed + "\n",
		fmt.Sprintf("%s..%s.%s.%s", parts[0], "AAAAAAAAAAAAAAAA", parts[3], parts[4]), parts[0] + "....", `{"protected":"` + parts[0] + `"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sealed string) {
		// Sealed text has several spellings (line breaks, bits without meaning). Nothing
		// else opens.
		if got, err := ring.Open("place", sealed); err == nil && string(got) != text {
			t.Errorf("%q opens: %q", sealed, got)
		}
		if got, err := ring.Open("elsewhere", sealed); err == nil {
			t.Errorf("%q opens in another place: %q", sealed, got)
		}
	})
}
