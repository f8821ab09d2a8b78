package provider

import (
	"context"
	"errors"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// supportedClaims are the claims in the discovery document.
var supportedClaims = []string{
	"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "amr", "azp", "sid",
	"name", "preferred_username", "email", "email_verified", "groups",
}

var supportedScopes = []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail, scopeGroups, oidc.ScopeOfflineAccess}

// setClaims sets the claims of the scopes, from the current users file.
func (s *storage) setClaims(info *oidc.UserInfo, subject string, scopes []string) error {
	u, ok := s.users.bySubject(subject)
	if !ok {
		return oidc.ErrAccessDenied().WithDescription("the user was removed or is disabled")
	}
	info.Subject = subject
	for _, scope := range scopes {
		switch scope {
		case oidc.ScopeProfile:
			info.Name, info.PreferredUsername = u.FullName, u.Name
		case oidc.ScopeEmail:
			info.Email, info.EmailVerified = u.Email, true
		case scopeGroups:
			info.AppendClaims("groups", u.allGroups())
		}
	}
	return nil
}

// SetUserinfoFromRequest sets the claims of an ID token.
func (s *storage) SetUserinfoFromRequest(_ context.Context, info *oidc.UserInfo, req op.IDTokenRequest, scopes []string) error {
	switch r := req.(type) {
	case *request:
		info.AppendClaims("sid", r.session.ID)
	case *refreshRequest:
		info.AppendClaims("sid", r.Session)
	}
	return s.setClaims(info, req.GetSubject(), scopes)
}

// SetUserinfoFromToken sets the claims of the userinfo endpoint.
func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, tokenID, subject, _ string) error {
	g, ok := s.memory.access(tokenID)
	if !ok || g.Subject != subject {
		return oidc.ErrAccessDenied().WithDescription("the access token is no longer valid")
	}
	return s.setClaims(info, g.Subject, g.Scopes)
}

// SetUserinfoFromScopes does nothing: SetUserinfoFromRequest replaces it. The
// library calls both.
func (s *storage) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

// SetIntrospectionFromToken refuses: only the client has its tokens, and it does
// not need introspection.
func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errors.New("introspection is not supported")
}
