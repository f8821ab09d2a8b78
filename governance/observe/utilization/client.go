package utilization

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// maxBytes bounds the size of one response: about 100,000 series.
const maxBytes = 32 << 20

// Options configure a Service. All fields but URL have defaults.
type Options struct {
	URL       string        // such as http://prometheus.monitoring:9090, with an optional path
	Timeout   time.Duration // of one query; 5 s
	TokenFile string        // contains a bearer token; read with each query; empty for none
	CAFile    string        // CA certificates (PEM) of the server; empty for the system's
	NodeLabel string        // label with the node's name, if it is not one of nodeLabels
	Match     string        // label matchers of all series, such as cluster="prod"
	Interval  time.Duration // between two polls; 15 s
	IdleAfter time.Duration // a device without activity for this time is idle; 30 m

	Now      func() time.Time              // the clock; time.Now
	OnChange func()                        // called after each poll and each history; optional
	Warn     func(message string, _ error) // logs errors and warnings; optional
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Interval = cmp.Or(o.Interval, 15*time.Second)
	o.IdleAfter = cmp.Or(o.IdleAfter, 30*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnChange == nil {
		o.OnChange = func() {}
	}
	if o.Warn == nil {
		o.Warn = func(string, error) {}
	}
	return o
}

// connect returns a client, or an error for an invalid URL or CA file.
func connect(o Options) (prometheus.API, error) {
	address, err := url.Parse(o.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, errors.New("the address of Prometheus is not an http or https URL")
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost, base.TLSHandshakeTimeout = 4, o.Timeout
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		base.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		if !base.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s contains no certificate", o.CAFile)
		}
	}
	client, err := api.NewClient(api.Config{Address: o.URL, Client: &http.Client{
		Transport:     &transport{base: base, tokenFile: o.TokenFile},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // never send the token to another address
	}})
	if err != nil {
		return nil, err
	}
	return prometheus.NewAPI(client), nil
}

// transport adds the token and limits the size of responses.
type transport struct {
	base      http.RoundTripper
	tokenFile string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.tokenFile != "" {
		token, err := os.ReadFile(t.tokenFile)
		if err != nil {
			return nil, errToken{err}
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxBytes)
	return response, nil
}

// errToken wraps an error of reading the token.
type errToken struct{ error }

// errResultType is returned for a result of an unexpected type.
var errResultType = errors.New("unexpected result type")

// errorText returns a sentence for pages: what went wrong and what to do. It contains
// no address and no text from the server, which belong in the log.
func errorText(err error, timeout time.Duration) string {
	var refused *prometheus.Error
	var token errToken
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &token):
		return "The token for Prometheus cannot be read. Check --prometheus-token-file."
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("Prometheus answered with more than %d MiB. Select this cluster's series with --prometheus-match.", maxBytes>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Prometheus did not answer within %g s. Check whether it is overloaded.", timeout.Seconds())
	case !errors.As(err, &refused) && isNetwork(err):
		return "Prometheus cannot be reached. Check that it runs, and check --prometheus-url and --prometheus-ca-file."
	case refused == nil, refused.Type == prometheus.ErrBadResponse:
		return "The server that answers is not Prometheus. Check --prometheus-url."
	case refused.Type == prometheus.ErrClient && (strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusUnauthorized)) || strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusForbidden))):
		return "Prometheus rejects the console. Check that the token of --prometheus-token-file is valid and has permission to query."
	case refused.Type == prometheus.ErrClient:
		return "The server that answers has no Prometheus API at this path. Check --prometheus-url and its path."
	case refused.Type == prometheus.ErrServer:
		return "Prometheus reports an internal error or is overloaded. See its log."
	}
	return "Prometheus rejects the query. See the console's log for the reason."
}

// isNetwork reports whether there was no response at all.
func isNetwork(err error) bool {
	var network interface{ Timeout() bool } // as url.Error and net.Error implement
	return errors.As(err, &network)
}
