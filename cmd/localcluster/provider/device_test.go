package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/oauth2"

	"kuota.dev/kuota/cmd/localcluster/provider/providertest"
)

// terminal serves a provider, and returns a browser for kuota login.
func terminal(t *testing.T) (Config, *providertest.Browser) {
	t.Helper()
	c, _ := serve(t)
	return c, providertest.New(t, c.issuer(), CommandLineID, "")
}

func start(t *testing.T, b *providertest.Browser) *oauth2.DeviceAuthResponse {
	t.Helper()
	d, err := b.Device()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// token posts to the token endpoint once, and returns the status and the error code
// of the response.
func token(t *testing.T, c Config, form url.Values) (int, string) {
	t.Helper()
	resp, err := http.PostForm(c.issuer()+"/oauth/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Error string }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body.Error
}

// poll exchanges a device code once, and returns the error code.
func poll(t *testing.T, c Config, client, code string) string {
	t.Helper()
	_, problem := token(t, c, url.Values{"client_id": {client}, "device_code": {code},
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}})
	return problem
}

func TestDeviceFlow(t *testing.T) {
	c, b := terminal(t)
	d := start(t, b)
	if got := poll(t, c, CommandLineID, d.DeviceCode); got != "authorization_pending" {
		t.Errorf("before the confirmation: %q", got)
	}
	if len(d.UserCode) != 9 || d.VerificationURI != c.issuer()+"/device" || time.Until(d.Expiry) > deviceLife {
		t.Errorf("the device authorization is %+v", d)
	}
	p := b.OpenDevice(d)
	for _, want := range []string{`name="user_code" value="` + d.UserCode + `"`, `name="username"`, "kuota-grace"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("the page does not contain %s:\n%s", want, p.Body)
		}
	}
	if got := poll(t, c, CommandLineID, d.DeviceCode); got != "authorization_pending" {
		t.Errorf("the page alone confirms the code: %q", got)
	}
	// As typed by hand.
	p = b.ConfirmDevice(" "+strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " ")), "linus", "kuota-linus")
	if p.Status != http.StatusOK || !strings.Contains(p.Body, "You are signed in. Return to the terminal.") {
		t.Fatalf("the confirmation: %d\n%s", p.Status, p.Body)
	}
	if p := b.ConfirmDevice(d.UserCode, "ada", "kuota-ada"); !strings.Contains(p.Alert(), "already used") {
		t.Errorf("a second confirmation: %d, %q", p.Status, p.Alert())
	}
	tok, err := b.DeviceToken(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if id := b.IDToken(tok); id.Username != "linus" || id.Email != "linus@example.com" || strings.Join(id.Groups, " ") != "vision-team language-team" {
		t.Errorf("the ID token has %+v", id)
	}
	if info, err := b.Userinfo(tok); err != nil || info.Email != "linus@example.com" {
		t.Errorf("userinfo: %+v, %v", info, err)
	}
	if got := poll(t, c, CommandLineID, d.DeviceCode); got != "expired_token" {
		t.Errorf("the device code a second time: %q", got)
	}
}

