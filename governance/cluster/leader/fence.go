package leader

import (
	"errors"
	"net/http"
)

// ErrNotLeader is returned for a write that only the leader may send.
var ErrNotLeader = errors.New("this replica does not lead")

// Fence wraps the transport of the controllers' client: writes fail unless this
// replica leads. A leader that was paused and continues cannot write, even before
// it sees the other holder. Reads and dry runs, which all replicas send, pass.
func (l *Leader) Fence(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return fence{l, next}
}

type fence struct {
	l    *Leader
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && !f.l.State().Leads {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, ErrNotLeader
	}
	return f.next.RoundTrip(r)
}
