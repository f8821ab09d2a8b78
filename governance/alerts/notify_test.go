package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of 10,000 preemptions in a minute each receiver gets at most one message, and each alert
// once as firing and once as resolved, also across restarts; silenced ones are not sent.
func TestPlan(t *testing.T) {
	known := map[history.Notified]bool{}
	counts := map[string]int{}
	messages := 0
	var list []Alert
	n := &notifier{known: known, last: map[string]lastMessage{}}
	for i := range 10_000 {
		now := start.Add(time.Duration(i) * time.Minute / 10_000)
		a := Alert{Alert: history.Alert{ID: fmt.Sprint(i), Fired: now}, Description: Description{Severity: Warning}}
		if i%2 == 0 {
			a.Resolved = now
		}
		if i%5 == 1 {
			a.Silence = &history.Silence{}
		}
		list = append(list, a)
		m, learns := n.plan(now, v1alpha1.AlertReceiver{Name: "ops"}, list)
		if len(learns) == 0 {
			continue
		}
		messages++
		n.last["ops"] = lastMessage{now, m.mostSevere()}
		for _, one := range learns {
			known[one] = true
			counts[fmt.Sprint(one.Resolved)]++
		}
		if len(m.Alerts)+m.More != len(learns) {
			t.Fatalf("a message has %d alerts and %d more, want %d", len(m.Alerts), m.More, len(learns))
		}
	}
	if messages > 1 {
		t.Errorf("got %d messages in a minute, want at most 1", messages)
	}
	// Something more severe does not wait for the minute, and takes along what waits.
	critical := Alert{Alert: history.Alert{ID: "critical", Fired: start.Add(59 * time.Second)}, Description: Description{Severity: Critical}}
	ops := v1alpha1.AlertReceiver{Name: "ops"}
	m, learns := n.plan(start.Add(59*time.Second), ops, append(list, critical))
	if len(learns) < maxInMessage || m.mostSevere() != Critical {
		t.Errorf("a critical alert waits: %d alerts", len(learns))
	}
	n.last["ops"] = lastMessage{start.Add(59 * time.Second), Critical}
	if m, learns := n.plan(start.Add(70*time.Second), ops, append(list, critical)); len(learns) > 0 {
		t.Errorf("the next one does not wait: %v", m)
	}
	for hour := range 3 {
		for i := range list {
			if hour == 1 {
				list[i].Resolved = start.Add(time.Hour)
			}
		}
		n = &notifier{known: known, last: map[string]lastMessage{}} // restarted
		_, learns := n.plan(start.Add(time.Duration(hour+1)*time.Hour), v1alpha1.AlertReceiver{Name: "ops"}, list)
		for _, one := range learns {
			if known[one] {
				t.Fatalf("alert %s is repeated", one.Alert)
			}
			known[one] = true
			counts[fmt.Sprint(one.Resolved)]++
		}
	}
	// Those that were over before a message went out are not sent at all, nor silenced ones.
	if counts["false"] != 4_000 || counts["true"] != 4_000 {
		t.Errorf("got %d firing and %d resolved alerts, want 4000 of each", counts["false"], counts["true"])
	}
}

// sender fails until it is up.
type sender struct {
	mu   sync.Mutex
	up   bool
	sent []string
}

func (*sender) Prepare(context.Context, []v1alpha1.AlertReceiver) {}

func (s *sender) Send(_ context.Context, _ v1alpha1.AlertReceiver, m Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up {
		return errors.New("down")
	}
	s.sent = append(s.sent, m.ID)
	return PartlyError("not to b@example.com")
}

// A delivery to a receiver that is down is tried again, also by the next process, and once
// it is up it is sent once, although one address is rejected.
func TestRetry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	var mu sync.Mutex
	now := start
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	s := &sender{}
	run := func(until func(list []history.Delivery) bool) {
		t.Helper()
		store, err := history.Open(t.Context(), path, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		service := &Service{Notices: store, Sender: s, Now: clock, Log: slog.New(slog.DiscardHandler), Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) {
			return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{{Name: "ops"}}}}}, nil
		}}
		if list, err := store.Deliveries(t.Context(), history.DeliveryQuery{}); err != nil || len(list) == 0 {
			if err := service.enqueue(t.Context(), "ops", Message{ID: "m"}, []history.Notified{{Alert: "a", Receiver: "ops"}}); err != nil {
				t.Fatal(err)
			}
		}
		term, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); service.send(term, service.fence) }()
		defer func() { stop(); <-done }()
		for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			list, err := store.Deliveries(t.Context(), history.DeliveryQuery{})
			if err != nil {
				t.Fatal(err)
			}
			if until(list) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("deliveries are %v", list)
			}
			mu.Lock()
			now = now.Add(2 * time.Second)
			mu.Unlock()
		}
	}
	run(func(list []history.Delivery) bool { return list[0].Attempts >= 2 && list[0].Error == "down" })
	s.mu.Lock()
	s.up = true
	s.mu.Unlock()
	run(func(list []history.Delivery) bool {
		return !list[0].Delivered.IsZero() && list[0].Due.IsZero() && list[0].Error == "not to b@example.com"
	})
	if len(s.sent) != 1 {
		t.Errorf("it was sent %d times, want once", len(s.sent))
	}
}

