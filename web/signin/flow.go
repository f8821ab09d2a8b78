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

// Attempt is a pending sign-in. The caller stores it in the browser, encrypted; the
// response of the provider must match it.
type Attempt struct {
	State    string // identifies the attempt; repeated in the response
	Nonce    string // repeated in the ID token
	Verifier string // proves to the provider that this console began the sign-in (PKCE, RFC 7636)
}

// Begin returns the address at the provider that the user signs in at, and the
// attempt that the response must match.
func (p *Provider) Begin(ctx context.Context) (string, Attempt, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	attempt := Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	address := found.oauth.AuthCodeURL(attempt.State, oidc.Nonce(attempt.Nonce), oauth2.S256ChallengeOption(attempt.Verifier))
	return address, attempt, nil
}

// Finish validates the response of the provider, which is the query of the
// callback, and returns the user who signed in.
func (p *Provider) Finish(ctx context.Context, attempt Attempt, response url.Values) (Identity, error) {
	if subtle.ConstantTimeCompare([]byte(response.Get("state")), []byte(attempt.State)) != 1 || len(response["state"]) != 1 {
		return Identity{}, refuse("This answer belongs to another sign-in. Sign in again.", "state differs")
	}
	found, config, ctx, err := p.endpoint(ctx)
	if err != nil {
		return Identity{}, err
	}
	// RFC 9207: the issuer identifies a response of another provider.
	if iss := response["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != p.config.Issuer || len(iss) == 0 && found.metadata.IssInResponse {
		return Identity{}, refuse("The answer came from another sign-in provider. Sign in again.", "iss is %q", iss)
	}
	if problem := response.Get("error"); problem != "" {
		return Identity{}, refuse(messageForErrorCode(problem), "the provider returned error %q: %q", problem, response.Get("error_description"))
	}
	if len(response["code"]) != 1 || response.Get("code") == "" {
		return Identity{}, refuse("The sign-in provider sent an answer without a code. Sign in again.", "%d codes", len(response["code"]))
	}
	token, err := config.Exchange(ctx, response.Get("code"), oauth2.VerifierOption(attempt.Verifier))
	if err != nil {
		if unavailable := asUnavailable(err); unavailable != nil {
			return Identity{}, unavailable
		}
		return Identity{}, &Refusal{Message: "The sign-in provider rejected the code: it may be used or expired. Sign in again.", Err: withoutResponseBody(err)}
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, refuse("The sign-in provider did not report who you are. Tell a cluster admin.", "the token response has no ID token")
	}
	return p.verify(ctx, found, token, raw, func(id *oidc.IDToken) error {
		if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(attempt.Nonce)) != 1 {
			return errors.New("nonce differs")
		}
		return nil
	})
}

// Refresh confirms an identity with its refresh token, and returns it with the
// current groups and, possibly, another refresh token. It returns an error that
// wraps ErrUnavailable if the provider does not answer, and a Refusal if the
// provider rejects the user.
func (p *Provider) Refresh(ctx context.Context, before Identity) (Identity, error) {
	if before.RefreshToken == "" {
		return Identity{}, refuse("Sign in again.", "the provider issued no refresh token; it may require the scope %s", oidc.ScopeOfflineAccess)
	}
	if before.Issuer != p.id() {
		return Identity{}, refuse("Sign in again.", "signed in with %q, the provider is now %q", before.Issuer, p.id())
	}
	found, config, ctx, err := p.endpoint(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: before.RefreshToken}).Token()
	if err != nil {
		if unavailable := asUnavailable(err); unavailable != nil {
			return Identity{}, unavailable
		}
		return Identity{}, &Refusal{Message: "Sign in again.", Err: withoutResponseBody(err)}
	}
	same := func(subject string) error {
		if subject != before.Subject {
			return errors.New("the subject differs from the one at sign-in")
		}
		return nil
	}
	// A provider may send no ID token here; verify uses userinfo then.
	raw, _ := token.Extra("id_token").(string)
	id, err := p.verify(ctx, found, token, raw, func(id *oidc.IDToken) error { return same(id.Subject) })
	if err != nil {
		return Identity{}, err
	}
	if err := same(id.Subject); err != nil {
		return Identity{}, &Refusal{Message: "Sign in again.", Err: err}
	}
	if id.RefreshToken == "" {
		id.RefreshToken = before.RefreshToken
	}
	if id.IDToken == "" {
		id.IDToken = before.IDToken
	}
	return id, nil
}

// verify validates an ID token (OpenID Connect Core 1.0, 3.1.3.7), adds missing
// claims from userinfo, and returns the identity. raw is "" without an ID token:
// then userinfo provides all claims.
func (p *Provider) verify(ctx context.Context, found *discovered, token *oauth2.Token, raw string, check func(*oidc.IDToken) error) (Identity, error) {
	const message = "The response of the sign-in provider is not valid. Sign in again; if that does not help, tell a cluster admin."
	all, subject, twoEmails := claims{}, "", false
	if raw != "" {
		// The verifier does not distinguish keys that could not be fetched from an
		// invalid signature, so the signature is verified first.
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
			if unavailable := asUnavailable(err); unavailable != nil {
				return Identity{}, unavailable
			}
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		if info.Subject == "" || subject != "" && info.Subject != subject {
			return Identity{}, refuse(message, "userinfo has another subject")
		}
		more := claims{}
		if err := info.Claims(&more); err != nil {
			return Identity{}, &Refusal{Message: message, Err: err}
		}
		subject = info.Subject
		if here, there := all.text("email"), more.text("email"); here != "" && there != "" {
			twoEmails = here != there
		}
		for name, value := range more {
			if _, ok := all[name]; !ok {
				all[name] = value
			}
		}
	}
	identity, err := p.config.Claims.identity(p.config.Issuer, all)
	if err != nil {
		return Identity{}, err
	}
	identity.Issuer, identity.Subject, identity.RefreshToken = p.id(), subject, token.RefreshToken
	if twoEmails { // email_verified may be about the other one
		identity.Email = ""
	}
	if len(raw) <= maxIDTokenHint {
		identity.IDToken = raw
	}
	return identity, nil
}

// incomplete reports whether a claim that the identity needs is missing.
func (p *Provider) incomplete(have claims, raw string) bool {
	if raw == "" {
		return true
	}
	for _, name := range slices.AppendSeq([]string{p.config.Claims.Username, p.config.Claims.Groups}, maps.Keys(p.config.Claims.Required)) {
		if _, ok := have.get(name); name != "" && !ok {
			return true
		}
	}
	return false
}

// checkToken makes the checks that go-oidc leaves to its callers.
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
		return fmt.Errorf("the ID token is for %q", slices.Concat([]string{more.AuthorizedParty}, id.Audience))
	}
	if id.AccessTokenHash != "" {
		return id.VerifyAccessToken(accessToken)
	}
	return nil
}

// withoutResponseBody removes the response body from err: it may repeat secrets of
// the request.
func withoutResponseBody(err error) error {
	var response *oauth2.RetrieveError
	if errors.As(err, &response) {
		return fmt.Errorf("the token endpoint returned %s, error %q", response.Response.Status, response.ErrorCode)
	}
	return err
}

// messageForErrorCode returns the message for an error code of the provider (RFC
// 6749, 4.1.2.1; OpenID Connect Core 1.0, 3.1.2.6).
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
