package signin_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/go-jose/go-jose/v4"
)

// Names with rp- are those of the OpenID conformance tests for relying parties.

func TestSignInVariantsOfTheSpecification(t *testing.T) {
	provider := signintest.New(t)
	key := provider.Keys[0]
	nameless := func(claims map[string]any) string {
		return signintest.SignWith(jose.JSONWebKey{Key: key.Key}, jose.RS256, claims)
	}
	for name, tc := range map[string]struct {
		behave func(*signintest.Behavior)
		config func(*signin.Config)
		answer func(url.Values)
		want   signin.Identity
	}{
		"rp-response_type-code: groups come sorted, each once": {
			behave: func(b *signintest.Behavior) {
				b.ChangeClaims = func(claims map[string]any) { claims["groups"] = []string{"zeta", "alpha", "zeta", "Alpha"} }
			},
			want: signin.Identity{Subject: "1234", User: "ada@example.com", Groups: []string{"Alpha", "alpha", "zeta"}},
		},
		"rp-scope-userinfo-claims: what the ID token lacks comes from userinfo": {
			behave: func(b *signintest.Behavior) {
				b.ChangeClaims = func(claims map[string]any) { delete(claims, "groups"); delete(claims, "email") }
			},
			want: ada,
		},
		"rp-scope-userinfo-claims: what the ID token has stays": {
			behave: func(b *signintest.Behavior) {
				b.ChangeClaims = func(claims map[string]any) { delete(claims, "email") }
				b.UserInfo = func() map[string]any {
					return map[string]any{"sub": "1234", "email": "ada@example.com", "groups": []string{"not-signed"}}
				}
			},
			want: ada,
		},
		"no group anywhere": {
			behave: func(b *signintest.Behavior) {
				b.Claims = map[string]any{"sub": "1234", "email": "ada@example.com"}
			},
			want: signin.Identity{Subject: "1234", User: "ada@example.com"},
		},
		"no userinfo endpoint": {
			behave: func(b *signintest.Behavior) {
				b.Claims = map[string]any{"sub": "1234", "email": "ada@example.com"}
				b.Metadata = map[string]any{"userinfo_endpoint": ""}
			},
			want: signin.Identity{Subject: "1234", User: "ada@example.com"},
		},
		"rp-id_token-kid-absent-single-jwks": {
			behave: func(b *signintest.Behavior) { b.Sign = nameless },
			want:   ada,
		},
		"rp-id_token-kid-absent-multiple-jwks: one of them signed": {
			behave: func(b *signintest.Behavior) {
				b.Keys = []jose.JSONWebKey{signintest.NewKey(t, "other"), key}
				b.Sign = nameless
			},
			want: ada,
		},
		"several audiences, made for this console": {
			behave: func(b *signintest.Behavior) {
				b.ChangeClaims = func(claims map[string]any) {
					claims["aud"], claims["azp"] = []string{"other", signintest.ClientID}, signintest.ClientID
				}
			},
			want: ada,
		},
		"at_hash right": {
			behave: func(b *signintest.Behavior) {
				b.ChangeTokenResponse = func(answer map[string]any) { answer["access_token"] = "canary-access" }
				b.ChangeClaims = func(claims map[string]any) {
					sum := sha256.Sum256([]byte("canary-access"))
					claims["at_hash"] = base64.RawURLEncoding.EncodeToString(sum[:16])
				}
			},
			want: ada,
		},
		"iss in the answer right": {
			behave: func(b *signintest.Behavior) {
				b.Metadata = map[string]any{"authorization_response_iss_parameter_supported": true}
			},
			answer: func(answer url.Values) { answer.Set("iss", provider.Issuer) },
			want:   ada,
		},
		"rp-token_endpoint-client_secret_basic: the secret is in the header only": {
			behave: func(b *signintest.Behavior) {
				b.Client = func(r *http.Request) bool {
					_, secret, _ := r.BasicAuth()
					return secret == signintest.ClientSecret && !r.PostForm.Has("client_secret")
				}
			},
			want: ada,
		},
		"the secret is in the header where the provider does not say": {
			behave: func(b *signintest.Behavior) {
				b.Metadata = map[string]any{"token_endpoint_auth_methods_supported": nil}
			},
			want: ada,
		},
		"rp-token_endpoint-client_secret_post: the secret is in the body only": {
			behave: func(b *signintest.Behavior) {
				b.Metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
				b.Client = func(r *http.Request) bool {
					return r.PostForm.Get("client_id") == signintest.ClientID && r.PostForm.Get("client_secret") == signintest.ClientSecret && r.Header.Get("Authorization") == ""
				}
			},
			want: ada,
		},
		"a public client names itself and has no secret": {
			config: func(c *signin.Config) { c.ClientSecret = nil },
			behave: func(b *signintest.Behavior) {
				b.Client = func(r *http.Request) bool {
					return r.PostForm.Get("client_id") == signintest.ClientID && !r.PostForm.Has("client_secret") && r.Header.Get("Authorization") == ""
				}
			},
			want: ada,
		},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, tc.behave)
			party := console(provider, tc.config)
			attempt, answer := begin(t, party)
			if tc.answer != nil {
				tc.answer(answer)
			}
			got, err := party.Finish(t.Context(), attempt, answer)
			wantIdentity(t, got, err, tc.want)
			if got.RefreshToken == "" || got.IDToken == "" {
				t.Errorf("refresh token of %d bytes, ID token of %d: want both", len(got.RefreshToken), len(got.IDToken))
			}
		})
	}
}
