package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Attempt is a sign-in under way. The browser keeps it, sealed, and what comes
// back from the provider must belong to it.
type Attempt struct {
	State    string // told apart from other attempts by it; comes back in the answer
	Nonce    string // comes back in the ID token
	Verifier string // proves to the provider that who began also ends (PKCE, RFC 7636)
}

// Begin returns where the person is sent, and what the answer must belong to.
func (p *Provider) Begin(ctx context.Context) (string, Attempt, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	attempt := Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	address := found.oauth.AuthCodeURL(attempt.State, oidc.Nonce(attempt.Nonce), oauth2.S256ChallengeOption(attempt.Verifier))
	return address, attempt, nil
}

// Finish reads the provider's answer, the query of the callback, and returns
// who signed in.
func (p *Provider) Finish(ctx context.Context, attempt Attempt, answer url.Values) (Identity, error) {
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(attempt.State)) != 1 || len(answer["state"]) != 1 {
		return Identity{}, refuse("This answer belongs to another sign-in. Sign in again.", "state differs")
	}
	found, config, ctx, err := p.endpoint(ctx)
	if err != nil {
		return Identity{}, err
	}
	// RFC 9207: an answer of another provider is told by its issuer.
	if iss := answer["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != p.config.Issuer || len(iss) == 0 && found.metadata.IssInResponse {
		return Identity{}, refuse("The answer came from another sign-in provider. Sign in again.", "iss is %q", iss)
	}
	if problem := answer.Get("error"); problem != "" {
		return Identity{}, refuse(messageForErrorCode(problem), "the provider answers error %q: %q", problem, answer.Get("error_description"))
	}
	if len(answer["code"]) != 1 || answer.Get("code") == "" {
		return Identity{}, refuse("The sign-in provider sent an answer without a code. Sign in again.", "%d codes", len(answer["code"]))
	}
	token, err := config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(attempt.Verifier))
	if err != nil {
		if gone := asUnavailable(err); gone != nil {
			return Identity{}, gone
		}
		return Identity{}, &Refusal{Message: "The sign-in provider rejected the code: it may be used or expired. Sign in again.", Err: withoutResponseBody(err)}
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, refuse("The sign-in provider did not report who you are. Tell a cluster admin.", "the token answer has no ID token")
	}
	return p.verify(ctx, found, token, raw, func(id *oidc.IDToken) error {
		if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(attempt.Nonce)) != 1 {
			return errors.New("nonce differs")
		}
		return nil
	})
}

// Refresh asks whether somebody is still who they were, with their groups of
// now. It returns ErrAway when the provider does not answer, and a Refusal
// when it says no.
func (p *Provider) Refresh(ctx context.Context, was Identity) (Identity, error) {
	if was.RefreshToken == "" {
		return Identity{}, refuse("Sign in again.", "the provider gave no refresh token; it may want the scope %s", oidc.ScopeOfflineAccess)
	}
	if was.Issuer != p.id() {
		return Identity{}, refuse("Sign in again.", "signed in with %q, and the provider is %q now", was.Issuer, p.id())
	}
	found, config, ctx, err := p.endpoint(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: was.RefreshToken}).Token()
	if err != nil {
		if gone := asUnavailable(err); gone != nil {
			return Identity{}, gone
		}
		return Identity{}, &Refusal{Message: "Sign in again.", Err: withoutResponseBody(err)}
	}
	same := func(subject string) error {
		if subject != was.Subject {
			return errors.New("the subject is another one than at sign-in")
		}
		return nil
	}
	// A provider need not send an ID token again; then userinfo says who it is.
	raw, _ := token.Extra("id_token").(string)
	id, err := p.verify(ctx, found, token, raw, func(id *oidc.IDToken) error { return same(id.Subject) })
	if err != nil {
		return Identity{}, err
	}
	if err := same(id.Subject); err != nil {
		return Identity{}, &Refusal{Message: "Sign in again.", Err: err}
	}
	if id.RefreshToken == "" {
		id.RefreshToken = was.RefreshToken
	}
	if id.IDToken == "" {
		id.IDToken = was.IDToken
	}
	return id, nil
}

