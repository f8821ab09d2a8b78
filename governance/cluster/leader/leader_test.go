package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/cluster/leader"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// TestElection runs two replicas with the permissions of the console: one leads, its
// work ends before the other begins, and a clean stop hands over at once.
func TestElection(t *testing.T) {
	c := clustertest.Get(t)
	var working atomic.Int32
	start := func(identity string) (l *leader.Leader, stop func()) {
		l, err := leader.New(c.Console, leader.Options{Namespace: "kuota-system", Identity: identity, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		begun := false
		l.OnElected(func(context.Context) error {
			if begun {
				return nil
			}
			begun = true
			return errors.New("retried")
		}, func() {})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := l.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		go l.Lead(ctx, func(term context.Context) {
			if n := working.Add(1); n != 1 {
				t.Errorf("got %d replicas at work, want 1", n)
			}
			<-term.Done()
			time.Sleep(300 * time.Millisecond) // the last work of a term
			working.Add(-1)
		})
		stop = func() { cancel(); <-done }
		t.Cleanup(stop)
		return l, stop
	}
	leads := func(l *leader.Leader, limit time.Duration) {
		t.Helper()
		clustertest.Eventually(t, limit, func(context.Context) error {
			if state := l.State(); !state.Leads || state.Leader != state.Identity || working.Load() != 1 {
				return errors.New("it does not lead")
			}
			return nil
		})
	}
	a, stopA := start("a")
	leads(a, time.Minute)
	b, stopB := start("b")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if state := b.State(); state.Leads || state.Leader != "a" {
			return errors.New("replica b does not follow a")
		}
		return nil
	})
	stopA()
	var lease coordinationv1.Lease
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "kuota-system", Name: leader.LeaseName}, &lease); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "a" {
		t.Error("replica a holds the Lease after it stopped")
	}
	leads(b, time.Minute)
	if a.State().Leads {
		t.Error("replica a leads after it stopped")
	}
	stopB()
}
