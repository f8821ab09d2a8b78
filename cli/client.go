package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// answerLimit bounds the answer of a console, in bytes: a year of usage of 1,000 teams.
	answerLimit = 1 << 30
	timeout     = 5 * time.Minute
)

// client sends requests to one console.
type client struct {
	server *url.URL
	token  func(ctx context.Context) (string, error) // empty for a console without sign-in
	http   *http.Client
}

// serverOf returns the address of a console.
func serverOf(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("which console? Set --server or KUOTA_SERVER, such as https://kuota.example.com")
	}
	server, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, fmt.Errorf("%q is no address of a console; write it as https://kuota.example.com", text)
	}
	if server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, fmt.Errorf("%s has no encryption, and a token is secret; use https", text)
	}
	return server, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// transport returns the transport of requests, which trusts the CAs of a file too.
func transport(caFile string) (http.RoundTripper, error) {
	if caFile == "" {
		return http.DefaultTransport, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", caFile)
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return own, nil
}

// noRedirects keeps a token from being sent elsewhere.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// api is where the paths of the API begin.
const api = "/api/v1"

// get returns the answer of an address of the console.
func (c *client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	response, err := c.send(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return c.read(response)
}

// read returns the body of an answer.
func (c *client) read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("the answer of %s ended early: %w", c.server.Host, err)
	}
	return body, nil
}

// call sends a request to the API with a body as JSON, nil for none, and reads the answer into a
// pointer.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	response, err := c.send(ctx, method, api+path, query, sent)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := c.read(response)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the answer is no JSON; is this the address of a console? %w", err)
	}
	return nil
}

// send sends a request, and returns the answer if it is no error.
func (c *client) send(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	address := *c.server
	address.Path += path
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, address.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, text/csv")
	request.Header.Set("User-Agent", "kuota-cli")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost && (path == api+"/allocations" || strings.HasPrefix(path, api+"/teams/") && strings.HasSuffix(path, "/tasks")) {
		request.Header.Set("Idempotency-Key", rand.Text()) // the transport may repeat it
	}
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer response.Body.Close()
	text, err := c.read(response)
	if err != nil {
		return nil, err
	}
	return nil, problemOf(response, text)
}

// problem is an answer that the console refused, with what is wrong for the user.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// isNotFound reports whether the console answered that there is no such thing.
func isNotFound(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.status == http.StatusNotFound
}

// problemOf returns the error of an answer: of the API (RFC 9457), or of a file of a page.
func problemOf(response *http.Response, body []byte) error {
	var sent struct {
		Error, Detail string
		Errors        []struct{ Field, Message string }
	}
	_ = json.Unmarshal(body, &sent)
	text := cmp.Or(sent.Detail, sent.Error, "the console answered "+response.Status)
	for _, f := range sent.Errors {
		text += "\n  " + strings.TrimPrefix(f.Field+": "+f.Message, ": ")
	}
	if response.StatusCode == http.StatusUnauthorized && !strings.Contains(text, "kuota login") {
		text += " Sign in with kuota login, or set --token."
	}
	return &problem{response.StatusCode, cleanLines(text)}
}

// decode reads an answer with exact numbers.
func decode(body []byte) (value any, err error) {
	if err := readNumbers(string(body), &value); err != nil {
		return nil, fmt.Errorf("the answer is no JSON; is this the address of a console? %w", err)
	}
	return value, nil
}

// readNumbers reads JSON into a pointer, with its numbers as they are written.
func readNumbers(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