// persons addresses each notice to ada, except for one that she does not want.
type persons struct{ down bool }

func (p *persons) Address(_ context.Context, to v1alpha1.AlertReceiver, m Message) (v1alpha1.AlertReceiver, Message, error) {
	switch {
	case m.ID == "unwanted":
		return to, m, ErrUnwanted
	case p.down:
		return to, m, errors.New("the API server is away")
	}
	to.To, m.Person = []string{m.Person + "@example.com"}, "ada"
	return to, m, nil
}

// addressed notes to whom messages go.
type addressed struct{ to []string }

func (*addressed) Prepare(context.Context, []v1alpha1.AlertReceiver) {}

func (a *addressed) Send(_ context.Context, to v1alpha1.AlertReceiver, m Message) error {
	a.to = append(a.to, m.ID+" "+m.Person+" "+strings.Join(to.To, ","))
	return nil
}

// A notice goes to its person only, and is kept until it is sent or not wanted any more. Without
// Persons, as after a change of the configuration, none is sent.
func TestNotices(t *testing.T) {
	t.Parallel()
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	sent, known := &addressed{}, &persons{down: true}
	receivers := []v1alpha1.AlertReceiver{{Name: "mail", Type: v1alpha1.EmailReceiver, Notices: v1alpha1.OnlyNotices}}
	s := &Service{Notices: store, Sender: sent, Persons: known, Now: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler)}
	var list []history.Delivery
	for _, id := range []string{"wanted", "unwanted"} {
		list = append(list, history.Delivery{ID: id, Receiver: PersonalQueue("mail"), Message: fmt.Sprintf(`{"id": %q, "person": "key"}`, id), Created: start, Due: start})
	}
	if err := store.AddNotices(t.Context(), list, 1); err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		s.attempt(t.Context(), receivers, d)
	}
	left, err := store.Deliveries(t.Context(), history.DeliveryQuery{DueBefore: start.Add(time.Hour)})
	if err != nil || len(left) != 1 || left[0].ID != "wanted" || left[0].Due != start.Add(firstRetry) || len(sent.to) > 0 {
		t.Fatalf("left %v, sent %q: %v", left, sent.to, err)
	}
	known.down = false
	s.attempt(t.Context(), receivers, left[0])
	if left, err = store.Deliveries(t.Context(), history.DeliveryQuery{DueBefore: start.Add(time.Hour)}); err != nil || len(left) > 0 || !slices.Equal(sent.to, []string{"wanted ada key@example.com"}) {
		t.Errorf("left %v, sent %q: %v", left, sent.to, err)
	}
	if shown, err := store.Deliveries(t.Context(), history.DeliveryQuery{}); err != nil || len(shown) > 0 {
		t.Errorf("admins see %v: %v", shown, err)
	}
	s.Persons = nil
	if s.attempt(t.Context(), receivers, list[0]); len(sent.to) != 1 {
		t.Errorf("sent without persons: %q", sent.to)
	}
}

