package signin_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/go-jose/go-jose/v4"
)

// outages are failures after the user was sent to the provider. Each is an outage,
// and never a refusal.
func outages(t *testing.T) map[string]func(*signintest.Behavior) {
	t.Helper()
	down := func(path string, status int) func(*signintest.Behavior) {
		return func(b *signintest.Behavior) { b.Fail = map[string]int{path: status} }
	}
	key := signintest.NewKey(t, "second")
	incomplete := func(claims map[string]any) { delete(claims, "groups") }
	return map[string]func(*signintest.Behavior){
		"everything is down":               func(b *signintest.Behavior) { b.Unavailable = true },
		"token endpoint fails":             down("/token", http.StatusInternalServerError),
		"token endpoint behind a gateway":  down("/token", http.StatusBadGateway),
		"token endpoint has no time":       down("/token", http.StatusTooManyRequests),
		"a gateway refuses everybody":      down("/token", http.StatusForbidden),
		"a gateway knows no such page":     down("/token", http.StatusNotFound),
		"the provider refuses the console": func(b *signintest.Behavior) { b.Token = refuseClient },
		"token endpoint breaks off midway": func(b *signintest.Behavior) { b.Token = breakOff },
		"keys endpoint is down, and the key is new": func(b *signintest.Behavior) {
			b.Keys = []jose.JSONWebKey{key}
			down("/keys", http.StatusServiceUnavailable)(b)
		},
		"userinfo endpoint is down": func(b *signintest.Behavior) {
			b.ChangeClaims = incomplete
			down("/userinfo", http.StatusServiceUnavailable)(b)
		},
	}
}

// refuseClient is the answer of a provider after the client secret was changed.
func refuseClient(w http.ResponseWriter, _ url.Values) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write([]byte(`{"error":"invalid_client","error_description":"canary-client-secret is wrong"}`))
	return true
}

// breakOff sends less than its Content-Length.
func breakOff(w http.ResponseWriter, _ url.Values) bool {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"access_token":"canary-access`))
	return true
}

func TestCallbackDuringOutage(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	signedIn(t, party)
	for name, breaks := range outages(t) {
		t.Run(name, func(t *testing.T) {
			attempt, answer := begin(t, party)
			t.Run("broken", func(t *testing.T) {
				behave(t, provider, breaks)
				_, err := party.Finish(t.Context(), attempt, answer)
				wantAway(t, err)
			})
			got, err := signIn(t, party)
			wantIdentity(t, got, err, ada)
		})
	}
}

func TestConfirmDuringOutage(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	for name, breaks := range outages(t) {
		t.Run(name, func(t *testing.T) {
			was := signedIn(t, party)
			t.Run("broken", func(t *testing.T) {
				behave(t, provider, breaks)
				_, err := party.Refresh(t.Context(), was)
				wantAway(t, err)
			})
			got, err := party.Refresh(t.Context(), signedIn(t, party))
			wantIdentity(t, got, err, ada)
		})
	}
}

func TestReachingAProviderThatRefusesConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := listener.Addr().String()
	listener.Close()

	provider, clock, refused := signintest.New(t), &clock{}, true
	party := console(provider, clock.use, func(c *signin.Config) {
		c.Transport = trips(func(r *http.Request) (*http.Response, error) {
			if refused {
				r = r.Clone(r.Context())
				r.URL.Host = unused
			}
			return http.DefaultTransport.RoundTrip(r)
		})
	})
	_, _, err = party.Begin(t.Context())
	wantAway(t, err)
	refused, clock.ahead = false, 3*time.Second
	attempt, answer := begin(t, party)
	refused = true
	_, err = party.Finish(t.Context(), attempt, answer)
	wantAway(t, err)
	refused = false
	got, err := party.Finish(t.Context(), attempt, answer)
	wantIdentity(t, got, err, ada)
}

// A provider that hangs delays a request only up to its timeout, or until the
// context ends.
func TestHangingProvider(t *testing.T) {
	provider := signintest.New(t)
	incomplete := func(b *signintest.Behavior) { b.ChangeClaims = set("groups", nil) }
	for _, hangs := range []string{discovery, "/token", "/keys", "/userinfo"} {
		for name, tc := range map[string]struct{ patience, want time.Duration }{
			"a patient user": {patience: time.Hour, want: 10 * time.Second},
			"who leaves":     {patience: 3 * time.Second, want: 3 * time.Second},
		} {
			t.Run(hangs+" "+name, func(t *testing.T) {
				behave(t, provider, incomplete)
				synctest.Test(t, func(t *testing.T) {
					defer time.Sleep(time.Minute) // keys are requested in the background
					party := console(provider, func(c *signin.Config) {
						c.Transport = trips(func(r *http.Request) (*http.Response, error) {
							if r.URL.Path == hangs {
								<-r.Context().Done()
								return nil, r.Context().Err()
							}
							return provider.RoundTrip(r)
						})
					})
					ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
					defer cancel()
					began := time.Now()
					address, attempt, err := party.Begin(ctx)
					if err == nil {
						_, err = party.Finish(ctx, attempt, visitBy(t, provider, address))
					}
					wantAway(t, err)
					if waited := time.Since(began); waited != tc.want {
						t.Errorf("waited %s, want %s", waited, tc.want)
					}
				})
			})
		}
	}
}

func TestMissingClientSecretFile(t *testing.T) {
	provider, gone := signintest.New(t), true
	party := console(provider, func(c *signin.Config) {
		c.ClientSecret = func() (string, error) {
			if gone {
				return "", fs.ErrNotExist
			}
			return signintest.ClientSecret, nil
		}
	})
	attempt, answer := begin(t, party)
	_, err := party.Finish(t.Context(), attempt, answer)
	wantAway(t, err)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that the file is missing", err)
	}
	gone = false
	got, err := party.Finish(t.Context(), attempt, answer)
	wantIdentity(t, got, err, ada)
}
