package clustertest

import (
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// ErrBroken is the error of every call over a broken Line.
var ErrBroken = errors.New("the test broke the connection")

// Line is a connection to the API server that breaks at its n-th call: either before
// the call is sent, or after the API server has executed it, so that only the
// response is lost. It simulates a client process that is killed at that call.
type Line struct {
	BreakAt int64 // 0 never breaks
	After   bool  // the API server executes the call at which the line breaks
	Writing bool  // BreakAt counts only the calls that are no GET requests
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
	n, writes := l.calls.Add(1), l.writes.Load()
	if request.Method != http.MethodGet {
		writes = l.writes.Add(1)
	}
	if l.Writing {
		n = writes
	}
	switch {
	case l.BreakAt == 0 || n < l.BreakAt:
		return l.next.RoundTrip(request)
	case n == l.BreakAt && l.After && (!l.Writing || request.Method != http.MethodGet):
		if response, err := l.next.RoundTrip(request); err == nil {
			response.Body.Close()
		}
	}
	return nil, ErrBroken
}

// Broken reports whether the line broke.
func (l *Line) Broken() bool {
	n := l.calls.Load()
	if l.Writing {
		n = l.writes.Load()
	}
	return l.BreakAt != 0 && n >= l.BreakAt
}

// Calls returns the number of calls, the one that broke the line included.
func (l *Line) Calls() int64 { return l.calls.Load() }

// Writes returns the number of calls that were not GET requests.
func (l *Line) Writes() int64 { return l.writes.Load() }
