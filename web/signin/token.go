package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// TokenIdentity returns the user of an ID token that the command line sends. Its claims
// must name the user: there is no access token to ask userinfo with. Only tokens for
// Config.CommandLine are accepted.
func (p *Provider) TokenIdentity(ctx context.Context, raw string) (Identity, error) {
	const message = "The token is not valid. Sign in again with kuota login."
	if p.config.CommandLine == "" {
		return Identity{}, refuse(message, "no client of the command line is configured")
	}
	found, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	// As in verify: keys that could not be fetched are no invalid signature.
	if _, err := found.keys.VerifySignature(ctx, raw); err != nil && asUnavailable(err) != nil {
		return Identity{}, asUnavailable(err)
	}
	id, err := found.commandLine.Verify(ctx, raw)
	if err != nil {
		return Identity{}, &Refusal{Message: message, Err: err}
	}
	all := claims{}
	id.AccessTokenHash = "" // of an access token that the program keeps
	if err := errors.Join(checkToken(id, p.config.CommandLine, ""), id.Claims(&all)); err != nil {
		return Identity{}, &Refusal{Message: message, Err: err}
	}
	if name := p.config.Claims.Groups; name != "" && all[name] == nil {
		return Identity{}, &Refusal{Message: fmt.Sprintf("The sign-in provider does not put claim %s into ID tokens, which the command line needs. Tell a cluster admin.", name)}
	}
	return p.config.Claims.identity(p.config.Issuer, all)
}

// CommandLine returns what a program needs to sign a user in: the issuer, the client of the
// command line, empty for none, and the claims that ID tokens must have.
func (p *Provider) CommandLine() (issuer, clientID string, claims []string) {
	required := slices.Collect(maps.Keys(p.config.Claims.Required))
	claims = slices.DeleteFunc(append(required, p.config.Claims.Username, p.config.Claims.Groups), func(name string) bool { return name == "" || name == "sub" })
	slices.Sort(claims)
	return p.config.Issuer, p.config.CommandLine, slices.Compact(claims)
}

// IssuerOf returns the issuer that a token claims to have, without verifying it; empty for
// none.
func IssuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var of struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &of) != nil {
		return ""
	}
	return of.Issuer
}