// A receiver of a team gets no alert of another team or of the cluster, and one of a department
// those of its teams, of departments below it, and of itself.
func TestWants(t *testing.T) {
	department := func(name, parent string) v1alpha1.Department {
		return v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DepartmentSpec{Parent: parent}}
	}
	team := func(name, department string) *v1alpha1.ComputeAllocation {
		return &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ComputeAllocationSpec{Department: department}}
	}
	s := &Service{tree: quota.NewDepartments([]v1alpha1.Department{department("research", ""), department("robots", "research"), department("sales", "")},
		[]*v1alpha1.ComputeAllocation{team("vision", "research"), team("arms", "robots"), team("leads", "sales"), team("free", "")}, catalog.Catalog{})}
	of := func(a history.Alert) Alert {
		a.Rule = string(TaskWaits)
		return s.visible(access.Scope{All: true}, []history.Alert{a}, nil, start)[0]
	}
	research := v1alpha1.AlertReceiver{Department: "research"}
	alert := func(team string, severity Severity) Alert {
		return Alert{Alert: history.Alert{Team: team}, Description: Description{Severity: severity}}
	}
	for name, tc := range map[string]struct {
		receiver v1alpha1.AlertReceiver
		alert    Alert
		want     bool
	}{
		"all":                         {v1alpha1.AlertReceiver{}, alert("vision", Info), true},
		"the cluster":                 {v1alpha1.AlertReceiver{}, alert("", Critical), true},
		"own team":                    {v1alpha1.AlertReceiver{Team: "vision"}, alert("vision", Info), true},
		"another team":                {v1alpha1.AlertReceiver{Team: "vision"}, alert("speech", Critical), false},
		"not a team's":                {v1alpha1.AlertReceiver{Team: "vision"}, alert("", Critical), false},
		"as severe":                   {v1alpha1.AlertReceiver{Severity: "warning"}, alert("vision", Warning), true},
		"notices only":                {v1alpha1.AlertReceiver{Notices: v1alpha1.OnlyNotices}, alert("", Critical), false},
		"department's team":           {research, of(history.Alert{Team: "vision"}), true},
		"team below":                  {research, of(history.Alert{Team: "arms"}), true},
		"team of another department":  {research, of(history.Alert{Team: "leads"}), false},
		"team of no department":       {research, of(history.Alert{Team: "free"}), false},
		"a team that is gone":         {research, of(history.Alert{Team: "gone"}), false},
		"the department":              {research, of(history.Alert{Subject: departmentSubject + "research/Notify"}), true},
		"a department below":          {research, of(history.Alert{Subject: departmentSubject + "robots/Notify"}), true},
		"the department above":        {v1alpha1.AlertReceiver{Department: "robots"}, of(history.Alert{Subject: departmentSubject + "research/Notify"}), false},
		"the cluster, not department": {research, of(history.Alert{Subject: "pool"}), false},
		"less severe":                 {v1alpha1.AlertReceiver{Severity: "warning"}, alert("vision", Info), false},
	} {
		if got := wants(tc.receiver, tc.alert); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// hanging are receivers of which one never answers.
type hanging struct{ sent chan string }

func (*hanging) Prepare(context.Context, []v1alpha1.AlertReceiver) {}

func (h *hanging) Send(ctx context.Context, to v1alpha1.AlertReceiver, _ Message) error {
	if to.Name == "hangs" {
		<-ctx.Done()
		return ctx.Err()
	}
	h.sent <- to.Name
	return nil
}

// refusing refuses the messages to one receiver.
type refusing struct {
	notices
	to []string
}

func (r *refusing) AddDelivery(_ context.Context, d history.Delivery, _ []history.Notified) error {
	if d.Receiver == "refused" {
		return errors.New("refused")
	}
	r.to = append(r.to, d.Receiver)
	return nil
}

// A message that cannot be stored or read, and a receiver that never answers, delay no
// message to other receivers.
func TestOddReceivers(t *testing.T) {
	var receivers []v1alpha1.AlertReceiver
	store := &refusing{}
	for _, name := range []string{"refused", "hangs", "unread", "good"} {
		receivers = append(receivers, v1alpha1.AlertReceiver{Name: name})
		message := "{}"
		if name == "unread" {
			message = "{"
		}
		store.due = append(store.due, history.Delivery{ID: name, Receiver: name, Message: message})
	}
	sender := &hanging{sent: make(chan string, 100)}
	s := &Service{
		Notices: store, Sender: sender, Now: time.Now, Log: slog.New(slog.DiscardHandler), notifier: &notifier{known: map[history.Notified]bool{}, last: map[string]lastMessage{}},
		Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) {
			return &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: receivers}}}, nil
		},
	}
	if err := s.notify(t.Context(), receivers, []Alert{{Alert: history.Alert{ID: "a", Fired: start}}}); err == nil {
		t.Error("a message is refused, and notify succeeds")
	}
	if want := []string{"hangs", "unread", "good"}; !slices.Equal(store.to, want) {
		t.Errorf("messages to %v, want %v", store.to, want)
	}
	term, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.send(term, s.fence) }()
	defer func() { stop(); <-done }()
	for limit := time.After(time.Minute); ; {
		select {
		case name := <-sender.sent:
			if name == "good" {
				return
			}
		case <-limit:
			t.Fatal("no message to the last receiver")
		}
	}
}
