package session_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"kuota.dev/kuota/web/session"
)

func TestReadingKeys(t *testing.T) {
	one, two := newKey(), newKey()
	for name, text := range map[string]string{
		"one a line":               one + "\n" + two + "\n",
		"no line break at the end": one + "\n" + two,
		"line breaks of Windows":   one + "\r\n" + two + "\r\n",
		"comments and empty lines": "# since May\n\n" + one + "\n  # before\n   \n" + two,
		"spaces around":            "  " + one + "\t\n " + two + " ",
		"the same key again":       one + "\n" + one + "\n" + two,
		"empty lines at the end":   one + "\n" + two + "\n\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			ring, err := session.NewRing([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{one, two} {
				if _, err := ring.Open("place", seal(t, newRing(t, key), "place", "text")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRefusingKeys(t *testing.T) {
	key := newKey()
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                     {"", "no key"},
		"comments only":               {"# nothing yet\n\n", "no key"},
		"16 bytes":                    {base64.StdEncoding.EncodeToString(raw[:16]), "line 1"},
		"33 bytes":                    {base64.StdEncoding.EncodeToString(append(raw[:32:32], 1)), "line 1"},
		"no base64":                   {strings.Repeat("canary-key ", 4), "line 1"},
		"the bytes themselves":        {strings.Repeat("\xfe", 32), "line 1"},
		"base64 for addresses":        {"# one\n" + key + "\n" + strings.Repeat("_", 42) + "8=", "line 3"},
		"a good one, then a bad one":  {"# one\n\n" + key + "\n" + key[:40], "line 4"},
		"two on one line":             {key + " " + key, "line 1"},
		"a comment behind it":         {key + " # canary", "line 1"},
		"a name before it, as in env": {"KEY=" + key, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session.NewRing([]byte(tc.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
			for _, secret := range []string{"canary", key[:8], string(raw[:4])} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v repeats the key", err)
				}
			}

			ring := newRing(t, key)
			if err := ring.Replace([]byte(tc.text)); err == nil {
				t.Error("accepted in place of good keys")
			}
			if _, err := ring.Open("place", seal(t, ring, "place", "text")); err != nil {
				t.Errorf("the keys of before are lost: %v", err)
			}
		})
	}
}

// Keys can be rotated without signing users out.
func TestChangingTheKey(t *testing.T) {
	one, two := newKey(), newKey()
	ring := newRing(t, one)
	old := seal(t, ring, "place", "old")

	if err := ring.Replace([]byte(two + "\n" + one)); err != nil {
		t.Fatal(err)
	}
	if got, err := ring.Open("place", old); err != nil || string(got) != "old" {
		t.Errorf("what the old key sealed: %q, %v", got, err)
	}
	fresh := seal(t, ring, "place", "new")
	if _, err := newRing(t, two).Open("place", fresh); err != nil {
		t.Errorf("the first key does not seal: %v", err)
	}

	if err := ring.Replace([]byte(two)); err != nil {
		t.Fatal(err)
	}
	if got, err := ring.Open("place", old); err == nil {
		t.Errorf("a key that is gone opens: %q", got)
	}
	if _, err := ring.Open("place", fresh); err != nil {
		t.Error(err)
	}
}
