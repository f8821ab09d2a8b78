package webtest

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Headers that browsers send.
var (
	// Navigation is sent when the user opens a page.
	Navigation = []string{"Accept", "text/html,application/xhtml+xml", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "same-origin"}
	// Script is sent by the script of a page.
	Script = []string{"Accept", "*/*", "X-Requested-With", "fetch", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Site", "same-origin"}
)

// Browser is an HTTP client with cookies. It is not safe for concurrent use.
type Browser struct {
	t       testing.TB
	console *Console
	client  *http.Client
}

// Response is a response with its body.
type Response struct {
	*http.Response
	Text string // body
}

// Browser returns a new browser without cookies.
func (c *Console) Browser(t testing.TB) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} // the certificate is self-signed
	t.Cleanup(transport.CloseIdleConnections)
	return &Browser{t: t, console: c, client: &http.Client{Jar: jar, Transport: transport}}
}

// At returns the same browser, with its cookies, at another replica.
func (b *Browser) At(c *Console) *Browser {
	return &Browser{t: b.t, console: c, client: b.client}
}

// Open opens an address as a user does: it follows redirects, also to the provider
// and back.
func (b *Browser) Open(path string, headers ...string) Response {
	b.t.Helper()
	return b.do(b.client, http.MethodGet, path, "", append(Navigation[:len(Navigation):len(Navigation)], headers...))
}

// Ask sends one request and follows no redirect. headers are names and values in
// turn. body is a form.
func (b *Browser) Ask(method, path, body string, headers ...string) Response {
	b.t.Helper()
	return b.do(b.withoutRedirects(), method, path, body, headers)
}

// Post submits a form as a page does.
func (b *Browser) Post(path string, form url.Values) Response {
	b.t.Helper()
	return b.Ask(http.MethodPost, path, form.Encode(), Navigation...)
}

// Stream opens a response that does not end; the caller closes it.
func (b *Browser) Stream(method, path string, headers ...string) *http.Response {
	b.t.Helper()
	response, err := b.withoutRedirects().Do(b.request(method, path, "", headers))
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}

// SignIn signs in at the provider.
func (b *Browser) SignIn() *Browser {
	b.t.Helper()
	if answer := b.Open("/auth/login?return=/"); b.Cookie("kuota") == nil {
		b.t.Fatalf("not signed in: %s, %s", answer.Status, answer.Text)
	}
	return b
}

// Cookies returns the cookies that the browser sends to the console.
func (b *Browser) Cookies() []*http.Cookie { return b.client.Jar.Cookies(b.address("/")) }

// Cookie returns one of Cookies by its name without __Host- or __Secure-; nil if there is none.
func (b *Browser) Cookie(name string) *http.Cookie {
	for _, cookie := range b.Cookies() {
		if strings.TrimPrefix(strings.TrimPrefix(cookie.Name, "__Host-"), "__Secure-") == name {
			return cookie
		}
	}
	return nil
}

// SetCookies adds cookies to the browser.
func (b *Browser) SetCookies(cookies ...*http.Cookie) {
	b.client.Jar.SetCookies(b.address("/"), cookies)
}

func (b *Browser) address(path string) *url.URL {
	address, err := url.Parse(path)
	if err == nil && !address.IsAbs() {
		address, err = url.Parse(b.console.URL + path)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return address
}

// withoutRedirects returns a client that follows no redirect.
func (b *Browser) withoutRedirects() *http.Client {
	client := *b.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

func (b *Browser) request(method, path, body string, headers []string) *http.Request {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.address(path).String(), strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" && !slices.Contains(headers, "Content-Type") {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header[headers[i]] = append(request.Header[headers[i]], headers[i+1]) // not canonicalized, for tests of unusual spellings
	}
	return request
}

func (b *Browser) do(client *http.Client, method, path, body string, headers []string) Response {
	b.t.Helper()
	response, err := client.Do(b.request(method, path, body, headers))
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return Response{response, string(text)}
}
