package clustertest

import (
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// ErrBroken is what every call over a Line answers once it is broken.
var ErrBroken = errors.New("the test broke the connection")

// Line is a connection to the API server that breaks at its n-th call: before the
// call is sent, or after it was carried out, its answer lost. Its
// user stops there, like a process that is killed.
type Line struct {
	BreakAt int64 // 0 never breaks
	After   bool  // the call at which it breaks is carried out
	next    http.RoundTripper
	calls   atomic.Int64
	writes  atomic.Int64
}

// Over returns a configuration whose clients use the line.
func (l *Line) Over(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 1000
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	return config
}

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(request *http.Request) (*http.Response, error) {
	n := l.calls.Add(1)
	if request.Method != http.MethodGet {
		l.writes.Add(1)
	}
	switch {
	case l.BreakAt == 0 || n < l.BreakAt:
		return l.next.RoundTrip(request)
	case n == l.BreakAt && l.After:
		if response, err := l.next.RoundTrip(request); err == nil {
			response.Body.Close()
		}
	}
	return nil, ErrBroken
}

// Broken reports whether the line broke.
func (l *Line) Broken() bool { return l.BreakAt != 0 && l.calls.Load() >= l.BreakAt }

// Calls returns how many calls were made.
func (l *Line) Calls() int64 { return l.calls.Load() }

// Writes returns how many of them were not only reading.
func (l *Line) Writes() int64 { return l.writes.Load() }
