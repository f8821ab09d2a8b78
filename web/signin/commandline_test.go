package signin_test

import (
	"maps"
	"testing"
	"time"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/go-jose/go-jose/v4"
)

// An ID token of the command line names the user as sign-in does. One for another client,
// that of the console included, is refused.
func TestTokensOfTheCommandLine(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider, func(c *signin.Config) { c.CommandLine = "kuota-cli" })
	token := func(change func(map[string]any)) string {
		claims := map[string]any{"iss": provider.Issuer, "aud": "kuota-cli", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "at_hash": "of a token that the program keeps"}
		maps.Copy(claims, provider.Claims)
		if change != nil {
			change(claims)
		}
		return signintest.SignWith(provider.Keys[0], jose.RS256, claims)
	}
	got, err := party.TokenIdentity(t.Context(), token(nil))
	if err != nil || got.User != ada.User || len(got.Groups) == 0 {
		t.Errorf("got %+v, %v, want %s with groups", got, err, ada.User)
	}
	if issuer := signin.IssuerOf(token(nil)); issuer != provider.Issuer {
		t.Errorf("the token is of %q, want %q", issuer, provider.Issuer)
	}
	for name, tc := range map[string]struct {
		change func(map[string]any)
		cause  string
	}{
		"of the console":    {set("aud", signintest.ClientID), "expected audience"},
		"several audiences": {set("aud", []string{"kuota-cli", "other"}), "ID token is for"},
		"another party":     {set("azp", "other"), "ID token is for"},
		"expired":           {set("exp", time.Now().Add(-time.Minute).Unix()), "expired"},
		"no groups":         {set("groups", nil), "claim groups"},
		"no user":           {set("email", nil), "claim email"},
		"reserved":          {set("email", "system:masters"), "system:masters"},
		"another issuer":    {set("iss", "https://elsewhere.test"), "different provider"},
	} {
		_, err := party.TokenIdentity(t.Context(), token(tc.change))
		if err == nil {
			t.Errorf("%s: the token is accepted", name)
			continue
		}
		wantRefused(t, err, tc.cause)
	}
	_, err = party.TokenIdentity(t.Context(), signintest.SignWith(signintest.NewKey(t, "other"), jose.RS256, map[string]any{"iss": provider.Issuer, "aud": "kuota-cli"}))
	wantRefused(t, err, "verify")
	_, err = console(provider).TokenIdentity(t.Context(), token(nil))
	wantRefused(t, err, "no client of the command line")
	for _, text := range []string{"", "a.b", "a.!.c", "a.e30.c"} {
		if got := signin.IssuerOf(text); got != "" {
			t.Errorf("%q is of %q", text, got)
		}
	}
}
