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

// A redirect to another host is not followed, because requests contain secrets. One
// within the provider is.
func TestRedirectsOfTheProvider(t *testing.T) {
	for _, path := range []string{discovery, "/keys", "/token", "/userinfo"} {
		for name, tc := range map[string]struct {
			status int
			to     string // an origin; empty for the provider's own
			ends   bool
		}{
			"to itself":          {http.StatusTemporaryRedirect, "", true},
			"to itself for ever": {http.StatusTemporaryRedirect, "", false},
			"to another host":    {http.StatusTemporaryRedirect, "http://elsewhere.test", true},
			"to another port":    {http.StatusFound, "http://127.0.0.1:1", true},
			"to another scheme":  {http.StatusPermanentRedirect, "https", true},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				provider := signintest.New(t)
				own, err := url.Parse(provider.Issuer)
				if err != nil {
					t.Fatal(err)
				}
				behave(t, provider, func(b *signintest.Behavior) { b.ChangeClaims = set("groups", nil) }) // so that userinfo is requested
				to := tc.to
				switch to {
				case "":
					to = provider.Issuer
				case "https":
					to = "https://" + own.Host
				}
				var elsewhere, redirected int
				party := console(provider, func(c *signin.Config) {
					c.Transport = trips(func(r *http.Request) (*http.Response, error) {
						if r.URL.Scheme != own.Scheme || r.URL.Host != own.Host {
							elsewhere++
						} else if r.URL.Path == path && (redirected == 0 || !tc.ends) {
							redirected++
							return &http.Response{StatusCode: tc.status, Header: http.Header{"Location": {to + path}}, Body: http.NoBody, Request: r}, nil
						}
						return http.DefaultTransport.RoundTrip(r)
					})
				})
				address, attempt, err := party.Begin(t.Context())
				if err == nil {
					var who signin.Identity
					if who, err = party.Finish(t.Context(), attempt, visit(t, address)); err == nil && tc.ends && tc.to == "" {
						wantIdentity(t, who, err, ada)
						return
					}
				}
				wantAway(t, err)
				if elsewhere > 0 {
					t.Errorf("%d requests to another origin", elsewhere)
				}
				if redirected == 0 || redirected > 4 {
					t.Errorf("%d requests were redirected, want 1 to 4", redirected)
				}
			})
		}
	}
}
