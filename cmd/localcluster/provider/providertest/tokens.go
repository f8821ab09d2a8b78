package providertest

import (
	"context"
	"errors"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Claims are the claims of an ID token or of userinfo.
type Claims struct {
	Subject       string   `json:"sub"`
	Name          string   `json:"name"`
	Username      string   `json:"preferred_username"`
	Email         string   `json:"email"`
	EmailVerified bool     `json:"email_verified"`
	Groups        []string `json:"groups"`
	Nonce         string   `json:"nonce"`
}

// SignIn gets tokens for a user. It submits the form if the provider shows it.
func (b *Browser) SignIn(name, password string, options ...oauth2.AuthCodeOption) *oauth2.Token {
	b.t.Helper()
	verifier := oauth2.GenerateVerifier()
	options = append(options, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", "the-nonce"))
	p := b.Authorize(options...)
	if p.Form() {
		p = b.Submit(p, name, password)
	}
	if p.Back.Get("code") == "" || p.Back.Get("state") != "the-state" {
		b.t.Fatalf("%s was not sent back with a code, but to %s (%d): %s", name, p.URL, p.Status, p.Alert())
	}
	tok, err := b.Exchange(p.Back.Get("code"), verifier)
	if err != nil {
		b.t.Fatalf("exchange of %s's code: %v", name, err)
	}
	return tok
}

// Exchange exchanges a code for tokens.
func (b *Browser) Exchange(code, verifier string) (*oauth2.Token, error) {
	return b.oauth.Exchange(context.Background(), code, oauth2.VerifierOption(verifier))
}

// Refresh uses a refresh token once.
func (b *Browser) Refresh(refreshToken string) (*oauth2.Token, error) {
	return b.oauth.TokenSource(context.Background(), &oauth2.Token{RefreshToken: refreshToken}).Token()
}

// IDToken verifies the ID token and returns its claims.
func (b *Browser) IDToken(tok *oauth2.Token) Claims {
	b.t.Helper()
	raw, _ := tok.Extra("id_token").(string)
	checked, err := b.provider.Verifier(&oidc.Config{ClientID: b.oauth.ClientID}).Verify(context.Background(), raw)
	if err != nil {
		b.t.Fatalf("the ID token: %v", err)
	}
	var c Claims
	if err := checked.Claims(&c); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// Userinfo returns the claims of the userinfo endpoint.
func (b *Browser) Userinfo(tok *oauth2.Token) (Claims, error) {
	var c Claims
	info, err := b.provider.UserInfo(context.Background(), oauth2.StaticTokenSource(tok))
	if err != nil {
		return c, err
	}
	return c, info.Claims(&c)
}

// ErrorCode returns the OAuth error code of a refused token request.
func ErrorCode(err error) string {
	if re, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return re.ErrorCode
	}
	return ""
}
