package utilization

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// mostBytes is how much of one answer is read: about 100,000 series.
const mostBytes = 32 << 20

// Options say which Prometheus is asked, and how. The zero value of each but URL
// is a default.
type Options struct {
	URL       string        // such as http://prometheus.monitoring:9090; its path is kept
	Timeout   time.Duration // of one question; 5 s
	TokenFile string        // a bearer token, read at each question; empty for none
	CAFile    string        // authorities (PEM) that sign its certificate; empty takes the system's
	NodeLabel string        // label with the node's name, where it is none of those in nodeLabels
	Match     string        // label matchers that all series must meet, such as cluster="prod"
	Interval  time.Duration // how often it is asked; 15 s
	IdleAfter time.Duration // over which a device must have done nothing to be idle; 30 m

	Now      func() time.Time           // the clock; time.Now
	OnChange func()                     // called after each round of questions; nil is nobody
	Warn     func(what string, _ error) // what people with access to the log should know; nil is nobody
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

// errTooLarge says that an answer was not read to its end.
var errTooLarge = fmt.Errorf("the answer is larger than %d MiB", mostBytes>>20)

// connect makes a client. It answers an error for an address or a file that
// cannot be used.
func connect(o Options) (prometheus.API, error) {
	address, err := url.Parse(o.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, errors.New("the address of Prometheus is no http or https URL")
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
			return nil, fmt.Errorf("%s holds no certificate", o.CAFile)
		}
	}
	client, err := api.NewClient(api.Config{Address: o.URL, Client: &http.Client{
		Transport:     &transport{base: base, tokenFile: o.TokenFile},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this address only
	}})
	if err != nil {
		return nil, err
	}
	return prometheus.NewAPI(client), nil
}

// transport adds the token, and ends answers that are too large.
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
	answer, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{body: answer.Body, left: mostBytes}
	return answer, nil
}

// errToken is a token that cannot be read.
type errToken struct{ error }

// bounded is a body that fails rather than being longer than it may.
type bounded struct {
	body io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.body.Read(into[:min(int64(len(into)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error { return b.body.Close() }
