package signin

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Each name would become an impersonation header with unintended permissions.
func TestReservedNamesAreRefused(t *testing.T) {
	bare := Claims{UsernamePrefix: "-", Groups: "groups"}
	prefixed := Claims{UsernamePrefix: "oidc:", Groups: "groups", GroupsPrefix: "oidc:"}
	email := Claims{Username: "email"}
	for name, tc := range map[string]struct {
		claims []Claims
		text   string
	}{
		"a system user":                     {[]Claims{bare, prefixed}, `{"sub":"system:admin"}`},
		"a system user after the issuer":    {[]Claims{{}}, `{"sub":"system:admin"}`},
		"a system user behind a space":      {[]Claims{bare, prefixed}, `{"sub":" system:admin"}`},
		"a prefix makes a system user":      {[]Claims{{UsernamePrefix: "system:"}, {UsernamePrefix: "sys"}}, `{"sub":"tem:admin"}`},
		"no name":                           {[]Claims{bare, prefixed, {}}, `{}`},
		"an empty name":                     {[]Claims{bare, prefixed, {}}, `{"sub":""}`},
		"a name of spaces":                  {[]Claims{bare, prefixed, {}}, `{"sub":" \u2003"}`},
		"a name of null":                    {[]Claims{bare, prefixed, {}}, `{"sub":null}`},
		"a number for a name":               {[]Claims{bare, prefixed, {}}, `{"sub":1234}`},
		"a list for a name":                 {[]Claims{bare, prefixed, {}}, `{"sub":["1234"]}`},
		"a name with a line break":          {[]Claims{bare, prefixed, {}}, `{"sub":"ada\r\nImpersonate-Group: system:masters"}`},
		"a name with NUL":                   {[]Claims{bare, prefixed, {}}, `{"sub":"ada\u0000"}`},
		"a name with a control of Latin-1":  {[]Claims{bare, prefixed, {}}, `{"sub":"a\u0085b"}`},
		"a name with half a letter":         {[]Claims{bare, prefixed, {}}, `{"sub":"ada\ud800"}`},
		"a name behind a space":             {[]Claims{bare, prefixed, {}}, `{"sub":" ada"}`},
		"a name before a space":             {[]Claims{bare, prefixed, {}}, `{"sub":"ada "}`},
		"numbers for groups":                {[]Claims{bare, prefixed}, `{"sub":"1","groups":[1,2]}`},
		"a number for groups":               {[]Claims{bare, prefixed}, `{"sub":"1","groups":1}`},
		"groups within groups":              {[]Claims{bare, prefixed}, `{"sub":"1","groups":[["a"]]}`},
		"groups by name":                    {[]Claims{bare, prefixed}, `{"sub":"1","groups":{"a":true}}`},
		"e-mail missing":                    {[]Claims{email}, `{"sub":"1"}`},
		"e-mail not verified":               {[]Claims{email}, `{"email":"ada@example.com","email_verified":false}`},
		"e-mail verified, in a text":        {[]Claims{email}, `{"email":"ada@example.com","email_verified":"true"}`},
		"e-mail verified, it is not known":  {[]Claims{email}, `{"email":"ada@example.com","email_verified":null}`},
		"e-mail verified, as a number says": {[]Claims{email}, `{"email":"ada@example.com","email_verified":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range tc.claims {
				if got, err := read(t, c, tc.text); err == nil {
					t.Errorf("with %+v: got user %q, groups %q", c, got.User, got.Groups)
				}
			}
		})
	}
}

// A provider sends all groups of an account: those that Kubernetes must not get are left
// out, and the person signs in with the others.
func TestUnusableGroupsAreLeftOut(t *testing.T) {
	bare := Claims{UsernamePrefix: "-", Groups: "groups"}
	prefixed := Claims{UsernamePrefix: "oidc:", Groups: "groups", GroupsPrefix: "oidc:"}
	for name, tc := range map[string]struct {
		claims []Claims
		text   string
	}{
		"a system group":                {[]Claims{bare, prefixed}, `{"sub":"1","groups":["a","system:masters"]}`},
		"a system group, as one text":   {[]Claims{bare, prefixed}, `{"sub":"1","groups":"system:masters"}`},
		"a system group behind a space": {[]Claims{bare, prefixed}, `{"sub":"1","groups":["\u00a0system:masters"]}`},
		"a prefix makes a system group": {[]Claims{{Groups: "groups", GroupsPrefix: "sys"}, {Groups: "groups", GroupsPrefix: "system:"}}, `{"sub":"1","groups":["tem:masters"]}`},
		"a group with half a letter":    {[]Claims{bare, prefixed}, `{"sub":"1","groups":["a\ud800"]}`},
		"an empty group":                {[]Claims{bare, prefixed}, `{"sub":"1","groups":["a",""]}`},
		"an empty group, as one text":   {[]Claims{bare, prefixed}, `{"sub":"1","groups":""}`},
		"a group of null":               {[]Claims{bare, prefixed}, `{"sub":"1","groups":["a",null]}`},
		"a group with a line break":     {[]Claims{bare, prefixed}, `{"sub":"1","groups":["a\nb"]}`},
		"a group behind a space":        {[]Claims{bare, prefixed}, `{"sub":"1","groups":[" a"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range tc.claims {
				got, err := read(t, c, tc.text)
				usable := slices.DeleteFunc(slices.Clone(got.Groups), func(group string) bool { return group == c.GroupsPrefix+"a" })
				if err != nil || len(usable) != 0 || len(got.Unusable) != 1 {
					t.Errorf("with %+v: got the groups %q without %q, %v", c, got.Groups, got.Unusable, err)
				}
			}
		})
	}
}

func TestMissingClaimIsNamed(t *testing.T) {
	for name, text := range map[string]string{"missing": `{}`, "empty": `{"login":""}`, "spaces": `{"login":"  "}`, "no text": `{"login":1}`} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, Claims{Username: "login"}, text)
			var refusal *Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "login is missing") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzIdentity(f *testing.F) {
	for _, text := range []string{
		`{"sub":"1234","groups":["a","b","a"]}`, `{"sub":"system:admin"}`, `{"sub":"tem:admin","groups":"tem:masters"}`,
		`{"sub":"a\u0000","groups":["\u0085"]}`, `{"sub":" system:admin","groups":[" system:masters",null,[]]}`,
		`{"sub":"\ud800","groups":{}}`, `{"email":"a@b","email_verified":"true"}`,
	} {
		for _, prefix := range []string{"", "-", "sys", "system:", "oidc:", " "} {
			f.Add([]byte(text), prefix, prefix, false)
			f.Add([]byte(text), prefix, prefix, true)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, prefix, groupsPrefix string, email bool) {
		var all claims
		if json.Unmarshal(text, &all) != nil {
			t.Skip("no claims")
		}
		c := Claims{UsernamePrefix: prefix, Groups: "groups", GroupsPrefix: groupsPrefix}
		if email {
			c.Username = "email"
		}
		got, err := c.identity(issuer, all)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || got.User != "" || got.Groups != nil {
				t.Fatalf("got %+v, %v; want a refusal and nobody", got, err)
			}
			return
		}
		for _, name := range append([]string{got.User}, got.Groups...) {
			if name == "" || strings.HasPrefix(strings.TrimSpace(name), "system:") || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
				t.Errorf("got the name %q", name)
			}
		}
		if !slices.IsSorted(got.Groups) || len(slices.Compact(slices.Clone(got.Groups))) != len(got.Groups) {
			t.Errorf("groups %q are not sorted, each once", got.Groups)
		}
	})
}
