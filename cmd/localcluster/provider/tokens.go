package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// refreshLife is how long a session can be left alone. Each use of a refresh
// token begins it anew.
const refreshLife = 24 * time.Hour

// refreshRequest is a refresh token that is being used.
type refreshRequest struct{ grant }

var _ op.RefreshTokenRequest = (*refreshRequest)(nil)

func (r *refreshRequest) GetAMR() []string                 { return passwordUsed }
func (r *refreshRequest) GetAudience() []string            { return []string{r.Client} }
func (r *refreshRequest) GetAuthTime() time.Time           { return r.AuthTime }
func (r *refreshRequest) GetClientID() string              { return r.Client }
func (r *refreshRequest) GetScopes() []string              { return r.Scopes }
func (r *refreshRequest) GetSubject() string               { return r.Subject }
func (r *refreshRequest) SetCurrentScopes(scopes []string) { r.Scopes = scopes }

// grantOf is what a token for this request will stand for.
func grantOf(req op.TokenRequest) (grant, error) {
	switch r := req.(type) {
	case *request:
		return grant{
			Chain: r.id, Session: r.session.ID, Subject: r.session.Subject, Client: r.ClientID,
			Scopes: r.Scopes, AuthTime: r.session.AuthTime,
		}, nil
	case *refreshRequest:
		return r.grant, nil
	}
	return grant{}, oidc.ErrUnsupportedGrantType()
}

// CreateAccessToken is for a client that did not ask for offline_access.
func (s *storage) CreateAccessToken(_ context.Context, req op.TokenRequest) (string, time.Time, error) {
	g, err := grantOf(req)
	if err != nil {
		return "", time.Time{}, err
	}
	id := rand.Text()
	g.Expires = s.memory.now().Add(s.life)
	s.memory.change(func(f *memoryFile) { f.Access[id] = g })
	return id, g.Expires, nil
}

// CreateAccessAndRefreshTokens gives out a pair, and spends the refresh token
// that was used for it.
func (s *storage) CreateAccessAndRefreshTokens(_ context.Context, req op.TokenRequest, used string) (string, string, time.Time, error) {
	g, err := grantOf(req)
	if err != nil {
		return "", "", time.Time{}, err
	}
	id, next := rand.Text(), rand.Text()
	now := s.memory.now()
	access, refresh := g, g
	access.Expires, refresh.Expires = now.Add(s.life), now.Add(refreshLife)
	s.memory.change(func(f *memoryFile) {
		if used != "" {
			// A client may ask for fewer scopes once; the right to all stays.
			old, ok := f.Refresh[used]
			if !ok { // somebody else was faster with the same token
				err = oidc.ErrInvalidGrant().WithDescription("the refresh token was already used")
				return
			}
			refresh.Scopes = old.Scopes
			delete(f.Refresh, used)
		}
		f.Access[id], f.Refresh[next] = access, refresh
	})
	return id, next, access.Expires, err
}

// TokenRequestByRefreshToken refuses a token that is spent or unknown, or whose
// user is gone; the client is told invalid_grant.
func (s *storage) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	g, ok := s.memory.refresh(token)
	if !ok {
		return nil, op.ErrInvalidRefreshToken
	}
	if _, ok := s.users.bySubject(g.Subject); !ok {
		s.memory.endChain(g.Chain)
		return nil, errors.New("the user is gone or disabled")
	}
	g.Scopes = slices.Clone(g.Scopes)
	return &refreshRequest{g}, nil
}

// GetRefreshTokenInfo names the user of a refresh token that is to be revoked.
func (s *storage) GetRefreshTokenInfo(_ context.Context, clientID, token string) (string, string, error) {
	g, ok := s.memory.refresh(token)
	if !ok || g.Client != clientID {
		return "", "", op.ErrInvalidRefreshToken
	}
	return g.Subject, token, nil
}

// RevokeToken ends all tokens of the same sign-in. An unknown one is none any
// more, which is what was asked for.
func (s *storage) RevokeToken(_ context.Context, tokenOrID, _, clientID string) *oidc.Error {
	g, ok := s.memory.refresh(tokenOrID)
	if !ok {
		g, ok = s.memory.access(tokenOrID)
	}
	if ok && g.Client == clientID {
		s.memory.endChain(g.Chain)
	}
	return nil
}
