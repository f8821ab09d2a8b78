package provider

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const ada = "- {name: ada, password: p, email: ada@example.com"

func TestParseUsersRefusesInvalidFiles(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"empty":                          {"", "contains no user"},
		"not a list":                     {"ada: x", "not a list"},
		"an unknown field":               {ada + ", group: x}", "group"},
		"no name":                        {"- {password: p, email: a@example.com}", "user 1 has no name"},
		"a name with blanks":             {"- {name: a b, password: p, email: a@example.com}", "lower-case letters"},
		"no password":                    {"- {name: ada, email: a@example.com}", "no password"},
		"an invalid email":               {"- {name: ada, password: p, email: ada}", "not an address"},
		"a group without a name":         {ada + ", groups: ['']}", "no name"},
		"too many groups":                {ada + ", groupCount: 1000000}", "groupCount"},
		"a duplicate name":               {ada + "}\n" + ada + "}", "twice"},
		"a duplicate address":            {ada + "}\n- {name: eve, password: p, email: ada@example.com}", "same email"},
		"a negative number of groups":    {ada + ", groupCount: -1}", "groupCount"},
		"an address with a display name": {"- {name: ada, password: p, email: Ada <ada@example.com>}", "not an address"},
	} {
		_, err := parseUsers([]byte(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestAllGroupsCombinesListAndCount(t *testing.T) {
	users, err := parseUsers([]byte(ada + ", groups: [x], groupCount: 3}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(users[0].allGroups(), " "); got != "x group-0001 group-0002 group-0003" {
		t.Errorf("groups are %s", got)
	}
	if got := (User{}).allGroups(); got == nil {
		t.Error("the groups of a user without groups are nil, want an empty list")
	}
}

func TestSampleUsersAreValid(t *testing.T) {
	users, err := ReadUsers("../users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if u.Password != "kuota-"+u.Name || u.About == "" {
			t.Errorf("%s does not look like a sample", u.Name)
		}
	}
}

func TestInvalidFileKeepsThePreviousUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(ada+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := newDirectory(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("- {name: "), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.authenticate("ada", "p"); !ok {
		t.Error("ada cannot sign in")
	}
}

func TestRedirectURIsAreOnThisMachine(t *testing.T) {
	for uri, want := range map[string]bool{
		"http://127.0.0.1:8080/auth/callback":                true,
		"https://localhost:443/auth/callback":                true,
		"http://127.0.0.1:8080/kuota/auth/callback":          true,
		"http://127.0.0.1:8080/../auth/callback":             false,
		"http://127.0.0.1:1@example.com/kuota/auth/callback": false,
		"http://127.0.0.1:1@example.com/auth/callback":       false,
		"http://127.0.0.1:80.example.com/auth/callback":      false,
		"http://127.0.0.1:8080/auth/callback/more":           false,
		"http://127.0.0.1:8080/auth/callback?and=more":       false,
		"http://127.0.0.1:8080/else/../auth/callback":        false,
		"http://example.com:8080/auth/callback":              false,
		"http://127.0.0.1:8080@example.com/auth/callback#":   false,
	} {
		got := false
		for _, glob := range (&client{}).RedirectURIGlobs() {
			if ok, err := filepath.Match(glob, uri); ok && err == nil {
				got = true
			}
		}
		if got != want {
			t.Errorf("%s: accepted is %t", uri, got)
		}
	}
}
