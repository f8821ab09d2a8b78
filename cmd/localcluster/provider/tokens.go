package provider

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// refreshLife is the lifetime of a refresh token. Each use issues a new one.
const refreshLife = 24 * time.Hour

// refreshRequest is the use of a refresh token.
type refreshRequest struct{ grant }

var _ op.RefreshTokenRequest = (*refreshRequest)(nil)

func (r *refreshRequest) GetAMR() []string                 { return passwordUsed }
func (r *refreshRequest) GetAudience() []string            { return []string{r.Client} }
func (r *refreshRequest) GetAuthTime() time.Time           { return r.AuthTime }
func (r *refreshRequest) GetClientID() string              { return r.Client }
func (r *refreshRequest) GetScopes() []string              { return r.Scopes }
func (r *refreshRequest) GetSubject() string               { return r.Subject }
func (r *refreshRequest) SetCurrentScopes(scopes []string) { r.Scopes = scopes }

// grantOf returns the grant of a token for this request.
func grantOf(req op.TokenRequest) (grant, error) {
	switch r := req.(type) {
	case *request:
		return grant{
			Chain: r.id, Session: r.session.ID, Subject: r.session.Subject, Client: r.ClientID,
			Scopes: r.Scopes, AuthTime: r.session.AuthTime,
		}, nil
	case *refreshRequest:
		return r.grant, nil
	case *op.DeviceAuthorizationState:
		// Without the session: the terminal stays signed in when the browser signs out.
		return grant{Chain: rand.Text(), Subject: r.Subject, Client: r.ClientID, Scopes: r.Scopes, AuthTime: r.AuthTime}, nil
	}
	return grant{}, oidc.ErrUnsupportedGrantType()
}

// CreateAccessToken issues a token to a client that did not request
// offline_access.
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

// CreateAccessAndRefreshTokens issues a pair, and invalidates the refresh token
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
			// A client may request fewer scopes once; later tokens may have all.
			old, ok := f.Refresh[used]
			if !ok { // a concurrent request used the token
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

// TokenRequestByRefreshToken returns the grant of a refresh token. The client gets
// invalid_grant for a used or unknown one, and for one of a removed user.
func (s *storage) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	g, ok := s.memory.refresh(token)
	if !ok {
		return nil, op.ErrInvalidRefreshToken
	}
	if _, ok := s.users.bySubject(g.Subject); !ok {
		s.memory.endChain(g.Chain)
		return nil, errors.New("the user was removed or is disabled")
	}
	g.Scopes = slices.Clone(g.Scopes)
	return &refreshRequest{g}, nil
}

// GetRefreshTokenInfo returns the user of a refresh token that is to be revoked.
func (s *storage) GetRefreshTokenInfo(_ context.Context, clientID, token string) (string, string, error) {
	g, ok := s.memory.refresh(token)
	if !ok || g.Client != clientID {
		return "", "", op.ErrInvalidRefreshToken
	}
	return g.Subject, token, nil
}

// RevokeToken deletes all tokens of the same sign-in. An unknown token is no error:
// it is invalid already.
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

// keys sign ID tokens and encrypt access tokens. They are in a file, so that
// tokens stay valid when the provider restarts.
type keys struct {
	Sign   jose.JSONWebKey `json:"sign"` // RSA: clients have to support RS256 only
	Crypto [32]byte        `json:"crypto"`
}

func loadKeys(path string) (*keys, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return createKeys(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	var k keys
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", path, err)
	}
	return &k, nil
}

func createKeys(path string) (*keys, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	k := &keys{Sign: jose.JSONWebKey{KeyID: rand.Text(), Key: key}}
	_, _ = rand.Read(k.Crypto[:]) // never fails
	return k, writeJSON(path, k)
}

// writeJSON replaces a file atomically. Only the owner can read it.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// signingKey and publicKey implement the library's interfaces of a key pair.
type (
	signingKey struct{ *keys }
	publicKey  struct{ *keys }
)

var (
	_ op.SigningKey = signingKey{}
	_ op.Key        = publicKey{}
)

func (k signingKey) ID() string                                  { return k.Sign.KeyID }
func (k signingKey) Key() any                                    { return k.Sign.Key }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }

func (k publicKey) ID() string                         { return k.Sign.KeyID }
func (k publicKey) Key() any                           { return k.Sign.Public().Key }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
