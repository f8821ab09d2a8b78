package cluster

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// DenialMessage is the log message of a request that was denied because the console
// lacks a permission. Tests of the built console search its log for it.
const DenialMessage = "the console lacks a permission"

// maxStatus bounds how much of a response is read to find the reason of a 403.
const maxStatus = 64 << 10

// RBAC names the account that lacks a permission. Of a request as a user, that is the
// console only if it may not impersonate the user. Admission plugins answer 403, too,
// in other words.
var (
	rbacDenial          = regexp.MustCompile(`(?i) user "[^"]*" (cannot |\(groups=.*\) is attempting to grant )`)
	impersonationDenial = regexp.MustCompile(` User "[^"]*" cannot impersonate`)
)

// Denials logs and counts requests that the API server denies because the account of
// the console lacks a permission. With the permissions of the chart there are none.
type Denials struct {
	prometheus.Counter
	log *slog.Logger
}

// NewDenials returns Denials that log to log.
func NewDenials(log *slog.Logger) *Denials {
	return &Denials{log: log, Counter: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kuota_permission_denials_total", Help: "Requests that the API server denied because the console's account lacks a permission.",
	})}
}

// Observe makes clients of config report their denials. It must be called before a
// client is created.
func (d *Denials) Observe(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return denialTransport{next, d} })
}

type denialTransport struct {
	next    http.RoundTripper
	denials *Denials
}

// RoundTrip implements http.RoundTripper.
func (t denialTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusForbidden {
		return response, err
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxStatus)) // the caller reads on, and meets the same error
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), response.Body), response.Body}
	if message := messageOf(body); deniesConsole(message, request.Header.Get("Impersonate-User") != "") && !visibilityStarts(request.URL.Path, message) {
		t.denials.Inc()
		t.denials.log.Warn(DenialMessage, "verb", request.Method, "path", request.URL.Path, "message", message)
	}
	return response, nil
}

// visibilityPath is where the API server passes requests on to Kueue.
const visibilityPath = "/apis/visibility.kueue.x-k8s.io/"

// visibilityStarts reports whether Kueue refused a request because it has just started: it
// does not know yet by which certificate the API server passes on who asks.
func visibilityStarts(path, message string) bool {
	return strings.HasPrefix(path, visibilityPath) && strings.Contains(message, `User "system:anonymous"`)
}

// messageOf returns the message of a Status, in JSON or as a protocol buffer.
func messageOf(body []byte) string {
	object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if status, ok := object.(*metav1.Status); err == nil && ok {
		return status.Message
	}
	return ""
}

// deniesConsole reports whether a message of the API server says that the console,
// and not a user whom it impersonates, lacks a permission.
func deniesConsole(message string, impersonates bool) bool {
	if impersonates {
		return impersonationDenial.MatchString(message)
	}
	return rbacDenial.MatchString(message)
}
