package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
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

// get returns the answer of an address of the console.
func (c *client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	address := *c.server
	address.Path += path
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, text/csv")
	request.Header.Set("User-Agent", "kuota-cli")
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
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("the answer of %s ended early: %w", c.server.Host, err)
	}
	if response.StatusCode == http.StatusOK {
		return body, nil
	}
	var problem struct{ Error string }
	if json.Unmarshal(body, &problem) != nil || problem.Error == "" {
		problem.Error = "the console answered " + response.Status
	}
	if response.StatusCode == http.StatusUnauthorized {
		problem.Error += " Sign in with kuota login, or set --token."
	}
	return nil, errors.New(problem.Error)
}

// decode reads an answer with exact numbers.
func decode(body []byte) (value any, err error) {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("the answer is no JSON; is this the address of a console? %w", err)
	}
	return value, nil
}
