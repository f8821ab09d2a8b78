package signin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
)

const (
	// responseTimeout is how long the provider may take for one response.
	responseTimeout = 10 * time.Second
	// discoveryRetryAfter is the pause after a discovery that failed.
	discoveryRetryAfter = 2 * time.Second
	// maxResponse is the size in bytes of the largest response that is read: far
	// above the claims of a user with thousands of groups.
	maxResponse = 4 << 20
	// maxIDTokenHint is the size in bytes of the longest ID token that is sent at
	// sign-out. It is part of an address, which servers limit to 8 KiB.
	maxIDTokenHint = 3 << 10
)

// Config configures a Provider.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret func() (string, error) // called for each use, so that the secret can change; nil for a public client
	RedirectURL  string                 // address of /auth/callback
	SignedOutURL string                 // where the provider redirects to after sign-out
	Scopes       []string               // empty means the DefaultScopes that the provider supports
	Claims       Claims
	CommandLine  string            // client ID of the command line, a public client; empty for none
	Transport    http.RoundTripper // nil means http.DefaultTransport
	Now          func() time.Time  // nil means time.Now
}

// DefaultScopes are requested unless the provider's metadata omits them.
var DefaultScopes = []string{oidc.ScopeOpenID, "profile", "email", "groups", oidc.ScopeOfflineAccess}

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client

	discovery singleflight.Group
	found     atomic.Pointer[discovered] // nil until the first discovery succeeded
	failed    atomic.Pointer[failure]    // of the last discovery; nil if none failed
}

// failure is a discovery that failed.
type failure struct {
	at  time.Time
	err error
}

// id returns the issuer and the client ID: a session is valid for both only.
func (p *Provider) id() string { return p.config.Issuer + " " + p.config.ClientID }

// discovered is the result of discovery.
type discovered struct {
	provider *oidc.Provider
	keys     *oidc.RemoteKeySet
	verifier *oidc.IDTokenVerifier
	// commandLine verifies the ID tokens of Config.CommandLine.
	commandLine *oidc.IDTokenVerifier
	oauth       oauth2.Config
	metadata    metadata
}

// metadata are the fields of the discovery document that go-oidc does not return.
// Sources: OpenID Connect Discovery 1.0, RP-Initiated Logout 1.0, RFC 9207.
type metadata struct {
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Scopes        []string `json:"scopes_supported"`
	EndSession    string   `json:"end_session_endpoint"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	IssInResponse bool     `json:"authorization_response_iss_parameter_supported"`
}

// New returns a provider. It sends no request yet.
func New(config Config) *Provider {
	transport := config.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Provider{config: config, client: &http.Client{Transport: boundedTransport{transport}, Timeout: responseTimeout, CheckRedirect: checkRedirect}}
}

// maxRedirects is how many redirects of the provider are followed.
const maxRedirects = 3

// checkRedirect allows redirects within one origin only: a request may contain the
// client secret, a code or a refresh token.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
		return fmt.Errorf("the provider redirects from %s to %s://%s, which is not followed", first.Host, next.URL.Scheme, next.URL.Host)
	case len(via) > maxRedirects:
		return fmt.Errorf("the provider redirects more than %d times", maxRedirects)
	}
	return nil
}

// discover returns the result of discovery, which it repeats until one succeeded.
// The keys are fetched again whenever a token has an unknown one.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	if failed := p.failed.Load(); failed != nil && p.config.Now().Sub(failed.at) < discoveryRetryAfter {
		return nil, failed.err
	}
	// The request that started the discovery may be canceled while others wait.
	result := p.discovery.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), responseTimeout)
		defer cancel()
		found, err := p.fetchMetadata(ctx)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
			p.failed.Store(&failure{at: p.config.Now(), err: err})
			return nil, err
		}
		p.found.Store(found)
		return found, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*discovered), nil
	}
}

// fetchMetadata requests the discovery document.
func (p *Provider) fetchMetadata(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.config.Issuer)
	if err != nil {
		return nil, err
	}
	found := &discovered{provider: provider}
	if err := provider.Claims(&found.metadata); err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	found.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), p.client), found.metadata.Keys)
	verifier := func(client string) *oidc.IDTokenVerifier {
		return oidc.NewVerifier(p.config.Issuer, found.keys, &oidc.Config{ClientID: client, Now: p.config.Now, SupportedSigningAlgs: asymmetric(found.metadata.Algorithms)})
	}
	found.verifier, found.commandLine = verifier(p.config.ClientID), verifier(p.config.CommandLine)
	found.oauth = oauth2.Config{ClientID: p.config.ClientID, Endpoint: provider.Endpoint(), RedirectURL: p.config.RedirectURL, Scopes: p.scopes(found.metadata)}
	found.oauth.Endpoint.AuthStyle = p.authStyle(found.metadata)
	return found, nil
}

// asymmetric returns the supported algorithms that sign with a private key. Where
// there are none, go-oidc uses RS256, which every provider must support.
func asymmetric(supported []string) []string {
	public := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
	return slices.DeleteFunc(slices.Clone(supported), func(name string) bool { return !slices.Contains(public, name) })
}

func (p *Provider) scopes(m metadata) []string {
	if len(p.config.Scopes) > 0 {
		return p.config.Scopes
	}
	var scopes []string
	for _, scope := range DefaultScopes {
		if len(m.Scopes) == 0 || slices.Contains(m.Scopes, scope) || scope == oidc.ScopeOpenID {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// authStyle returns how the console authenticates to the token endpoint. oauth2
// would find out by trying, but a failed attempt may use up the code.
func (p *Provider) authStyle(m metadata) oauth2.AuthStyle {
	basic := len(m.TokenAuth) == 0 || slices.Contains(m.TokenAuth, "client_secret_basic")
	if basic && p.config.ClientSecret != nil {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// endpoint returns what a call of the token endpoint needs.
func (p *Provider) endpoint(ctx context.Context) (*discovered, *oauth2.Config, context.Context, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	config := found.oauth
	if p.config.ClientSecret != nil {
		if config.ClientSecret, err = p.config.ClientSecret(); err != nil {
			return nil, nil, nil, fmt.Errorf("%w: read the client secret: %w", ErrUnavailable, err)
		}
	}
	return found, &config, oidc.ClientContext(ctx, p.client), nil
}

// SignOutURL returns the address that signs the user out of the provider; "" if
// the provider has none, or discovery has not succeeded yet.
func (p *Provider) SignOutURL(idToken string) string {
	found := p.found.Load()
	if found == nil || found.metadata.EndSession == "" {
		return ""
	}
	end, err := url.Parse(found.metadata.EndSession)
	if err != nil {
		return ""
	}
	query := end.Query()
	query.Set("client_id", p.config.ClientID)
	query.Set("post_logout_redirect_uri", p.config.SignedOutURL)
	if idToken != "" {
		query.Set("id_token_hint", idToken)
	}
	end.RawQuery = query.Encode()
	return end.String()
}

// boundedTransport reads responses into memory, up to maxResponse. It turns server
// errors into errors of the connection, and drops error pages: go-oidc does not
// distinguish them from responses, and would include the page, which may repeat
// secrets, in its error.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return nil, fmt.Errorf("the provider returned %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, err
	}
	if request.Method == http.MethodGet && response.StatusCode != http.StatusOK {
		body = nil
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
