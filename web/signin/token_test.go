package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/go-jose/go-jose/v4"
)

// Every invalid ID token is refused, also after a successful sign-in, when the
// provider's keys are cached.
func TestInvalidIDTokenIsRefused(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	signedIn(t, party)
	key, other, second := provider.Keys[0], signintest.NewKey(t, "first"), signintest.NewKey(t, "second")
	for name, tc := range map[string]struct {
		spoil func(claims map[string]any)
		sign  func(claims map[string]any) string
		cause string
	}{
		"rp-nonce-invalid":                       {spoil: set("nonce", "another"), cause: "nonce differs"},
		"rp-nonce missing":                       {spoil: set("nonce", nil), cause: "nonce differs"},
		"rp-id_token-issuer-mismatch":            {spoil: set("iss", "https://elsewhere.test"), cause: "different provider"},
		"issuer missing":                         {spoil: set("iss", nil), cause: "different provider"},
		"rp-id_token-sub":                        {spoil: set("sub", nil), cause: "no sub"},
		"rp-id_token-aud":                        {spoil: set("aud", "another"), cause: "expected audience"},
		"audience missing":                       {spoil: set("aud", nil), cause: "expected audience"},
		"several audiences without azp":          {spoil: set("aud", []string{signintest.ClientID, "another"}), cause: "ID token is for"},
		"several audiences, azp of another user": {spoil: set("aud", []string{signintest.ClientID, "another"}, "azp", "another"), cause: "ID token is for"},
		"one audience, azp of another user":      {spoil: set("azp", "another"), cause: "ID token is for"},
		"rp-id_token-iat":                        {spoil: set("iat", nil), cause: "no iat"},
		"expired":                                {spoil: set("exp", time.Now().Add(-time.Minute).Unix()), cause: "expired"},
		"without an end":                         {spoil: set("exp", nil), cause: "expired"},
		"valid only in an hour":                  {spoil: set("nbf", time.Now().Add(time.Hour).Unix()), cause: "not before"},
		"at_hash of another access token":        {spoil: set("at_hash", "Xx1234567890123456789Q"), cause: "access token hash"},

		"rp-id_token-kid-absent-multiple-jwks: none of them signed": {
			sign: func(claims map[string]any) string {
				return signintest.SignWith(jose.JSONWebKey{Key: other.Key}, jose.RS256, claims)
			},
			cause: "verify",
		},
		"unknown kid": {
			sign: func(claims map[string]any) string {
				return signintest.SignWith(jose.JSONWebKey{Key: key.Key, KeyID: "unknown"}, jose.RS256, claims)
			},
			cause: "verify",
		},
		"key of another user under the provider's kid": {
			sign: func(claims map[string]any) string { return signintest.SignWith(other, jose.RS256, claims) }, cause: "verify",
		},
		"rp-id_token-bad-sig-rs256": {
			sign: func(claims map[string]any) string {
				good := signintest.SignWith(key, jose.RS256, claims)
				return spoiled(good, strings.LastIndex(good, ".")+1)
			},
			cause: "verify",
		},
		"claims changed after signing": {
			sign: func(claims map[string]any) string {
				parts := strings.Split(signintest.SignWith(key, jose.RS256, claims), ".")
				claims["email"] = "root@example.com"
				return parts[0] + "." + part(claims) + "." + parts[2]
			},
			cause: "verify",
		},
		"rp-id_token-sig-none": {
			sign: func(claims map[string]any) string {
				return part(map[string]any{"alg": "none"}) + "." + part(claims) + "."
			},
			cause: "malformed jwt",
		},
		"HS256 with the client secret": {
			sign: func(claims map[string]any) string { return hmacSigned(claims, []byte(signintest.ClientSecret)) }, cause: "malformed jwt",
		},
		"HS256 with the public key": {
			sign: func(claims map[string]any) string { return hmacSigned(claims, publicKey(t, key)) }, cause: "malformed jwt",
		},
		"an algorithm that the provider does not name": {
			sign:  func(claims map[string]any) string { return signintest.SignWith(key, jose.PS256, claims) },
			cause: "malformed jwt",
		},
		"nothing of a token": {sign: func(map[string]any) string { return "words of the provider" }, cause: "malformed jwt"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) {
				b.Keys = []jose.JSONWebKey{key, second}
				b.ChangeClaims, b.Sign = tc.spoil, tc.sign
				// The algorithms that a provider offers do not weaken the check.
				b.Metadata = map[string]any{"id_token_signing_alg_values_supported": []string{"none", "HS256", "RS256"}}
			})
			for _, party := range []*signin.Provider{party, console(provider)} {
				_, err := signIn(t, party)
				wantRefused(t, err, tc.cause)
			}
		})
	}
}

func TestRefusingAnAnswerWithoutAnIDToken(t *testing.T) {
	provider := signintest.New(t)
	provider.ChangeTokenResponse = func(answer map[string]any) { delete(answer, "id_token") }
	_, err := signIn(t, console(provider))
	wantRefused(t, err, "no ID token")
}

func TestTakingOtherAlgorithmsThatTheProviderNames(t *testing.T) {
	provider := signintest.New(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	curve := jose.JSONWebKey{Key: private, KeyID: "curve", Algorithm: string(jose.ES256), Use: "sig"}
	provider.Change(func(b *signintest.Behavior) {
		b.Keys = append(b.Keys, curve)
		b.Metadata = map[string]any{"id_token_signing_alg_values_supported": []string{"ES256"}}
	})
	party := console(provider)
	_, err = signIn(t, party)
	wantRefused(t, err, "malformed jwt") // RS256, though its key is published

	provider.Change(func(b *signintest.Behavior) {
		b.Sign = func(claims map[string]any) string { return signintest.SignWith(curve, jose.ES256, claims) }
	})
	got, err := signIn(t, party)
	wantIdentity(t, got, err, ada)
}

// rp-key-rotation-op-sign-key
func TestKeyRotation(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	signedIn(t, party)
	old := provider.Keys[0]
	provider.Change(func(b *signintest.Behavior) { b.Keys = []jose.JSONWebKey{signintest.NewKey(t, "second")} })
	got, err := signIn(t, party)
	wantIdentity(t, got, err, ada)

	provider.Change(func(b *signintest.Behavior) {
		b.Sign = func(claims map[string]any) string { return signintest.SignWith(old, jose.RS256, claims) }
	})
	_, err = signIn(t, party)
	wantRefused(t, err, "verify")
}
