package signin_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const callback = "http://console.test/auth/callback"

// withoutTokens compares identities without their tokens.
var withoutTokens = cmpopts.IgnoreFields(signin.Identity{}, "RefreshToken", "IDToken", "Issuer")

// ada is the default user of signintest.
var ada = signin.Identity{Subject: "1234", User: "ada@example.com", Groups: []string{"vision-team"}}

// behave changes the provider's behavior until the test ends.
func behave(t *testing.T, provider *signintest.Provider, change func(*signintest.Behavior)) {
	t.Helper()
	var was signintest.Behavior
	provider.Change(func(b *signintest.Behavior) {
		was = *b
		if change != nil {
			change(b)
		}
	})
	t.Cleanup(func() { provider.Change(func(b *signintest.Behavior) { *b = was }) })
}

// console returns a relying party of the provider.
func console(provider *signintest.Provider, changes ...func(*signin.Config)) *signin.Provider {
	config := signin.Config{
		Issuer: provider.Issuer, ClientID: signintest.ClientID,
		ClientSecret: func() (string, error) { return signintest.ClientSecret, nil },
		RedirectURL:  callback, SignedOutURL: "http://console.test/auth/signed-out",
		Claims: signin.Claims{Username: "email", Groups: "groups"},
	}
	for _, change := range changes {
		if change != nil {
			change(&config)
		}
	}
	return signin.New(config)
}

// visit sends the browser to the provider, and returns the query of the callback.
func visit(t *testing.T, address string) url.Values {
	t.Helper()
	return visitBy(t, http.DefaultTransport, address)
}

func visitBy(t *testing.T, transport http.RoundTripper, address string) url.Values {
	t.Helper()
	browser := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		t.Fatalf("the provider answers %s: %v", response.Status, err)
	}
	if !strings.HasPrefix(back.String(), callback+"?") {
		t.Fatalf("the provider sends the person to %s, want %s", back, callback)
	}
	return back.Query()
}

// begin runs a sign-in up to the provider's answer.
func begin(t *testing.T, party *signin.Provider) (signin.Attempt, url.Values) {
	t.Helper()
	address, attempt, err := party.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return attempt, visit(t, address)
}

func signIn(t *testing.T, party *signin.Provider) (signin.Identity, error) {
	t.Helper()
	attempt, answer := begin(t, party)
	return party.Finish(t.Context(), attempt, answer)
}

// signedIn returns the identity of a successful sign-in.
func signedIn(t *testing.T, party *signin.Provider) signin.Identity {
	t.Helper()
	who, err := signIn(t, party)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// wantSecretsKept fails if an error, which is logged, contains a secret. Secrets of
// signintest begin with canary; tokens begin with eyJ.
func wantSecretsKept(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"canary", "eyJ"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats %q: %v", secret, err)
		}
	}
}

// wantRefused fails unless err is a Refusal with that cause, whose message contains
// no details.
func wantRefused(t *testing.T, err error, cause string) {
	t.Helper()
	var refusal *signin.Refusal
	if !errors.As(err, &refusal) || errors.Is(err, signin.ErrUnavailable) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if refusal.Message == "" || strings.ContainsAny(refusal.Message, "%\n") {
		t.Errorf("message %q is no sentence", refusal.Message)
	}
	if !strings.Contains(err.Error(), cause) {
		t.Errorf("refused for %v, want %q", err, cause)
	}
	if strings.Contains(refusal.Message, "words of the provider") {
		t.Errorf("message %q repeats the provider", refusal.Message)
	}
	wantSecretsKept(t, err)
}

func wantAway(t *testing.T, err error) {
	t.Helper()
	var refusal *signin.Refusal
	if !errors.Is(err, signin.ErrUnavailable) || errors.As(err, &refusal) {
		t.Fatalf("got %v, want ErrAway and no refusal", err)
	}
	wantSecretsKept(t, err)
}

func wantIdentity(t *testing.T, got signin.Identity, err error, want signin.Identity) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, withoutTokens); diff != "" {
		t.Error(diff)
	}
}

// clock is a clock that tests advance.
type clock struct{ ahead time.Duration }

func (c *clock) now() time.Time { return time.Now().Add(c.ahead) }

func (c *clock) use(config *signin.Config) { config.Now = c.now }

// trips is a function as an http.RoundTripper.
type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