func TestDeviceRefreshTokensRotateAndSurviveSignOut(t *testing.T) {
	c, b := terminal(t)
	d := start(t, b)
	b.ConfirmDevice(d.UserCode, "ada", "kuota-ada")
	first, err := b.DeviceToken(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	b.SignOut(nil)
	second, err := b.Refresh(first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if id := b.IDToken(second); id.Email != "ada@example.com" || strings.Join(id.Groups, " ") != "vision-team" {
		t.Errorf("the refreshed ID token has %+v", id)
	}
	if _, err := b.Refresh(first.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("the used one: %v", err)
	}
	if _, err := providertest.New(t, c.issuer(), "kuota", "s").Refresh(second.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("by the console: %v", err)
	}
	disable(t, c, "ada")
	if _, err := b.Refresh(second.RefreshToken); providertest.ErrorCode(err) != "invalid_grant" {
		t.Errorf("of a disabled user: %v", err)
	}
}

func TestSessionConfirmsDevice(t *testing.T) {
	c, b := terminal(t)
	b.ConfirmDevice("", "ada", "kuota-ada") // the code is wrong, but the user is signed in
	d := start(t, b)
	p := b.OpenDevice(d)
	if !strings.Contains(p.Body, "You are signed in as Ada") || strings.Contains(p.Body, `name="password"`) {
		t.Errorf("the page with a session:\n%s", p.Body)
	}
	d.VerificationURIComplete += "&prompt=login"
	if p := b.OpenDevice(d); !strings.Contains(p.Body, `name="password"`) {
		t.Errorf("the page for another user:\n%s", p.Body)
	}
	if p := b.ConfirmDevice(d.UserCode, "", ""); p.Status != http.StatusOK {
		t.Fatalf("the confirmation: %d, %s", p.Status, p.Alert())
	}
	disable(t, c, "ada")
	if got := poll(t, c, CommandLineID, d.DeviceCode); got != "access_denied" {
		t.Errorf("after the user was disabled: %q", got)
	}
}

func TestDeviceFormShowsErrors(t *testing.T) {
	c, b := terminal(t)
	d := start(t, b)
	for name, p := range map[string]providertest.Page{
		"wrong":           b.ConfirmDevice(d.UserCode, "ada", "guess"),
		"Enter your user": b.ConfirmDevice(d.UserCode, "", ""),
	} {
		if p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Alert(), name) || !strings.Contains(p.Body, d.UserCode) {
			t.Errorf("%s: %d, %q", name, p.Status, p.Alert())
		}
	}
	p := b.ConfirmDevice("<b>-AAAA", "ada", "kuota-ada")
	if p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Alert(), "This code is wrong") || !strings.Contains(p.Body, `value="&lt;b&gt;-AAAA"`) {
		t.Errorf("a wrong code: %d\n%s", p.Status, p.Body)
	}
	for header, value := range map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1"} {
		req, err := http.NewRequest(http.MethodPost, c.issuer()+"/device", strings.NewReader(
			url.Values{"user_code": {d.UserCode}, "username": {"ada"}, "password": {"kuota-ada"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(header, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("a page of another port (%s): %d", header, resp.StatusCode)
		}
	}
	if got := poll(t, c, CommandLineID, d.DeviceCode); got != "authorization_pending" {
		t.Errorf("after refused forms: %q", got)
	}
}

func TestClientsKeepTheirGrants(t *testing.T) {
	c, b := terminal(t)
	d := start(t, b)
	b.ConfirmDevice(d.UserCode, "ada", "kuota-ada")
	if got := poll(t, c, "kuota", d.DeviceCode); got != "expired_token" {
		t.Errorf("a device code of another client: %q", got)
	}
	if got := poll(t, c, CommandLineID, "made-up"); got != "expired_token" {
		t.Errorf("an unknown device code: %q", got)
	}
	console := providertest.New(t, c.issuer(), "kuota", "s")
	for name, b := range map[string]*providertest.Browser{"the console": console, "the console without its secret": providertest.New(t, c.issuer(), "kuota", ""),
		"an unknown client": providertest.New(t, c.issuer(), "other", "")} {
		if _, err := b.Device(); err == nil {
			t.Errorf("%s may use the device flow", name)
		}
	}
	tok := console.SignIn("grace", "kuota-grace")
	code := console.Authorize(challenge()).Back.Get("code")
	for want, form := range map[string]url.Values{
		"invalid_client": {"client_id": {"kuota"}, "grant_type": {"refresh_token"}, "refresh_token": {tok.RefreshToken}},
		"invalid_grant":  {"client_id": {CommandLineID}, "grant_type": {"refresh_token"}, "refresh_token": {tok.RefreshToken}},
	} {
		if status, got := token(t, c, form); status == http.StatusOK || got != want {
			t.Errorf("the console's refresh token by %s without a secret: %d, %q", form.Get("client_id"), status, got)
		}
	}
	form := url.Values{"client_id": {CommandLineID}, "grant_type": {"authorization_code"}, "code": {code},
		"redirect_uri": {providertest.Callback}, "code_verifier": {"v"}}
	if status, got := token(t, c, form); status == http.StatusOK || got != "invalid_grant" {
		t.Errorf("the console's code by the command line: %d, %q", status, got)
	}
	form.Set("client_id", "kuota")
	form.Set("code", console.Authorize(challenge()).Back.Get("code"))
	if status, got := token(t, c, form); status == http.StatusOK || got != "invalid_client" {
		t.Errorf("the console's code without its secret: %d, %q", status, got)
	}
	if p := b.Authorize(challenge()); p.Form() || p.Back.Get("code") != "" {
		t.Errorf("the command line may redirect: %d at %s", p.Status, p.URL)
	}
	if _, err := b.DeviceToken(t.Context(), d); err != nil {
		t.Errorf("the device code was used by refused requests: %v", err)
	}
}

func TestDevicesExpireAndAreBounded(t *testing.T) {
	q, now := &devices{byUser: map[string]*device{}}, time.Now()
	for i := range mostDevices {
		userCode := strings.Map(func(r rune) rune { return r - '0' + 'A' }, fmt.Sprintf("%04d", i))
		if err := q.add(userCode, &device{client: CommandLineID, code: userCode, expires: now.Add(deviceLife)}, now); err != nil {
			t.Fatal(err)
		}
	}
	late := now.Add(deviceLife + time.Second)
	more := &device{client: CommandLineID, code: "more", expires: late.Add(deviceLife)}
	if err := q.add("ZZZZ", more, now); err == nil {
		t.Error("there is no limit")
	}
	if err := q.add("aa-aa", more, now); !errors.Is(err, op.ErrDuplicateUserCode) {
		t.Errorf("a duplicate code: %v", err)
	}
	if _, ok := q.take(CommandLineID, "AAAA", late); ok {
		t.Error("an expired device code is valid")
	}
	if q.confirm("AAAA", session{Subject: "s"}, late) {
		t.Error("an expired user code is valid")
	}
	if err := q.add("ZZZZ", more, late); err != nil || len(q.byUser) != 1 {
		t.Errorf("expired codes are kept: %d, %v", len(q.byUser), err)
	}
}
