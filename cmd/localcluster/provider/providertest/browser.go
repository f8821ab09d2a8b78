package providertest

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Browser is a browser together with the client that redirects it.
type Browser struct {
	t        *testing.T
	http     *http.Client
	oauth    oauth2.Config
	provider *oidc.Provider
	issuer   string
}

// Callback is the redirect URI of the client. Nothing listens there.
const Callback = "http://127.0.0.1:4711/auth/callback"

// New returns a browser without cookies. A client without a secret is public.
func New(t *testing.T, issuer, clientID, secret string) *Browser {
	t.Helper()
	provider, err := oidc.NewProvider(context.Background(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	jar, _ := cookiejar.New(nil) // fails for no options
	return &Browser{t: t, provider: provider, issuer: issuer,
		http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		oauth: oauth2.Config{ClientID: clientID, ClientSecret: secret, Endpoint: endpoint, RedirectURL: Callback,
			Scopes: []string{"openid", "profile", "email", "groups", "offline_access"}},
	}
}

// Page is the result of a request after its redirects: a page of the provider, or
// a redirect to the client with the query Back.
type Page struct {
	Status int
	Body   string
	URL    *url.URL
	Back   url.Values
}

var requestField = regexp.MustCompile(`name="id" value="([^"]+)"`)

// Form reports whether the page has the sign-in form.
func (p Page) Form() bool { return requestField.MatchString(p.Body) }

// Alert returns the error on the page, or the empty string.
func (p Page) Alert() string {
	m := regexp.MustCompile(`role="alert"[^>]*>([^<]*)<`).FindStringSubmatch(p.Body)
	if m == nil {
		return ""
	}
	return m[1]
}

// Authorize sends the browser to the provider.
func (b *Browser) Authorize(options ...oauth2.AuthCodeOption) Page {
	b.t.Helper()
	return b.get(b.oauth.AuthCodeURL("the-state", options...))
}

// Submit fills in the form of the page.
func (b *Browser) Submit(p Page, name, password string) Page {
	b.t.Helper()
	m := requestField.FindStringSubmatch(p.Body)
	if m == nil {
		b.t.Fatalf("no form on the page (%d):\n%s", p.Status, p.Body)
	}
	resp, err := b.http.PostForm(p.URL.Scheme+"://"+p.URL.Host+"/signin", url.Values{"id": {m[1]}, "username": {name}, "password": {password}})
	return b.follow(resp, err)
}

// SignOut sends the browser to the end_session endpoint.
func (b *Browser) SignOut(query url.Values) Page {
	b.t.Helper()
	var found struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := b.provider.Claims(&found); err != nil {
		b.t.Fatal(err)
	}
	return b.get(found.EndSession + "?" + query.Encode())
}

func (b *Browser) get(address string) Page {
	b.t.Helper()
	resp, err := b.http.Get(address)
	return b.follow(resp, err)
}

// follow follows redirects within the provider.
func (b *Browser) follow(resp *http.Response, err error) Page {
	b.t.Helper()
	for range 5 {
		if err != nil {
			b.t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		to, none := resp.Location()
		if none != nil {
			return Page{Status: resp.StatusCode, Body: string(body), URL: resp.Request.URL}
		}
		if !strings.HasPrefix(to.String(), b.issuer+"/") {
			return Page{Status: resp.StatusCode, URL: to, Back: to.Query()}
		}
		resp, err = b.http.Get(to.String())
	}
	b.t.Fatal("too many redirects")
	return Page{}
}
