// Package signintest is an OpenID Connect provider for tests, which can make it
// misbehave. The tests in e2e use real providers.
package signintest

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Credentials of the client that the provider accepts.
const (
	ClientID     = "kuota"
	ClientSecret = "canary-client-secret"
)

// Provider is an OpenID Connect provider. Change changes its Behavior.
type Provider struct {
	Issuer string

	mu sync.Mutex
	Behavior
	codes         map[string]grant
	refreshTokens map[string]grant
	handler       http.Handler
}

// Behavior is how a provider behaves.
type Behavior struct {
	Keys                    []jose.JSONWebKey                              // published keys, with their private parts
	Sign                    func(claims map[string]any) string             // returns the ID token; nil signs with the first key
	Claims                  map[string]any                                 // of the user who signs in
	ChangeClaims            func(claims map[string]any)                    // changes the claims of an ID token before signing
	UserInfo                func() map[string]any                          // nil returns Claims
	Metadata                map[string]any                                 // added to the discovery document
	ChangeAuthorizeResponse func(response url.Values)                      // changes the response to an authorization request
	NoIDToken               bool                                           // no ID token in the response to a refresh
	Refuse                  bool                                           // rejects every refresh with invalid_grant
	Unavailable             bool                                           // returns 503 to every request
	Requests                map[string]int                                 // number of requests by path
	Token                   func(w http.ResponseWriter, f url.Values) bool // responds to a token request itself if it returns true
	Fail                    map[string]int                                 // returns this status for a path, and the secrets of the request
	Client                  func(r *http.Request) bool                     // reports whether the client is authenticated; nil requires Basic
	ChangeTokenResponse     func(response map[string]any)                  // changes the response of the token endpoint
}

type grant struct {
	nonce, challenge string
}

// New starts a correct provider until the test ends. Its user has the claims sub,
// email and groups.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{codes: map[string]grant{}, refreshTokens: map[string]grant{}, Behavior: Behavior{
		Keys:     []jose.JSONWebKey{NewKey(t, "first")},
		Claims:   map[string]any{"sub": "1234", "email": "ada@example.com", "groups": []string{"vision-team"}},
		Requests: map[string]int{},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", p.userinfo)
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.Requests[r.URL.Path]++
		if p.Unavailable {
			http.Error(w, "unavailable", http.StatusServiceUnavailable)
			return
		}
		if status := p.Fail[r.URL.Path]; status != 0 {
			echoSecrets(w, r, status)
			return
		}
		mux.ServeHTTP(w, r)
	})
	server := httptest.NewServer(p.handler)
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	return p
}

// NewKey returns a new RS256 key.
func NewKey(t testing.TB, id string) jose.JSONWebKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}
}

// Change changes the behavior of the provider.
func (p *Provider) Change(change func(*Behavior)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.Behavior)
}

// Requested returns the number of requests for a path.
func (p *Provider) Requested(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Requests[path]
}

// RoundTrip implements http.RoundTripper without a network, for tests in a
// testing/synctest bubble.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// SignWith returns a signed token with these claims.
func SignWith(key jose.JSONWebKey, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	var token string
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err == nil {
		token, err = jwt.Signed(signer).Claims(claims).Serialize()
	}
	if err != nil {
		panic(err)
	}
	return token
}
