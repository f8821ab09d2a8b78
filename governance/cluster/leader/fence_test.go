package leader

import (
	"context"
	"errors"
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
	renew := func(age time.Duration) {
		sent := time.Now().Add(-age)
		l.renewed.Store(&sent)
	}
	renew(0)
	l.lead(t.Context())
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
			renew(test.age)
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
			renew(0) // no other replica led meanwhile
			if !l.Within(t.Context(), func(context.Context) {}) {
				t.Error("no work begins after a late renewal")
			}
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

// lease is a Lease on an API server that can be away.
type lease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (l *lease) Identity() string { return "a" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := l.record
	return &record, nil, l.err
}

func (l *lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.err == nil {
		l.record = record
	}
	return l.err
}

// An API server that does not answer ends no lead, and another holder does, for ever.
func TestOutage(t *testing.T) {
	l, err := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Namespace: "kuota-system", Identity: "a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := &lease{}
	k := &lock{l: l, Interface: server}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "a"}
	step := func(what string, leads bool) {
		t.Helper()
		_, _, getErr := k.Get(t.Context())
		if err := k.Update(t.Context(), mine); (err != nil || getErr != nil || l.State().Leads != leads) && leads {
			t.Errorf("%s: got errors %v and %v, leads %t", what, getErr, err, l.State().Leads)
		} else if l.State().Leads != leads {
			t.Errorf("%s: got leads %t, want %t", what, !leads, leads)
		}
	}
	begun := 0
	l.OnElected(nil, func() { begun++ })
	l.lead(t.Context())
	step("acquired", true)
	server.err = errors.New("no answer")
	step("no answer", true)
	long := time.Now().Add(-validity)
	l.renewed.Store(&long)
	step("no answer for long", false)
	if l.leading.Err() != nil {
		t.Error("an outage ended the lead")
	}
	server.err = nil
	if step("an answer", true); begun != 2 {
		t.Errorf("begun was called %d times, want once for the election and once after the outage", begun)
	}
	server.record.HolderIdentity = "b"
	step("another holder", false)
	server.record.HolderIdentity = "a"
	step("for ever", false)
	if l.Within(t.Context(), func(context.Context) {}) || l.leading.Err() == nil {
		t.Error("it leads again")
	}
}

// After an outage, the replica that led before it may renew the Lease first.
func TestFollowerWaits(t *testing.T) {
	l, err := New(&rest.Config{Host: "127.0.0.1:1"}, Options{Namespace: "kuota-system", Identity: "a", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := &lease{record: resourcelock.LeaderElectionRecord{HolderIdentity: "b"}}
	k := &lock{l: l, Interface: server}
	acquire := func() error {
		if _, _, err := k.Get(t.Context()); err != nil {
			return err
		}
		return k.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"})
	}
	if err := acquire(); err == nil {
		t.Error("it acquired a Lease that it has just begun to observe")
	}
	k.since = time.Now().Add(-leaseDuration)
	server.err = errors.New("no answer")
	if err := acquire(); err == nil {
		t.Error("it acquired a Lease without an answer")
	}
	server.err = nil
	if err := acquire(); err == nil {
		t.Error("it acquired the Lease at once after an outage")
	}
	k.since = time.Now().Add(-leaseDuration)
	if err := acquire(); err != nil {
		t.Errorf("it did not acquire the Lease: %v", err)
	}
}
