package provider

import (
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

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
