package leader

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPausedLeader renews long ago by the clock, as a leader that was paused: it
// begins no work and sends no write, but reads and dry runs pass.
func TestPausedLeader(t *testing.T) {
	l, err := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Namespace: "kuota-system", Identity: "a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.stop = func() {}
	renew := func(age time.Duration) {
		sent := time.Now().Add(-age)
		l.renewed.Store(&sent)
	}
	renew(0)
	l.lead(ctx)
	sent := 0
	transport := l.Fence(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	for name, test := range map[string]struct {
		age                time.Duration
		method, query      string
		wantSent, wantWork bool
	}{
		"write while leading": {method: http.MethodPatch, wantSent: true, wantWork: true},
		"write late":          {age: validity - time.Second, method: http.MethodPatch, wantSent: true, wantWork: true},
		"write after a pause": {age: validity, method: http.MethodPatch},
		"dry run":             {age: time.Minute, method: http.MethodPatch, query: "?dryRun=All", wantSent: true},
		"read":                {age: time.Minute, method: http.MethodGet, wantSent: true},
	} {
		t.Run(name, func(t *testing.T) {
			l.mu.Lock() // before check ends the term, which takes a tenth of a second
			renew(test.age)
			l.mu.Unlock()
			sent = 0
			request, err := http.NewRequestWithContext(t.Context(), test.method, "http://127.0.0.1:1/"+test.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := transport.RoundTrip(request); err == nil {
				response.Body = http.NoBody
				response.Body.Close()
			}
			if got := sent == 1; got != test.wantSent {
				t.Errorf("request sent: got %t, want %t", got, test.wantSent)
			}
			if got := l.Within(t.Context(), func(context.Context) {}); got != test.wantWork {
				t.Errorf("work began: got %t, want %t", got, test.wantWork)
			}
			if test.wantWork {
				return
			}
			renew(0) // a term that ended stays ended
			l.endTerm()
			if l.Within(t.Context(), func(context.Context) {}) {
				t.Error("work began after the term ended")
			}
			l.lead(ctx)
		})
	}
}

func TestNilLeads(t *testing.T) {
	var l *Leader
	ran := false
	if !l.Within(t.Context(), func(context.Context) { ran = true }) || !ran || !l.State().Leads {
		t.Error("a nil Leader must lead")
	}
}

// TestLateRenewal checks that a Lease that was renewed too late does not continue the
// term, and that the Lease of another replica is not released.
func TestLateRenewal(t *testing.T) {
	l, err := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Namespace: "kuota-system", Identity: "a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	k, _ := l.lock(func() { stopped = true }).(*lock)
	written := func() error { return nil }
	if err := k.renew(written); err != nil {
		t.Fatal(err)
	}
	l.lead(t.Context())
	if err := k.renew(written); err != nil || stopped || !l.State().Leads {
		t.Errorf("renewal in time: got error %v, stopped %t, want to continue", err, stopped)
	}
	k.leader = "b"
	if err := k.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil {
		t.Error("the Lease of another replica was released")
	}
	l.lead(t.Context())
	k.renewed = k.renewed.Add(-validity)
	if err := k.renew(written); err == nil || !stopped || l.State().Leads {
		t.Errorf("late renewal: got error %v, stopped %t, want the end of the term", err, stopped)
	}
}
