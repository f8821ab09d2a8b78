package provider

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// storage implements the library's interfaces for everything but the protocol.
type storage struct {
	client      *client
	commandLine *commandLine
	users       *directory
	keys        *keys
	memory      *memory
	requests    *requests
	devices     *devices
	life        time.Duration // of access tokens
}

var (
	_ op.Storage                        = (*storage)(nil)
	_ op.CanSetUserinfoFromRequest      = (*storage)(nil)
	_ op.CanTerminateSessionFromRequest = (*storage)(nil)
)

// CreateAuthRequest stores a request that the library has validated.
func (s *storage) CreateAuthRequest(_ context.Context, r *oidc.AuthRequest, hinted string) (op.AuthRequest, error) {
	// The library accepts requests without PKCE.
	if r.CodeChallenge == "" || r.CodeChallengeMethod != oidc.CodeChallengeMethodS256 {
		return nil, oidc.ErrInvalidRequest().WithDescription("PKCE with code_challenge_method S256 is required")
	}
	req := &request{AuthRequest: r, id: rand.Text(), hinted: hinted, created: s.memory.now()}
	s.requests.add(req)
	return req, nil
}

func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	r, ok := s.requests.get(id)
	if !ok {
		return nil, oidc.ErrInvalidRequest().WithDescription("this sign-in has expired")
	}
	return r, nil
}

// AuthRequestByCode returns the request of a code, unless its user was removed
// meanwhile.
func (s *storage) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	r, ok := s.requests.takeCode(code)
	if !ok {
		return nil, errors.New("the code is unknown or was already used")
	}
	if _, ok := s.users.bySubject(r.GetSubject()); !ok {
		return nil, errors.New("the user was removed or is disabled")
	}
	return r, nil
}

func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.requests.saveCode(id, code)
	return nil
}

func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.requests.remove(id)
	return nil
}

func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	switch id {
	case s.client.id:
		return s.client, nil
	case s.commandLine.id:
		return s.commandLine, nil
	}
	return nil, oidc.ErrInvalidClient().WithDescription("unknown client ID")
}

// AuthorizeClientIDSecret checks the secret of the console. commandLine has none, so
// that no secret is right for it.
func (s *storage) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != s.client.id || subtle.ConstantTimeCompare([]byte(secret), []byte(s.client.secret)) != 1 {
		return errors.New("wrong client or secret")
	}
	return nil
}

// TerminateSessionFromRequest ends the session of the client's ID token. forget
// has ended the session of the browser's cookie before.
func (s *storage) TerminateSessionFromRequest(_ context.Context, r *op.EndSessionRequest) (string, error) {
	if r.IDTokenHintClaims != nil && r.IDTokenHintClaims.SessionID != "" {
		s.memory.endSession(r.IDTokenHintClaims.SessionID)
	}
	return r.RedirectURI, nil
}

// TerminateSession is not called, because of TerminateSessionFromRequest.
func (s *storage) TerminateSession(context.Context, string, string) error { return nil }

func (s *storage) SigningKey(context.Context) (op.SigningKey, error) { return signingKey{s.keys}, nil }
func (s *storage) KeySet(context.Context) ([]op.Key, error)          { return []op.Key{publicKey{s.keys}}, nil }
func (s *storage) Health(context.Context) error                      { return nil }

func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

// The methods below belong to grants that no client has.

func (s *storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}

func (s *storage) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errors.New("clients have no keys")
}

func (s *storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, oidc.ErrUnsupportedGrantType()
}

// scopeGroups is not defined by OpenID Connect, but most providers have it.
const scopeGroups = "groups"

// client is the console: confidential, by client_secret_basic.
type client struct {
	id, secret string
	life       time.Duration // of ID tokens
}

var _ op.HasRedirectGlobs = (*client)(nil)

func (c *client) GetID() string                        { return c.id }
func (c *client) RedirectURIs() []string               { return nil }
func (c *client) PostLogoutRedirectURIs() []string     { return nil }
func (c *client) RedirectURIGlobs() []string           { return loopbackGlobs("/auth/callback") }
func (c *client) PostLogoutRedirectURIGlobs() []string { return loopbackGlobs("/auth/signed-out") }
func (c *client) ApplicationType() op.ApplicationType  { return op.ApplicationTypeWeb }
func (c *client) AuthMethod() oidc.AuthMethod          { return oidc.AuthMethodBasic }
func (c *client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeBearer }
func (c *client) IDTokenLifetime() time.Duration       { return c.life }
func (c *client) ClockSkew() time.Duration             { return 0 }
func (c *client) DevMode() bool                        { return false }
func (c *client) IsScopeAllowed(scope string) bool     { return scope == scopeGroups }
func (c *client) LoginURL(id string) string            { return signInPath + "?id=" + url.QueryEscape(id) }

// IDTokenUserinfoClaimsAssertion puts the claims into the ID token too. Otherwise
// only userinfo would have them whenever there is an access token.
func (c *client) IDTokenUserinfoClaimsAssertion() bool { return true }

func (c *client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}

func (c *client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}

func (c *client) RestrictAdditionalIdTokenScopes() func([]string) []string     { return allScopes }
func (c *client) RestrictAdditionalAccessTokenScopes() func([]string) []string { return allScopes }

func allScopes(scopes []string) []string { return scopes }

// loopbackGlobs returns globs that match a path, or that path below one segment as
// consoles with a base path have it, at every port of this machine.
// They match each digit of the port: a star would also match "1@example.com",
// which is another host.
func loopbackGlobs(path string) []string {
	var globs []string
	for _, origin := range []string{"http://127.0.0.1", "https://127.0.0.1", "http://localhost", "https://localhost"} {
		for digits := 2; digits <= 5; digits++ {
			host := origin + ":" + strings.Repeat("[0-9]", digits)
			globs = append(globs, host+path, host+"/[a-z]*"+path)
		}
	}
	return globs
}
