// Package signintest is an OpenID Connect provider that does what a test tells
// it to, wrong things above all. What a well-behaved provider does is tested
// against real ones, in e2e.
package signintest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Client credentials that the provider knows.
const (
	ClientID     = "kuota"
	ClientSecret = "canary-client-secret"
)

// Provider is the provider. Its fields may be changed between requests, with
// Change.
type Provider struct {
	Issuer string

	mu sync.Mutex
	Behavior
	codes         map[string]grant
	refreshTokens map[string]grant
	handler       http.Handler
}

// Behavior is what a test may change.
type Behavior struct {
	Keys                    []jose.JSONWebKey                              // those that it publishes, private parts included
	Sign                    func(claims map[string]any) string             // makes the ID token; nil signs with the first key
	Claims                  map[string]any                                 // of the person who signs in
	ChangeClaims            func(claims map[string]any)                    // changes the claims of an ID token before it is signed
	UserInfo                func() map[string]any                          // nil gives Claims
	Metadata                map[string]any                                 // over the discovery document
	ChangeAuthorizeResponse func(answer url.Values)                        // changes the answer to an authorization request
	NoIDToken               bool                                           // in the answer to a refresh
	Refuse                  bool                                           // every refresh, as invalid_grant
	Unavailable             bool                                           // answers 503 to everything
	Requests                map[string]int                                 // how often each path was asked
	Token                   func(w http.ResponseWriter, f url.Values) bool // answers the token endpoint itself, if it returns true
	Fail                    map[string]int                                 // answers these paths with this status, and with what it was sent
	Client                  func(r *http.Request) bool                     // whether the token endpoint takes the client for itself; nil wants Basic
	ChangeTokenResponse     func(answer map[string]any)                    // changes the answer of the token endpoint
}

type grant struct {
	nonce, challenge string
}

// New starts a provider that behaves well, for a person with the claims sub,
// email and groups, until the test ends.
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
			http.Error(w, "away", http.StatusServiceUnavailable)
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

// NewKey makes a key that signs RS256.
func NewKey(t testing.TB, id string) jose.JSONWebKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}
}

// Change makes the provider behave otherwise from now on.
func (p *Provider) Change(change func(*Behavior)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.Behavior)
}

// Asked is how often a path was asked.
func (p *Provider) Requested(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Requests[path]
}

// RoundTrip answers a request without a network, for tests with a clock of
// their own.
func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// SignWith makes a signed token of the claims.
func SignWith(key jose.JSONWebKey, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}
