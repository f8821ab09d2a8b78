package signin_test

import (
	"net/url"
	"strings"
	"testing"

	"kuota.dev/kuota/web/signin/signintest"

	"github.com/google/go-cmp/cmp"
)

func TestSignOutAddress(t *testing.T) {
	provider := signintest.New(t)
	fixed := url.Values{"client_id": {signintest.ClientID}, "post_logout_redirect_uri": {"http://console.test/auth/signed-out"}}
	with := func(name, value string) url.Values {
		all := url.Values{name: {value}}
		for name, values := range fixed {
			all[name] = values
		}
		return all
	}
	for name, tc := range map[string]struct {
		end, token string
		want       url.Values
	}{
		"with the ID token for a hint":        {end: "https://op.test/end", token: "a.b.c", want: with("id_token_hint", "a.b.c")},
		"without a hint":                      {end: "https://op.test/end", want: fixed},
		"the provider's address has a query":  {end: "https://op.test/end?tenant=a%26b", want: with("tenant", "a&b")},
		"the provider has no such place":      {end: "", token: "a.b.c"},
		"the provider's address is not a URL": {end: "https://op.test/%zz", token: "a.b.c"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) { b.Metadata = map[string]any{"end_session_endpoint": tc.end} })
			party := console(provider)
			if early := party.SignOutURL(tc.token); early != "" {
				t.Errorf("got %q before the provider has answered", early)
			}
			if _, _, err := party.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := party.SignOutURL(tc.token)
			if tc.want == nil {
				if got != "" {
					t.Errorf("got %q, want nothing", got)
				}
				return
			}
			address, query, _ := strings.Cut(got, "?")
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, values); diff != "" || address != "https://op.test/end" {
				t.Errorf("address %q, query: %s", address, diff)
			}
		})
	}
}

// The hint is part of an address, which must stay below the limits of servers.
func TestLongHintIsOmitted(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	was := signedIn(t, party)
	behave(t, provider, func(b *signintest.Behavior) { b.ChangeClaims = set("photo", strings.Repeat("x", 4000)) })
	if long := signedIn(t, party); long.IDToken != "" {
		t.Errorf("an ID token of %d bytes is kept", len(long.IDToken))
	}
	got, err := party.Refresh(t.Context(), was)
	wantIdentity(t, got, err, ada)
	if got.IDToken != was.IDToken {
		t.Error("the hint of before is lost")
	}
}