// verify checks an ID token (OpenID Connect Core 1.0, 3.1.3.7), completes its
// claims from userinfo, and reads the identity. Without an ID token userinfo
// has all claims.
func (p *Provider) verify(ctx context.Context, found *discovered, token *oauth2.Token, raw string, check func(*oidc.IDToken) error) (Identity, error) {
	const message = "The response of the sign-in provider is not valid. Sign in again; if that does not help, tell a cluster admin."
	all, subject := claims{}, ""
	if raw != "" {
		// The verifier does not tell keys that could not be had from a wrong
		// signature, so the signature is looked at first.
		if _, err := found.keys.VerifySignature(ctx, raw); err != nil && asUnavailable(err) != nil {
			return Identity{}, asUnavailable(err)
		}
		id, err := found.verifier.Verify(ctx, raw)
		if err != nil {
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		if err := errors.Join(checkToken(id, p.config.ClientID, token.AccessToken), check(id), id.Claims(&all)); err != nil {
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		subject = id.Subject
	}
	if p.incomplete(all, raw) && found.provider.UserInfoEndpoint() != "" {
		info, err := found.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			if gone := asUnavailable(err); gone != nil {
				return Identity{}, gone
			}
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		if info.Subject == "" || subject != "" && info.Subject != subject {
			return Identity{}, refuse(message, "userinfo is of another subject")
		}
		more := claims{}
		if err := info.Claims(&more); err != nil {
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		subject = info.Subject
		for name, value := range more {
			if _, given := all[name]; !given {
				all[name] = value
			}
		}
	}
	identity, err := p.config.Claims.identity(p.config.Issuer, all)
	if err != nil {
		return Identity{}, err
	}
	identity.Issuer, identity.Subject, identity.RefreshToken = p.id(), subject, token.RefreshToken
	if len(raw) <= maxIDTokenHint {
		identity.IDToken = raw
	}
	return identity, nil
}

// incomplete tells whether a claim that names the person is not in the token.
func (p *Provider) incomplete(have claims, raw string) bool {
	if raw == "" {
		return true
	}
	for _, name := range slices.AppendSeq([]string{p.config.Claims.Username, p.config.Claims.Groups}, maps.Keys(p.config.Claims.Required)) {
		if _, given := have[name]; name != "" && !given {
			return true
		}
	}
	return false
}

// checkToken checks what go-oidc leaves to its users.
func checkToken(id *oidc.IDToken, clientID, accessToken string) error {
	if id.Subject == "" {
		return errors.New("the ID token has no sub")
	}
	if id.IssuedAt.IsZero() || id.IssuedAt.Unix() <= 0 {
		return errors.New("the ID token has no iat")
	}
	var more struct {
		AuthorizedParty string `json:"azp"`
	}
	if err := id.Claims(&more); err != nil {
		return err
	}
	if more.AuthorizedParty != "" && more.AuthorizedParty != clientID || more.AuthorizedParty == "" && len(id.Audience) > 1 {
		return fmt.Errorf("the ID token was made for %q", slices.Concat([]string{more.AuthorizedParty}, id.Audience))
	}
	if id.AccessTokenHash != "" {
		return id.VerifyAccessToken(accessToken)
	}
	return nil
}

// quiet keeps what the provider wrote, which may repeat what was sent, out of
// an error.
func withoutResponseBody(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) {
		return fmt.Errorf("the token endpoint answers %s, error %q", answer.Response.Status, answer.ErrorCode)
	}
	return err
}

// problemInWords says what the provider's error code means (RFC 6749, 4.1.2.1,
// OpenID Connect Core 1.0, 3.1.2.6).
func messageForErrorCode(code string) string {
	switch code {
	case "access_denied":
		return "Sign-in was canceled, or your account has no access to this console."
	case "temporarily_unavailable", "server_error":
		return "The sign-in provider cannot sign you in now. Try again in a moment."
	case "login_required", "interaction_required", "consent_required", "account_selection_required":
		return "The sign-in provider wants you to sign in again."
	}
	return "The sign-in provider rejected the sign-in. Tell a cluster admin."
}
