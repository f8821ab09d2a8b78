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
	// answerLimit is how long the provider may take for one answer.
	responseTimeout = 10 * time.Second
	// discoverAgain is how soon a provider that did not answer is asked again.
	discoveryRetryAfter = 2 * time.Second
	// answerSize is the largest answer that is read, in bytes: far above the
	// claims of a user with thousands of groups.
	maxResponse = 4 << 20
	// hintLimit is the longest ID token that is sent back at sign-out, in
	// bytes. It travels in an address, and servers bound those at 8 KiB.
	maxIDTokenHint = 3 << 10
)

// Config says which provider, and how it names people.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret func() (string, error) // read anew for each use, so that it can be changed; nil for a public client
	RedirectURL  string                 // this console's /auth/callback
	SignedOutURL string                 // where the provider sends people after sign-out
	Scopes       []string               // empty takes DefaultScopes, as far as the provider names them
	Claims       Claims
	Transport    http.RoundTripper // nil takes the default
	Now          func() time.Time  // the clock
}

// DefaultScopes are asked for where the provider does not say that it lacks
// them.
var DefaultScopes = []string{oidc.ScopeOpenID, "profile", "email", "groups", oidc.ScopeOfflineAccess}

// Provider is a company's OpenID Connect provider.
type Provider struct {
	config Config
	client *http.Client

	discovery singleflight.Group
	found     atomic.Pointer[discovered] // nil until the provider has answered for the first time
	failed    atomic.Pointer[failure]    // the last time that it did not; nil for never
}

// failure is an answer that did not come.
type failure struct {
	at  time.Time
	err error
}

// name is who this console is to whom.
func (p *Provider) id() string { return p.config.Issuer + " " + p.config.ClientID }

// discovered is what the provider says about itself.
type discovered struct {
	provider *oidc.Provider
	keys     *oidc.RemoteKeySet
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	metadata metadata
}

// metadata are fields of the discovery document that go-oidc does not give.
// Sources: OpenID Connect Discovery 1.0, RP-Initiated Logout 1.0, RFC 9207.
type metadata struct {
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Scopes        []string `json:"scopes_supported"`
	EndSession    string   `json:"end_session_endpoint"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	IssInResponse bool     `json:"authorization_response_iss_parameter_supported"`
}

// New prepares a provider; nothing is asked of it yet.
func New(config Config) *Provider {
	transport := config.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Provider{config: config, client: &http.Client{Transport: boundedTransport{transport}, Timeout: responseTimeout}}
}

// discover returns what the provider says about itself, asking it until it has
// answered once. Its keys are asked for anew whenever an unknown one is used.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	if failed := p.failed.Load(); failed != nil && p.config.Now().Sub(failed.at) < discoveryRetryAfter {
		return nil, failed.err
	}
	// Whoever asked first may leave: the others still want the answer.
	answer := p.discovery.DoChan("", func() (any, error) {
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
	case a := <-answer:
		if a.Err != nil {
			return nil, a.Err
		}
		return a.Val.(*discovered), nil
	}
}

func (p *Provider) fetchMetadata(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.config.Issuer)
	if err != nil {
		return nil, err
	}
	found := &discovered{provider: provider}
	if err := provider.Claims(&found.metadata); err != nil {
		return nil, fmt.Errorf("its discovery document: %w", err)
	}
	found.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), p.client), found.metadata.Keys)
	found.verifier = oidc.NewVerifier(p.config.Issuer, found.keys, &oidc.Config{
		ClientID: p.config.ClientID, Now: p.config.Now, SupportedSigningAlgs: asymmetric(found.metadata.Algorithms),
	})
	found.oauth = oauth2.Config{ClientID: p.config.ClientID, Endpoint: provider.Endpoint(), RedirectURL: p.config.RedirectURL, Scopes: p.scopes(found.metadata)}
	found.oauth.Endpoint.AuthStyle = p.authStyle(found.metadata)
	return found, nil
}

// signed are the algorithms that sign with a key only the provider has, out of
// those that it names. Without any, RS256 is what every provider must have.
func asymmetric(named []string) []string {
	public := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
	return slices.DeleteFunc(slices.Clone(named), func(name string) bool { return !slices.Contains(public, name) })
}

func (p *Provider) scopes(about metadata) []string {
	if len(p.config.Scopes) > 0 {
		return p.config.Scopes
	}
	var scopes []string
	for _, scope := range DefaultScopes {
		if len(about.Scopes) == 0 || slices.Contains(about.Scopes, scope) || scope == oidc.ScopeOpenID {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// authStyle says how the console names itself to the token endpoint. It is not
// found out by trying, since a wrong try may use up the code.
func (p *Provider) authStyle(about metadata) oauth2.AuthStyle {
	basic := len(about.TokenAuth) == 0 || slices.Contains(about.TokenAuth, "client_secret_basic")
	if basic && p.config.ClientSecret != nil {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// call prepares a call to the token endpoint.
func (p *Provider) endpoint(ctx context.Context) (*discovered, *oauth2.Config, context.Context, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	config := found.oauth
	if p.config.ClientSecret != nil {
		if config.ClientSecret, err = p.config.ClientSecret(); err != nil {
			return nil, nil, nil, fmt.Errorf("%w: the client secret: %w", ErrUnavailable, err)
		}
	}
	return found, &config, oidc.ClientContext(ctx, p.client), nil
}

// SignOutURL is where a person is sent to be signed out of the provider too;
// empty where the provider has no such place, or has not answered yet.
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

// bounded reads an answer whole, and no more than answerSize of it. What is no
// answer of the provider's becomes an error of the way to it here, since the
// libraries above keep neither kind apart, and would repeat error pages, which
// may repeat secrets, in the log.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return nil, fmt.Errorf("it answers %s", response.Status)
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
