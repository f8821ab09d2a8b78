package signin_test

import (
	"net/http"
	"testing"

	"kuota.dev/kuota/web/signin"
	"kuota.dev/kuota/web/signin/signintest"

	"github.com/go-jose/go-jose/v4"
)

func TestConfirmIdentity(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	moved := map[string]any{"sub": "1234", "email": "ada@example.com", "groups": []string{"speech-team", "all"}}
	nowMoved := signin.Identity{Subject: "1234", User: "ada@example.com", Groups: []string{"all", "speech-team"}}
	for name, tc := range map[string]struct {
		behave func(*signintest.Behavior)
		want   signin.Identity
	}{
		"nothing changed":    {want: ada},
		"the groups changed": {behave: func(b *signintest.Behavior) { b.Claims = moved }, want: nowMoved},
		"no group is left": {
			behave: func(b *signintest.Behavior) {
				b.Claims = map[string]any{"sub": "1234", "email": "ada@example.com", "groups": []string{}}
			},
			want: signin.Identity{Subject: "1234", User: "ada@example.com", Groups: []string{}},
		},
		"no ID token, so userinfo says who it is": {
			behave: func(b *signintest.Behavior) { b.Claims, b.NoIDToken = moved, true }, want: nowMoved,
		},
		"another name for the same person": {
			behave: func(b *signintest.Behavior) {
				b.Claims = map[string]any{"sub": "1234", "email": "ada.l@example.com", "groups": []string{}}
			},
			want: signin.Identity{Subject: "1234", User: "ada.l@example.com", Groups: []string{}},
		},
		"the provider signs with another key": {
			behave: func(b *signintest.Behavior) { b.Keys = []jose.JSONWebKey{signintest.NewKey(t, "second")} }, want: ada,
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := signedIn(t, party)
			behave(t, provider, tc.behave)
			got, err := party.Refresh(t.Context(), was)
			wantIdentity(t, got, err, tc.want)
			if got.IDToken == "" {
				t.Error("the ID token for sign-out is lost")
			}
			if got.RefreshToken == was.RefreshToken {
				t.Error("the refresh token of before is kept, though the provider gave another")
			}
			again, err := party.Refresh(t.Context(), got)
			wantIdentity(t, again, err, tc.want)
		})
	}
}

func TestRefreshTokenWithoutRotation(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	was := signedIn(t, party)
	behave(t, provider, func(b *signintest.Behavior) {
		b.ChangeTokenResponse = func(answer map[string]any) { delete(answer, "refresh_token") }
	})
	got, err := party.Refresh(t.Context(), was)
	wantIdentity(t, got, err, ada)
	if got.RefreshToken != was.RefreshToken {
		t.Error("the refresh token is lost")
	}
}

func TestRefusingToConfirm(t *testing.T) {
	provider := signintest.New(t)
	other := signintest.NewKey(t, "first")
	for name, tc := range map[string]struct {
		metadata map[string]any
		behave   func(*signintest.Behavior)
		was      func(*signin.Identity)
		cause    string
	}{
		"the provider says no": {behave: func(b *signintest.Behavior) { b.Refuse = true }, cause: "invalid_grant"},
		"no refresh token":     {was: func(who *signin.Identity) { who.RefreshToken = "" }, cause: "no refresh token"},
		"another subject": {
			behave: func(b *signintest.Behavior) { b.ChangeClaims = set("sub", "5678") }, cause: "subject differs",
		},
		"another subject in userinfo, without an ID token": {
			behave: func(b *signintest.Behavior) {
				b.NoIDToken = true
				b.UserInfo = func() map[string]any { return map[string]any{"sub": "5678", "email": "ada@example.com"} }
			},
			cause: "subject differs",
		},
		"rp-userinfo-bad-sub-claim, without an ID token: missing": {
			behave: func(b *signintest.Behavior) {
				b.NoIDToken = true
				b.UserInfo = func() map[string]any { return map[string]any{"email": "ada@example.com"} }
			},
			cause: "another subject",
		},
		"neither ID token nor userinfo": {
			metadata: map[string]any{"userinfo_endpoint": ""},
			behave:   func(b *signintest.Behavior) { b.NoIDToken = true },
			cause:    "claim email is missing",
		},
		"signed by another user": {
			behave: func(b *signintest.Behavior) {
				b.Sign = func(claims map[string]any) string { return signintest.SignWith(other, jose.RS256, claims) }
			},
			cause: "verify",
		},
		"ID token of another issuer":   {behave: func(b *signintest.Behavior) { b.ChangeClaims = set("iss", "https://elsewhere.test") }, cause: "different provider"},
		"ID token for another console": {behave: func(b *signintest.Behavior) { b.ChangeClaims = set("aud", "another") }, cause: "expected audience"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) { b.Metadata = tc.metadata })
			party := console(provider)
			was := signedIn(t, party)
			if tc.was != nil {
				tc.was(&was)
			}
			behave(t, provider, tc.behave)
			_, err := party.Refresh(t.Context(), was)
			wantRefused(t, err, tc.cause)
		})
	}
}

// rp-userinfo-bad-sub-claim, with an ID token.
func TestUserinfoOfAnotherSubjectIsRefused(t *testing.T) {
	provider := signintest.New(t)
	party := console(provider)
	for name, tc := range map[string]struct {
		info  map[string]any
		down  map[string]int
		cause string
	}{
		"another subject": {info: map[string]any{"sub": "5678", "groups": []string{"admins"}}, cause: "another subject"},
		"no subject":      {info: map[string]any{"groups": []string{"admins"}}, cause: "another subject"},
		"no answer to us": {down: map[string]int{"/userinfo": http.StatusForbidden}, cause: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			behave(t, provider, func(b *signintest.Behavior) {
				b.ChangeClaims, b.Fail = set("groups", nil), tc.down
				b.UserInfo = func() map[string]any { return tc.info }
			})
			_, err := signIn(t, party)
			wantRefused(t, err, tc.cause)
		})
	}
}
