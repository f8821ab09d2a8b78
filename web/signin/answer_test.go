package signin_test

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"testing"

	"kuota.dev/kuota/web/signin/signintest"
)

// The answer comes through the browser, so that it can be forged.
func TestInvalidCallbackIsRefused(t *testing.T) {
	provider := signintest.New(t)
	for name, tc := range map[string]struct {
		metadata map[string]any
		answer   func(url.Values)
		cause    string
	}{
		"state of another sign-in": {answer: func(a url.Values) { a.Set("state", "another") }, cause: "state differs"},
		"state missing":            {answer: func(a url.Values) { a.Del("state") }, cause: "state differs"},
		"state twice":              {answer: func(a url.Values) { a.Add("state", a.Get("state")) }, cause: "state differs"},
		"iss of another provider":  {answer: func(a url.Values) { a.Set("iss", "https://elsewhere.test") }, cause: "iss is"},
		"iss twice":                {answer: func(a url.Values) { a["iss"] = []string{provider.Issuer, provider.Issuer} }, cause: "iss is"},
		"iss missing though announced": {
			metadata: map[string]any{"authorization_response_iss_parameter_supported": true}, cause: "iss is",
		},
		"cancelled": {
			answer: func(a url.Values) {
				a.Del("code")
				maps.Copy(a, url.Values{"error": {"access_denied"}, "error_description": {"words of the provider"}})
			},
			cause: "access_denied",
		},
		"an error that nobody knows": {answer: func(a url.Values) { a.Set("error", "words of the provider") }, cause: "returned error"},
		"code missing":               {answer: func(a url.Values) { a.Del("code") }, cause: "0 codes"},
		"code empty":                 {answer: func(a url.Values) { a.Set("code", "") }, cause: "1 codes"},
		"code twice":                 {answer: func(a url.Values) { a.Add("code", "another") }, cause: "2 codes"},
		"code of nobody":             {answer: func(a url.Values) { a.Set("code", "another") }, cause: "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) { b.Metadata = tc.metadata })
			party := console(provider)
			attempt, answer := begin(t, party)
			if tc.answer != nil {
				tc.answer(answer)
			}
			_, err := party.Finish(t.Context(), attempt, answer)
			wantRefused(t, err, tc.cause)
		})
	}
}

func TestCallbackWorksOnce(t *testing.T) {
	party := console(signintest.New(t))
	attempt, answer := begin(t, party)
	if _, err := party.Finish(t.Context(), attempt, answer); err != nil {
		t.Fatal(err)
	}
	_, err := party.Finish(t.Context(), attempt, answer)
	wantRefused(t, err, "invalid_grant")
}

// A stolen code is useless without the verifier, which never leaves the console.
func TestPKCE(t *testing.T) {
	party := console(signintest.New(t))
	seen := []string{}
	for range 2 {
		address, attempt, err := party.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		query, sum := parsed.Query(), sha256.Sum256([]byte(attempt.Verifier))
		for name, want := range map[string]string{
			"response_type": "code", "client_id": signintest.ClientID, "redirect_uri": callback, "scope": "openid email groups offline_access",
			"state": attempt.State, "nonce": attempt.Nonce,
			"code_challenge_method": "S256", "code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]),
		} {
			if got := query[name]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		seen = append(seen, attempt.State, attempt.Nonce, attempt.Verifier)
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 6 {
		t.Error("two sign-ins share a state, nonce or verifier")
	}

	attempt, answer := begin(t, party)
	other, _ := begin(t, party)
	attempt.Verifier = other.Verifier
	_, err := party.Finish(t.Context(), attempt, answer)
	wantRefused(t, err, "invalid_grant")
}
