package signin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const issuer = "https://op.test"

// read reads an identity from claims in JSON.
func read(t *testing.T, c Claims, text string) (Identity, error) {
	t.Helper()
	var all claims
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	got, err := c.identity(issuer, all)
	var refusal *Refusal
	if err != nil && (!errors.As(err, &refusal) || errors.Is(err, ErrUnavailable)) {
		t.Errorf("got %v, want a refusal", err)
	}
	return got, err
}

// Names are equal to those that the API server derives from the same claims under
// flags of the same names.
func TestUserName(t *testing.T) {
	for name, tc := range map[string]struct {
		claims Claims
		text   string
		want   string
	}{
		"sub, by default after the issuer":       {text: `{"sub":"1234"}`, want: issuer + "#1234"},
		"sub, with a prefix":                     {claims: Claims{UsernamePrefix: "oidc:"}, text: `{"sub":"1234"}`, want: "oidc:1234"},
		"sub, with no prefix":                    {claims: Claims{UsernamePrefix: "-"}, text: `{"sub":"1234"}`, want: "1234"},
		"e-mail, by default alone":               {claims: Claims{Username: "email"}, text: `{"sub":"1","email":"ada@example.com"}`, want: "ada@example.com"},
		"e-mail, with a prefix":                  {claims: Claims{Username: "email", UsernamePrefix: "oidc:"}, text: `{"email":"ada@example.com"}`, want: "oidc:ada@example.com"},
		"e-mail, verified":                       {claims: Claims{Username: "email"}, text: `{"email":"ada@example.com","email_verified":true}`, want: "ada@example.com"},
		"another claim, by default after issuer": {claims: Claims{Username: "login"}, text: `{"login":"ada","email_verified":false}`, want: issuer + "#ada"},
		"another claim, with no prefix":          {claims: Claims{Username: "login", UsernamePrefix: "-"}, text: `{"login":"ada"}`, want: "ada"},
		"spaces and commas inside":               {claims: Claims{UsernamePrefix: "-"}, text: `{"sub":"CN=Ada, O=Example"}`, want: "CN=Ada, O=Example"},
		"like a system user, and not one":        {claims: Claims{UsernamePrefix: "-"}, text: `{"sub":"systems:ada"}`, want: "systems:ada"},
		"letters beyond ASCII":                   {claims: Claims{UsernamePrefix: "-"}, text: `{"sub":"Ørsted 李"}`, want: "Ørsted 李"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, tc.claims, tc.text)
			if err != nil || got.User != tc.want {
				t.Errorf("got %q, %v; want %q", got.User, err, tc.want)
			}
		})
	}
}

// Mail goes to an address only if the provider says that it is verified.
func TestVerifiedEmail(t *testing.T) {
	for text, want := range map[string]string{
		`{"email":"ada@example.com","email_verified":true}`:                              "ada@example.com",
		`{"email":"ada@example.com","email_verified":false}`:                             "",
		`{"email":"ada@example.com","email_verified":"true"}`:                            "",
		`{"email":"ada@example.com"}`:                                                    "",
		`{"email_verified":true}`:                                                        "",
		`{"email":"Ada <ada@example.com>","email_verified":true}`:                        "",
		`{"email":"ada@example.com, eve@example.com","email_verified":true}`:             "",
		`{"email":"ada@example.com\r\nBcc: eve@example.com","email_verified":true}`:      "",
		`{"email":["ada@example.com"],"email_verified":true}`:                            "",
		`{"email":"` + strings.Repeat("a", 250) + `@example.com","email_verified":true}`: "",
	} {
		var all claims
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		if got := verifiedEmail(all); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestGroupNames(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("group-%04d", i)
	}
	list, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		claims Claims
		groups string
		want   []string
	}{
		"a list, sorted, each once":     {groups: `["b","a","b"]`, want: []string{"a", "b"}},
		"one text":                      {groups: `"a"`, want: []string{"a"}},
		"null":                          {groups: `null`},
		"an empty list":                 {groups: `[]`, want: []string{}},
		"another claim":                 {claims: Claims{Groups: "roles"}, groups: `["a"], "roles": ["b"]`, want: []string{"b"}},
		"a claim within a claim":        {claims: Claims{Groups: "realm_access.roles"}, groups: `["a"], "realm_access": {"roles": ["b"]}`, want: []string{"b"}},
		"a claim with dots in its name": {claims: Claims{Groups: "https://example.com/groups"}, groups: `["a"], "https://example.com/groups": ["b"]`, want: []string{"b"}},
		"nothing within a claim":        {claims: Claims{Groups: "groups.roles"}, groups: `["a"]`},
		"the claim is missing":          {claims: Claims{Groups: "roles"}, groups: `["a"]`},
		"a prefix":                      {claims: Claims{GroupsPrefix: "oidc:"}, groups: `["b","a"]`, want: []string{"oidc:a", "oidc:b"}},
		"commas and spaces inside":      {groups: `["a, b", "a"]`, want: []string{"a", "a, b"}},
		"large and small letters":       {groups: `["Team", "team"]`, want: []string{"Team", "team"}},
		"twins that only look the same": {groups: `["caf\u00e9", "cafe\u0301"]`, want: []string{"cafe\u0301", "caf\u00e9"}},
		"five thousand":                 {groups: string(list), want: many},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.claims.Groups == "" {
				tc.claims.Groups = "groups"
			}
			got, err := read(t, tc.claims, `{"sub":"1234","groups":`+tc.groups+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Groups); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGroupsNeedAConfiguredClaim(t *testing.T) {
	got, err := read(t, Claims{}, `{"sub":"1234","groups":["a"],"":["b"]}`)
	if err != nil || len(got.Groups) > 0 {
		t.Errorf("got %q, %v", got.Groups, err)
	}
}

func TestRequiringClaims(t *testing.T) {
	required := Claims{Required: map[string]string{"hd": "example.com", "kind": "employee"}}
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"all as required":     {text: `{"sub":"1","hd":"example.com","kind":"employee"}`, ok: true},
		"one is missing":      {text: `{"sub":"1","kind":"employee"}`},
		"one is another":      {text: `{"sub":"1","hd":"example.org","kind":"employee"}`},
		"one is longer":       {text: `{"sub":"1","hd":"example.com.evil.test","kind":"employee"}`},
		"one is a list of it": {text: `{"sub":"1","hd":["example.com"],"kind":"employee"}`},
		"one is null":         {text: `{"sub":"1","hd":null,"kind":"employee"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, required, tc.text)
			if (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "example.") {
				t.Errorf("%v repeats a claim", err)
			}
		})
	}
}

// More groups than a provider sends are left out, which is no account without groups.
func TestGroupsLeftOut(t *testing.T) {
	for text, want := range map[string]bool{
		`{"sub":"1","_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"https://example.com"}}}`: true,
		`{"sub":"1","_claim_names":{"groups":"src1"},"groups":["a"]}`:                                               false,
		`{"sub":"1","_claim_names":{"roles":"src1"}}`:                                                               false,
		`{"sub":"1","_claim_names":"groups"}`:                                                                       false,
		`{"sub":"1"}`:                                                                                               false,
	} {
		if got, err := read(t, Claims{Groups: "groups"}, text); err != nil || got.GroupsLeftOut != want {
			t.Errorf("%s: left out %t, %v; want %t", text, got.GroupsLeftOut, err, want)
		}
	}
}
