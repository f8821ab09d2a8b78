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

// What browsers send along.
var (
	// Navigation is sent when a person opens a page.
	Navigation = []string{"Accept", "text/html,application/xhtml+xml", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "same-origin"}
	// Script is sent by the page's script.
	Script = []string{"Accept", "*/*", "X-Requested-With", "fetch", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Sec-Fetch-Site", "same-origin"}
)

// Browser keeps cookies as a browser does. One is for one goroutine.
type Browser struct {
	t       testing.TB
	console *Console
	client  *http.Client
}

// Answer is what came back.
type Response struct {
	*http.Response
	Text string // the body
}

// Browser opens a browser that was never here before.
func (c *Console) Browser(t testing.TB) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} // the certificate is this test's own
	t.Cleanup(transport.CloseIdleConnections)
	return &Browser{t: t, console: c, client: &http.Client{Jar: jar, Transport: transport}}
}

// At is the same browser with its cookies, at another replica.
func (b *Browser) At(c *Console) *Browser {
	return &Browser{t: b.t, console: c, client: b.client}
}

// Open opens an address as a person does: it goes where it is led, through
// the provider and back.
func (b *Browser) Open(path string, headers ...string) Response {
	b.t.Helper()
	return b.do(b.client, http.MethodGet, path, "", append(Navigation[:len(Navigation):len(Navigation)], headers...))
}

// Ask sends one request, with no more headers than these, and stays there. They
// are names and values in turn. A body is a form.
func (b *Browser) Ask(method, path, body string, headers ...string) Response {
	b.t.Helper()
	return b.do(b.staying(), method, path, body, headers)
}

// Post sends a form as a page does.
func (b *Browser) Post(path string, form url.Values) Response {
	b.t.Helper()
	return b.Ask(http.MethodPost, path, form.Encode(), Navigation...)
}

// Stream opens what does not end by itself; the caller closes it.
func (b *Browser) Stream(method, path string, headers ...string) *http.Response {
	b.t.Helper()
	response, err := b.staying().Do(b.request(method, path, "", headers))
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}

// SignIn signs in by the provider.
func (b *Browser) SignIn() *Browser {
	b.t.Helper()
	if answer := b.Open("/auth/login?return=/"); b.Cookie("kuota") == nil {
		b.t.Fatalf("not signed in: %s, %s", answer.Status, answer.Text)
	}
	return b
}

// Cookies are those that it sends to the console.
func (b *Browser) Cookies() []*http.Cookie { return b.client.Jar.Cookies(b.address("/")) }

// Cookie is one of them, by its name without __Host-; nil when there is none.
func (b *Browser) Cookie(name string) *http.Cookie {
	for _, cookie := range b.Cookies() {
		if strings.TrimPrefix(cookie.Name, "__Host-") == name {
			return cookie
		}
	}
	return nil
}

// Keep puts cookies into it, as somebody with access to it could.
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

// staying is the client that follows no redirect.
func (b *Browser) staying() *http.Client {
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
		request.Header[headers[i]] = append(request.Header[headers[i]], headers[i+1]) // as it is written, for those who write oddly
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
