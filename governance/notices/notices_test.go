package notices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/record/history"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 3, 1, 17, 41, 12, 0, time.UTC)

// memory is a Store. Each write counts up.
type memory struct {
	texts  map[string]string
	writes int
}

func (m *memory) Latest(_ context.Context, name string) (text, version string, err error) {
	if text = m.texts[name]; text != "" {
		version = strconv.Itoa(len(text))
	}
	return text, version, nil
}

func (m *memory) Known(ctx context.Context, name string) (text, version string, err error) {
	return m.Latest(ctx, name)
}

func (m *memory) Create(_ context.Context, name, text string, _ time.Time) (bool, error) {
	m.writes++
	m.texts[name] = text
	return true, nil
}

func (m *memory) Update(ctx context.Context, name, text string, expires time.Time, _ string) (bool, error) {
	return m.Create(ctx, name, text, expires)
}

func (m *memory) Delete(_ context.Context, name string) error {
	delete(m.texts, name)
	return nil
}

func (m *memory) WithPrefix(context.Context, string) (map[string]string, error) {
	return maps.Clone(m.texts), nil
}

// groups are namespaces by the group whose members see them.
type groups map[string]string

func (g groups) Scope(_ context.Context, user governance.User) (access.Scope, error) {
	var namespaces []string
	for _, group := range user.Groups {
		namespaces = append(namespaces, g[group])
	}
	return access.ScopeOf(namespaces...), nil
}

func (g groups) CanSee(ctx context.Context, user governance.User, namespace string) (bool, error) {
	scope, err := g.Scope(ctx, user)
	return scope.Includes(namespace), err
}

// events is a History.
type events struct {
	list    []history.TaskEvent
	noticed int
	added   []history.Delivery
	err     error
}

func (e *events) TaskEvents(_ context.Context, persons []string, _ time.Time, do func(history.TaskEvent)) (int64, error) {
	for _, one := range e.list[e.noticed:] {
		if slices.Contains(persons, one.Person) {
			do(one)
		}
	}
	return int64(len(e.list)), e.err
}

func (e *events) AddNotices(_ context.Context, list []history.Delivery, until int64) error {
	e.added, e.noticed = append(e.added, list...), int(until)
	return nil
}

var (
	ada = governance.User{Name: "ada", Groups: []string{"vision-team"}, Email: "ada@example.com"}
	eve = governance.User{Name: "eve", Groups: []string{"speech-team"}}
)

// newService returns a service with four receivers: mail, a chat of team vision, one of the
// department of team speech, and one that gets alerts only.
func newService(log *bytes.Buffer) (*Service, *memory, *events, *v1alpha1.ClusterPolicy) {
	policy := &v1alpha1.ClusterPolicy{Spec: v1alpha1.ClusterPolicySpec{Alerts: &v1alpha1.Alerts{Receivers: []v1alpha1.AlertReceiver{
		{Name: "mail", Type: v1alpha1.EmailReceiver, SecretName: "smtp", Notices: v1alpha1.OnlyNotices},
		{Name: "vision", Type: v1alpha1.SlackReceiver, SecretName: "chat", Team: "vision", Notices: v1alpha1.AlsoNotices},
		{Name: "talk", Type: v1alpha1.SlackReceiver, SecretName: "chat", Department: "language", Notices: v1alpha1.OnlyNotices},
		{Name: "ops", Type: v1alpha1.SlackReceiver, SecretName: "ops"},
	}}}}
	store, recorded := &memory{texts: map[string]string{}}, &events{}
	var allocations []*v1alpha1.ComputeAllocation
	for _, team := range []string{"vision", "speech"} {
		allocations = append(allocations, &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Status: v1alpha1.ComputeAllocationStatus{Namespace: "ns-" + team}})
	}
	allocations[1].Spec.Department = "language"
	return &Service{
		Store: store, History: recorded, Access: groups{"vision-team": "ns-vision", "speech-team": "ns-speech"},
		Policy: func(context.Context) (*v1alpha1.ClusterPolicy, error) { return policy, nil },
		Teams: func(context.Context) (clusterstate.Teams, error) {
			return clusterstate.NewTeams(allocations, nil, nil), nil
		},
		Departments: func(context.Context) (quota.Departments, error) {
			return quota.NewDepartments([]v1alpha1.Department{{ObjectMeta: metav1.ObjectMeta{Name: "language"}}}, allocations, catalog.Catalog{}), nil
		},
		Log: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return start },
	}, store, recorded, policy
}

func names(list []Receiver) (found []string) {
	for _, r := range list {
		found = append(found, strings.TrimSpace(r.Name+" "+r.Problem))
	}
	return found
}

