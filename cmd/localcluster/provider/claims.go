package provider

import (
	"context"
	"errors"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// supportedClaims is what discovery announces.
var supportedClaims = []string{
	"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "amr", "azp", "sid",
	"name", "preferred_username", "email", "email_verified", "groups",
}

var supportedScopes = []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeEmail, scopeGroups, oidc.ScopeOfflineAccess}

// setClaims fills in what the scopes ask for, as the users file says it now.
func (s *storage) setClaims(info *oidc.UserInfo, subject string, scopes []string) error {
	u, ok := s.users.bySubject(subject)
	if !ok {
		return oidc.ErrAccessDenied().WithDescription("the user is gone or disabled")
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

// SetUserinfoFromRequest fills the ID token.
func (s *storage) SetUserinfoFromRequest(_ context.Context, info *oidc.UserInfo, req op.IDTokenRequest, scopes []string) error {
	switch r := req.(type) {
	case *request:
		info.AppendClaims("sid", r.session.ID)
	case *refreshRequest:
		info.AppendClaims("sid", r.Session)
	}
	return s.setClaims(info, req.GetSubject(), scopes)
}

// SetUserinfoFromToken answers at the userinfo endpoint.
func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, tokenID, subject, _ string) error {
	g, ok := s.memory.access(tokenID)
	if !ok || g.Subject != subject {
		return oidc.ErrAccessDenied().WithDescription("the access token is no longer good")
	}
	return s.setClaims(info, g.Subject, g.Scopes)
}

// SetUserinfoFromScopes is replaced by SetUserinfoFromRequest, and called all the same.
func (s *storage) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

// SetIntrospectionFromToken: nobody but the client holds its tokens, and it has
// no need to ask.
func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errors.New("introspection is not offered")
}
