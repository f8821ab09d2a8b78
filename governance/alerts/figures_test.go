package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/history"
)

// halfDown is a Sender of which receivers whose name begins with "slow" take five seconds and
// fail, as long as the real one waits.
type halfDown struct {
	mu        sync.Mutex
	delivered map[string]time.Time // by message
}

func (*halfDown) Prepare(context.Context, []v1alpha1.AlertReceiver) {}

func (h *halfDown) Send(ctx context.Context, to v1alpha1.AlertReceiver, m Message) error {
	if !strings.HasPrefix(to.Name, "slow") {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.delivered[m.ID] = time.Now()
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
	return errors.New("no answer within 5s")
}

// TestFigures measures from when a message is made to its delivery: 16 receivers, of which
// four do not answer, each get a message every two seconds.
func TestFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	const receivers, slow, messages = 16, 4, 60
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{}}}
	for i := range receivers {
		name := fmt.Sprint("ops-", i)
		if i < slow {
			name = fmt.Sprint("slow-", i)
		}
		policy.Spec.Alerts.Receivers = append(policy.Spec.Alerts.Receivers, v1alpha1.AlertReceiver{Name: name})
	}
	sender := &halfDown{delivered: map[string]time.Time{}}
	s := &Service{Notices: store, Sender: sender, Now: time.Now, Log: slog.New(slog.DiscardHandler), Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) { return policy, nil }}
	term, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.send(term, s.fence) }()
	defer func() { stop(); <-done }()
	created := map[string]time.Time{}
	for n := range messages {
		for i, r := range policy.Spec.Alerts.Receivers {
			id := fmt.Sprintf("%s-%d", r.Name, n)
			if i >= slow {
				created[id] = time.Now()
			}
			if err := s.enqueue(t.Context(), r.Name, Message{ID: id}, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
	}
	time.Sleep(10 * time.Second)
	var took []time.Duration
	sender.mu.Lock()
	defer sender.mu.Unlock()
	for id, at := range created {
		if got := sender.delivered[id]; got.IsZero() {
			t.Errorf("%s was not delivered", id)
		} else {
			took = append(took, got.Sub(at))
		}
	}
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatal("nothing was delivered")
	}
	p95 := took[len(took)*95/100]
	fmt.Printf("figure alerts_delivery_p95 %d ms\nfigure alerts_delivery_max %d ms\n", p95.Milliseconds(), took[len(took)-1].Milliseconds())
	t.Logf("%d messages were delivered", len(took))
	if p95 > 10*time.Second {
		t.Errorf("delivered after %s at p95, want at most 10s", p95)
	}
}