// People choose among the receivers that the policy allows and of teams that they see, and mail
// only with a verified address. They read and change their own choice only.
func TestSet(t *testing.T) {
	t.Parallel()
	s, _, _, policy := newService(&bytes.Buffer{})
	ctx := t.Context()
	get := func(user governance.User) State {
		t.Helper()
		state, err := s.Get(ctx, user)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if got := names(get(ada).Receivers); !slices.Equal(got, []string{"mail", "vision"}) {
		t.Errorf("ada can choose %q", got)
	}
	if got := names(get(eve).Receivers); !slices.Equal(got, []string{"mail " + noEmail, "talk"}) {
		t.Errorf("eve can choose %q", got)
	}
	all := Settings{On: []Event{End, Fail, End}, To: []string{"mail", "vision", "mail"}}
	if err := s.Set(ctx, ada, all); err != nil {
		t.Fatal(err)
	}
	if got, want := get(ada), (Settings{[]Event{End, Fail}, []string{"mail", "vision"}}); !cmp.Equal(got.Settings, want) || got.Until != start.Add(kept) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := get(eve); len(got.On)+len(got.To) > 0 || !got.Until.IsZero() {
		t.Errorf("eve has %+v", got)
	}
	for name, tc := range map[string]struct {
		user governance.User
		want Settings
		kind governance.Kind
	}{
		"mail without an address": {eve, Settings{[]Event{End}, []string{"mail"}}, governance.Invalid},
		"another team":            {eve, Settings{[]Event{End}, []string{"vision"}}, governance.Invalid},
		"another department":      {ada, Settings{[]Event{End}, []string{"talk"}}, governance.Invalid},
		"alerts only":             {ada, Settings{[]Event{End}, []string{"ops"}}, governance.Invalid},
		"an address":              {ada, Settings{[]Event{End}, []string{"eve@example.com"}}, governance.Invalid},
		"another event":           {ada, Settings{[]Event{"delete"}, []string{"mail"}}, governance.Invalid},
		"no receiver":             {ada, Settings{[]Event{End}, nil}, governance.Invalid},
		"a service account":       {governance.User{Name: "system:serviceaccount:a:b", ServiceAccount: true}, all, governance.Forbidden},
		"no sign-in":              {governance.User{Name: "local admin", Local: true}, all, governance.Forbidden},
	} {
		if err := s.Set(ctx, tc.user, tc.want); governance.KindOf(err) != tc.kind {
			t.Errorf("%s: got %v, want kind %v", name, err, tc.kind)
		}
	}
	policy.Spec.Alerts.Receivers = policy.Spec.Alerts.Receivers[:1]
	if got := get(ada); !slices.Equal(got.Lost, []string{"vision"}) {
		t.Errorf("lost are %v, want vision", got.Lost)
	}
	if err := s.Set(ctx, eve, Settings{}); err != nil || len(get(ada).On) == 0 {
		t.Errorf("eve ends the notices of ada: %v", err)
	}
	if err := s.Set(ctx, ada, Settings{}); err != nil || len(get(ada).On) > 0 {
		t.Errorf("ada still has notices: %v", err)
	}
}

// Groups and address of a person are as in their last session; reading pages writes once a day.
func TestSeen(t *testing.T) {
	t.Parallel()
	s, store, _, _ := newService(&bytes.Buffer{})
	s.Seen(t.Context(), ada)
	if store.writes > 0 {
		t.Fatal("a person without notices is kept")
	}
	if err := s.Set(t.Context(), ada, Settings{[]Event{End}, []string{"mail"}}); err != nil {
		t.Fatal(err)
	}
	now := start
	s.Now = func() time.Time { return now }
	moved := governance.User{Name: "ada", Groups: []string{"speech-team"}}
	for _, step := range []struct {
		user   governance.User
		after  time.Duration
		writes int
	}{{ada, time.Hour, 1}, {ada, 25 * time.Hour, 2}, {moved, 25 * time.Hour, 3}, {moved, 26 * time.Hour, 3}} {
		now = start.Add(step.after)
		if s.Seen(t.Context(), step.user); store.writes != step.writes {
			t.Errorf("%v after %s: %d writes, want %d", step.user, step.after, store.writes, step.writes)
		}
	}
	if r, _, err := s.read(t.Context(), "ada"); err != nil || r.Email != "" || !slices.Equal(r.Groups, moved.Groups) {
		t.Errorf("kept is %+v, %v", r, err)
	}
	// A token of the command line can have no address; that of the session stays.
	s.Seen(t.Context(), ada)
	if err := s.Set(t.Context(), governance.User{Name: "ada", Groups: ada.Groups}, Settings{[]Event{Fail}, []string{"mail"}}); err != nil {
		t.Error(err)
	}
}

// 200 tasks that end and one that fails are one message for each receiver that the person chose.
// It is made once, names ten, and has neither the name nor the address of the person.
func TestCollect(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, store, recorded, _ := newService(&log)
	for _, user := range []governance.User{ada, {Name: "eve", Groups: eve.Groups, Email: "eve@example.com"}} {
		if err := s.Set(t.Context(), user, Settings{[]Event{End, Fail, Preempt}, []string{"mail"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Set(t.Context(), ada, Settings{[]Event{End, Fail, Preempt}, []string{"mail", "vision"}}); err != nil {
		t.Fatal(err)
	}
	store.texts[prefix+"odd"] = "{"
	event := func(person, team, name, what, state string) {
		recorded.list = append(recorded.list, history.TaskEvent{Person: person, Team: team, Namespace: "ns-" + team, Name: name, Type: what, State: state})
	}
	for i := range 200 {
		event("ada", "vision", fmt.Sprint("sweep-", i), "Finished", "Succeeded")
	}
	event("ada", "vision", "train", "Admitted", "Running")
	event("ada", "vision", "train", "Finished", "Failed")
	event("ada", "speech", "listen", "Preempted", "Preempted")
	event("ada", "speech", "listen", "Preempted", "Preempted")
	event("grace", "vision", "other", "Finished", "Failed")
	until, err := s.collect(t.Context(), -1)
	if err != nil || until != 205 {
		t.Fatalf("until %d, %v", until, err)
	}
	got := map[string][]alerts.TaskNotice{}
	for _, d := range recorded.added {
		var m alerts.Message
		if err := json.Unmarshal([]byte(d.Message), &m); err != nil {
			t.Fatal(err)
		}
		if m.Person != nameOf("ada") || strings.Contains(d.Message, "ada\"") || strings.Contains(d.Message, "example.com") {
			t.Errorf("the message has %s", d.Message)
		}
		got[d.Receiver] = m.Tasks
	}
	var first []string
	for i := range maxNames {
		first = append(first, fmt.Sprint("sweep-", i))
	}
	failed := alerts.TaskNotice{Event: "fail", Team: "vision", Namespace: "ns-vision", Count: 1, Names: []string{"train"}}
	ended := alerts.TaskNotice{Event: "end", Team: "vision", Namespace: "ns-vision", Count: 200, Names: first}
	want := map[string][]alerts.TaskNotice{
		"vision/notices": {failed, ended},
		"mail/notices":   {failed, {Event: "preempt", Team: "speech", Namespace: "ns-speech", Count: 1, Names: []string{"listen"}}, ended},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(recorded.added) != 2 {
		t.Errorf("%d messages (-want +got):\n%s", len(recorded.added), diff)
	}
	for range 2 {
		if until, err = s.collect(t.Context(), until); err != nil || len(recorded.added) != 2 {
			t.Errorf("made again: %v, %v", recorded.added[2:], err)
		}
	}
	recorded.err = errors.New("down")
	if _, err := s.collect(t.Context(), until); err == nil {
		t.Error("history is down, and messages are made")
	}
	if text := log.String(); !strings.Contains(text, "notices-odd") || strings.Contains(text, "example.com") || strings.Contains(text, "ada") {
		t.Errorf("the log is %s", text)
	}
}

// A message is sent as the person wants it and may see it by then, and to their verified address
// only.
func TestAddress(t *testing.T) {
	t.Parallel()
	s, store, _, policy := newService(&bytes.Buffer{})
	set := func(user governance.User, on ...Event) {
		t.Helper()
		if err := s.Set(t.Context(), user, Settings{on, []string{"mail"}}); err != nil {
			t.Fatal(err)
		}
	}
	vision := alerts.TaskNotice{Event: "end", Team: "vision", Namespace: "ns-vision", Count: 1, Names: []string{"train"}}
	speech := alerts.TaskNotice{Event: "fail", Team: "speech", Namespace: "ns-speech", Count: 1, Names: []string{"listen"}}
	waits := alerts.Message{ID: "m", Person: nameOf("ada"), Tasks: []alerts.TaskNotice{vision, speech}}
	mail := policy.Spec.Alerts.Receivers[0]
	check := func(what string, to v1alpha1.AlertReceiver, want ...alerts.TaskNotice) {
		t.Helper()
		got, m, err := s.Address(t.Context(), to, waits)
		switch {
		case len(want) == 0 && !errors.Is(err, alerts.ErrUnwanted):
			t.Errorf("%s: got %v to %v and error %v, want none", what, m, got.To, err)
		case len(want) > 0 && (err != nil || m.Person != "ada" || !slices.Equal(got.To, []string{"ada@example.com"}) || !cmp.Equal(m.Tasks, want)):
			t.Errorf("%s: got %v to %v and error %v, want %v", what, m, got.To, err, want)
		}
	}
	check("without a record", mail)
	set(ada, End, Fail)
	check("not of teams that ada does not see", mail, vision)
	set(governance.User{Name: "ada", Groups: []string{"vision-team", "speech-team"}, Email: ada.Email}, End, Fail)
	check("of both teams", mail, vision, speech)
	mail.To = []string{"ops@example.com"}
	check("not to the addresses of alerts", mail, vision, speech)
	set(ada, Start)
	check("not what ada does not want any more", mail)
	set(ada, End)
	ofSpeech := mail
	ofSpeech.Team = "speech"
	check("not of another team than that of the receiver", ofSpeech)
	ofLanguage := mail
	ofLanguage.Department = "language"
	check("not of a team outside the department of the receiver", ofLanguage)
	notAllowed := mail
	notAllowed.Notices = ""
	check("not by a receiver that is for alerts only now", notAllowed)
	s.Seen(t.Context(), governance.User{Name: "ada", Groups: ada.Groups})
	check("not without a verified address", mail)
	store.texts[nameOf("ada")] = store.texts[nameOf("ada")] + "}"
	check("not by a record that cannot be read", mail)
}
