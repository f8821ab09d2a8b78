package provider

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"kuota.dev/kuota/cmd/localcluster/provider/providertest"
)

// serve serves a provider with the sample users until the test ends.
func serve(t *testing.T) (Config, *providertest.Browser) {
	t.Helper()
	dir := t.TempDir()
	users, err := os.ReadFile("../users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"users.yaml": string(users), "client-id": "kuota\n", "client-secret": "s\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Listen: listener.Addr().String(), Users: filepath.Join(dir, "users.yaml"), Dir: dir, Life: time.Minute,
		Log: slog.New(slog.DiscardHandler)}
	h, err := handler(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	srv.Start()
	t.Cleanup(srv.Close)
	return c, providertest.New(t, c.issuer(), "kuota", "s")
}

func challenge() oauth2.AuthCodeOption { return oauth2.S256ChallengeOption("v") }

func prompt(p string) oauth2.AuthCodeOption { return oauth2.SetAuthURLParam("prompt", p) }

func TestIDTokenAndUserinfoHaveTheClaims(t *testing.T) {
	_, b := serve(t)
	tok := b.SignIn("linus", "kuota-linus")
	id := b.IDToken(tok)
	info, err := b.Userinfo(tok)
	if err != nil {
		t.Fatal(err)
	}
	if id.Nonce != "the-nonce" {
		t.Errorf("the nonce is %q", id.Nonce)
	}
	for where, c := range map[string]providertest.Claims{"ID token": id, "userinfo": info} {
		if c.Subject == "" || c.Name != "Linus Pauling" || c.Username != "linus" || c.Email != "linus@example.com" ||
			!c.EmailVerified || strings.Join(c.Groups, " ") != "vision-team language-team" {
			t.Errorf("%s: %+v", where, c)
		}
	}
}

func TestIDTokenWith5000Groups(t *testing.T) {
	_, b := serve(t)
	if got := len(b.IDToken(b.SignIn("many", "kuota-many")).Groups); got != 5001 {
		t.Errorf("%d groups", got)
	}
}

func TestBrowserStaysSignedIn(t *testing.T) {
	_, b := serve(t)
	if p := b.Authorize(challenge(), prompt("none")); p.Back.Get("error") != "login_required" {
		t.Errorf("without a session, the response is %v", p.Back)
	}
	first := b.IDToken(b.SignIn("ada", "kuota-ada"))
	for name, c := range map[string]struct {
		option oauth2.AuthCodeOption
		form   bool
	}{
		"no prompt":            {challenge(), false},
		"prompt=none":          {prompt("none"), false},
		"prompt=login":         {prompt("login"), true},
		"max_age exceeded":     {oauth2.SetAuthURLParam("max_age", "0"), true},
		"max_age not exceeded": {oauth2.SetAuthURLParam("max_age", "600"), false},
		"select_account":       {prompt("select_account"), true},
		"a login hint":         {oauth2.SetAuthURLParam("login_hint", "grace"), false},
		"a locale":             {oauth2.SetAuthURLParam("ui_locales", "de"), false},
	} {
		if p := b.Authorize(challenge(), c.option); p.Form() != c.form || !c.form && p.Back.Get("code") == "" {
			t.Errorf("%s: form is %t, sent back with %v", name, p.Form(), p.Back)
		}
	}
	// Another user signs in with the same browser.
	p := b.Submit(b.Authorize(challenge(), prompt("login")), "grace", "kuota-grace")
	if p.Back.Get("code") == "" {
		t.Fatalf("grace is not signed in: %s", p.Alert())
	}
	if second := b.IDToken(b.SignIn("", "")); second.Username != "grace" || second.Subject == first.Subject {
		t.Errorf("after grace has signed in, the browser is signed in as %+v", second)
	}
}

func TestSignOutEndsTheSessionAndItsTokens(t *testing.T) {
	_, b := serve(t)
	tok := b.SignIn("ada", "kuota-ada")
	p := b.SignOut(url.Values{"id_token_hint": {tok.Extra("id_token").(string)}, "state": {"s"},
		"post_logout_redirect_uri": {"http://127.0.0.1:4711/auth/signed-out"}})
	if p.URL.Path != "/auth/signed-out" || p.Back.Get("state") != "s" {
		t.Errorf("sent to %s (%d): %s", p.URL, p.Status, p.Body)
	}
	if !b.Authorize(challenge()).Form() {
		t.Error("the browser is still signed in")
	}
	if _, err := b.Refresh(tok.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("the refresh token: %v", err)
	}
	b.SignIn("ada", "kuota-ada")
	if p := b.SignOut(url.Values{"client_id": {"kuota"}, "post_logout_redirect_uri": {"https://localhost:4711/auth/signed-out"}}); p.URL.Host != "localhost:4711" {
		t.Errorf("by client_id: sent to %s (%d): %s", p.URL, p.Status, p.Body)
	}
	if p := b.SignOut(url.Values{"client_id": {"kuota"}, "post_logout_redirect_uri": {"https://example.com/auth/signed-out"}}); p.Status != http.StatusBadRequest {
		t.Errorf("to another host: sent to %s (%d)", p.URL, p.Status)
	}
	if p := b.SignOut(nil); p.Status != http.StatusOK || !strings.Contains(p.Body, "signed out") {
		t.Errorf("without a destination: %d\n%s", p.Status, p.Body)
	}
}
