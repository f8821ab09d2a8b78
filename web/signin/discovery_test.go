package signin_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"
)

const discovery = "/.well-known/openid-configuration"

// The console starts while the provider is down, and finds it later without a
// restart.
func TestDiscoveryAfterAnOutage(t *testing.T) {
	for name, tc := range map[string]func(*signintest.Behavior){
		"down":           func(b *signintest.Behavior) { b.Unavailable = true },
		"another answer": func(b *signintest.Behavior) { b.Fail = map[string]int{discovery: http.StatusNotFound} },
		"rp-discovery-issuer-not-matching-config": func(b *signintest.Behavior) {
			b.Metadata = map[string]any{"issuer": "https://elsewhere.test"}
		},
		"numbers for addresses": func(b *signintest.Behavior) { b.Metadata = map[string]any{"end_session_endpoint": 7} },
	} {
		t.Run(name, func(t *testing.T) {
			provider, clock := signintest.New(t), &clock{}
			party := console(provider, clock.use)
			t.Run("broken", func(t *testing.T) {
				behave(t, provider, tc)
				for range 3 {
					_, _, err := party.Begin(t.Context())
					wantAway(t, err)
					_, err = party.Refresh(t.Context(), signin.Identity{RefreshToken: "canary", Issuer: provider.Issuer + " " + signintest.ClientID})
					wantAway(t, err)
				}
				if asked := provider.Requested(discovery); asked != 1 {
					t.Errorf("asked %d times in a moment, want once", asked)
				}
			})
			clock.ahead += 3 * time.Second
			got, err := signIn(t, party)
			wantIdentity(t, got, err, ada)
		})
	}
}

// Some providers refuse requests for a scope that they do not support.
func TestRequestedScopes(t *testing.T) {
	provider := signintest.New(t)
	for name, tc := range map[string]struct {
		named any
		own   []string
		want  string
	}{
		"all, where the provider names none": {named: nil, want: "openid profile email groups offline_access"},
		"those that the provider names":      {named: []string{"email", "address"}, want: "openid email"},
		"those of the configuration":         {named: []string{"email"}, own: []string{"openid", "roles"}, want: "openid roles"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) { b.Metadata = map[string]any{"scopes_supported": tc.named} })
			address, _, err := console(provider, func(c *signin.Config) { c.Scopes = tc.own }).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := url.Parse(address)
			if err != nil || parsed.Query().Get("scope") != tc.want {
				t.Errorf("%v asks for %q, want %q", err, parsed.Query().Get("scope"), tc.want)
			}
		})
	}
}

// An endless answer does not fill the memory.
func TestAnswerSizeIsLimited(t *testing.T) {
	provider, endless := signintest.New(t), &spaces{}
	party := console(provider, func(c *signin.Config) {
		c.Transport = trips(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(endless)}, nil
		})
	})
	_, _, err := party.Begin(t.Context())
	wantAway(t, err)
	if endless.read > 5<<20 {
		t.Errorf("read %d bytes", endless.read)
	}
}

// spaces is an answer that is longer than any limit.
type spaces struct{ read int }

func (s *spaces) Read(into []byte) (int, error) {
	if s.read > 64<<20 {
		return 0, io.EOF
	}
	s.read += len(into)
	return copy(into, bytes.Repeat([]byte(" "), len(into))), nil
}

// rp-discovery-openid-configuration and rp-discovery-jwks_uri-keys: each is
// requested once, at the address in the document.
func TestDiscoveryHappensOnce(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	if provider.Requested(discovery) != 0 {
		t.Error("the provider was asked before anybody signs in")
	}
	for range 3 {
		signedIn(t, party)
	}
	for path, want := range map[string]int{discovery: 1, "/keys": 1, "/token": 3, "/userinfo": 0} {
		if got := provider.Requested(path); got != want {
			t.Errorf("%s was asked %d times, want %d", path, got, want)
		}
	}
}
