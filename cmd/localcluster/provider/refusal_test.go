package provider

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"kuota.dev/kuota/cmd/localcluster/provider/providertest"
)

func TestFormShowsErrors(t *testing.T) {
	c, b := serve(t)
	form := b.Authorize(challenge())
	for _, want := range []string{"<title>Sign in · sample provider</title>", `<label for="username">`, `<label for="password">`,
		`<button type="submit">Sign in</button>`, "kuota-grace", "Member of team Language"} {
		if !strings.Contains(form.Body, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
	p := b.Submit(form, "ada<b>", "guess")
	if p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Alert(), "wrong") {
		t.Errorf("a wrong password: %d, %q", p.Status, p.Alert())
	}
	if !strings.Contains(p.Body, `value="ada&lt;b&gt;"`) {
		t.Error("the typed name is lost")
	}
	disable(t, c, "ada")
	if p := b.Submit(p, "ada", "kuota-ada"); !strings.Contains(p.Alert(), "disabled") {
		t.Errorf("a disabled user: %d, %q", p.Status, p.Alert())
	}
	if p := b.Submit(p, "grace", "kuota-grace"); p.Back.Get("code") == "" {
		t.Errorf("the form cannot be used again: %d", p.Status)
	}
	form.Body = `name="id" value="made-up"`
	if p := b.Submit(form, "ada", "kuota-ada"); p.Status != http.StatusBadRequest || !strings.Contains(p.Body, "begin again") {
		t.Errorf("an unknown request: %d", p.Status)
	}
}

// disable disables a user in the users file.
func disable(t *testing.T, c Config, name string) {
	t.Helper()
	b, err := os.ReadFile(c.Users)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(b), "- name: "+name+"\n", "- name: "+name+"\n  disabled: true\n", 1)
	if err := os.WriteFile(c.Users, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidAuthorizationRequestsAreRefused(t *testing.T) {
	_, b := serve(t)
	plain := oauth2.SetAuthURLParam("code_challenge", "x")
	for name, options := range map[string][]oauth2.AuthCodeOption{
		"no PKCE":       nil,
		"PKCE in plain": {plain},
		"implicit flow": {challenge(), oauth2.SetAuthURLParam("response_type", "id_token")},
	} {
		if p := b.Authorize(options...); p.Form() || p.Back.Get("error") == "" && p.Status != http.StatusBadRequest {
			t.Errorf("%s: %d at %s", name, p.Status, p.URL)
		}
	}
	if p := b.Authorize(challenge(), oauth2.SetAuthURLParam("redirect_uri", "http://127.0.0.1:1@example.com/auth/callback")); p.Status != http.StatusBadRequest {
		t.Errorf("another host: sent to %s (%d)", p.URL, p.Status)
	}
}

func TestCodeIsValidOnceAndForItsClient(t *testing.T) {
	c, b := serve(t)
	code := func(b *providertest.Browser) string {
		p := b.Authorize(challenge(), prompt("login"))
		return b.Submit(p, "ada", "kuota-ada").Back.Get("code")
	}
	once := code(b)
	if _, err := b.Exchange(once, "v"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Exchange(once, "v"); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("a second time: %v", err)
	}
	if _, err := b.Exchange(code(b), "another verifier"); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("with another verifier: %v", err)
	}
	other := providertest.New(t, c.issuer(), "kuota", "wrong")
	if _, err := other.Exchange(code(b), "v"); providertest.ErrorCode(err) != "invalid_client" {
		t.Errorf("with another secret: %v", err)
	}
	late := code(b)
	disable(t, c, "ada")
	if _, err := b.Exchange(late, "v"); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("after the user was disabled: %v", err)
	}
}

func TestRefreshTokensRotate(t *testing.T) {
	_, b := serve(t)
	first := b.SignIn("ada", "kuota-ada")
	second, err := b.Refresh(first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if second.RefreshToken == first.RefreshToken {
		t.Error("the same refresh token came back")
	}
	if _, err := b.Refresh(first.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("the used one: %v", err)
	}
	if _, err := b.Refresh(second.RefreshToken); err != nil {
		t.Errorf("the new one: %v", err)
	}
}
