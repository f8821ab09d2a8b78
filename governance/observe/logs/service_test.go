package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// lab is a task with one pod, and an API server that has its log.
type lab struct {
	*Service
	mu       sync.Mutex
	pods     []*index.Pod
	mayRead  bool
	requests []*http.Request
	answer   http.HandlerFunc // for the log
}

func (l *lab) Pods(context.Context, governance.User, tasks.Address) ([]*index.Pod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pods, nil
}

func (l *lab) CanSee(context.Context, governance.User, string) (bool, error) { return true, nil }

func (l *lab) MayReadLogs(context.Context, governance.User, string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mayRead, nil
}

// set changes the lab while logs are followed.
func (l *lab) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

var (
	ada   = governance.User{Name: "ada", Groups: []string{"vision"}}
	query = Query{Task: tasks.Address{Namespace: "team", Kind: "job", Name: "train"}, Pod: "train-0"}
)

// newLab returns a lab whose API server answers a request for a log by answer.
func newLab(t *testing.T, answer http.HandlerFunc) *lab {
	t.Helper()
	l := &lab{mayRead: true, answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.set(func() { l.requests = append(l.requests, r) })
		if r.URL.Path != "/api/v1/namespaces/team/pods/train-0/log" {
			t.Errorf("got a request of %s", r.URL)
		}
		l.answer(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l.Service = &Service{Cluster: c, Access: l, Tasks: l}
	l.pods = []*index.Pod{podOf(corev1.PodStatus{Phase: corev1.PodRunning})}
	return l
}

func podOf(status corev1.PodStatus) *index.Pod {
	return index.New(time.Now).PodOf(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-0", UID: "1"},
		Spec:       corev1.PodSpec{NodeName: "node-1", InitContainers: []corev1.Container{{Name: "prepare"}}, Containers: []corev1.Container{{Name: "main"}, {Name: "metrics"}}},
		Status:     status,
	})
}

func ended(code int32) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}}
}

func text(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") }
}

// refuse answers as the API server does.
func refuse(err *apierrors.StatusError) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := err.ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}
}

// A log is read as its reader, of the container that was asked for.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Query)
		want   string
	}{
		"the first container":   {want: "container=main&tailLines=500"},
		"an init container":     {change: func(q *Query) { q.Container = "prepare" }, want: "container=prepare&tailLines=500"},
		"a container of no pod": {change: func(q *Query) { q.Container = "other" }, want: "container=main&tailLines=500"},
		"the previous run":      {change: func(q *Query) { q.Previous = true }, want: "container=main&previous=true&tailLines=500"},
		"timestamps":            {change: func(q *Query) { q.Timestamps = true }, want: "container=main&tailLines=500&timestamps=true"},
		"a search":              {change: func(q *Query) { q.Contains = "A" }, want: "container=main&tailLines=50000"},
	} {
		t.Run(name, func(t *testing.T) {
			l, q := newLab(t, text("2026-01-02T03:04:05Z a")), query
			if tc.change != nil {
				tc.change(&q)
			}
			update, err := l.Read(t.Context(), ada, q)
			if err != nil || len(update.Lines) != 1 || !strings.HasSuffix(update.Lines[0].Text, "a") {
				t.Fatalf("got %+v, %v, want one line", update, err)
			}
			request := l.requests[0]
			if got := request.URL.Query().Encode(); got != tc.want {
				t.Errorf("got parameters %s, want %s", got, tc.want)
			}
			if user, group := request.Header.Get("Impersonate-User"), request.Header.Get("Impersonate-Group"); user != "ada" || group != "vision" {
				t.Errorf("got a request as %q of %q, want ada of vision", user, group)
			}
		})
	}
}

// Every answer without a log is a plain sentence.
func TestSentences(t *testing.T) {
	internal := func(message string) *apierrors.StatusError {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
	}
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		answer *apierrors.StatusError
		change func(*lab)
		want   string
	}{
		"no permission":     {change: func(l *lab) { l.mayRead = false }, want: "You do not have permission to read logs in namespace team: get pods/log."},
		"denied meanwhile":  {answer: apierrors.NewForbidden(pods, "train-0", errors.New("no")), want: "You do not have permission to read logs in namespace team: get pods/log."},
		"no pod":            {change: func(l *lab) { l.pods = nil }, want: "The pod does not exist any more, and Kubernetes keeps no log of it."},
		"deleted meanwhile": {answer: apierrors.NewNotFound(pods, "train-0"), want: "The pod does not exist any more, and Kubernetes keeps no log of it."},
		"no node":           {change: func(l *lab) { l.pods[0].Node = "" }, want: "The pod has no node yet, so it has written nothing."},
		"a deleted node":    {answer: apierrors.NewNotFound(corev1.Resource("nodes"), "node-1"), want: "Node node-1 does not exist any more, and the log with it."},
		"not started":       {answer: apierrors.NewBadRequest(`container "main" in pod "train-0" is waiting to start: ContainerCreating`), want: "The container has not started yet, so it has written nothing."},
		"an image": {answer: apierrors.NewBadRequest(`container "main" in pod "train-0" is waiting to start: trying and failing to pull image`), change: func(l *lab) {
			l.pods[0] = podOf(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}}}}})
		}, want: "The image of container main is not on the node, and its pull policy is Never."},
		"no previous run":       {answer: apierrors.NewBadRequest(`previous terminated container "main" in pod "train-0" not found`), want: "Container main has no earlier run whose log is kept."},
		"no kubelet":            {answer: internal(`Get "https://10.0.0.1:10250/containerLogs/team/train-0/main": dial tcp 10.0.0.1:10250: connect: connection refused`), want: "The API server cannot reach the kubelet of node node-1, which has the log."},
		"no address of a node":  {answer: internal("no preferred addresses found; known addresses: []"), want: "The API server cannot reach the kubelet of node node-1, which has the log."},
		"an unknown error":      {answer: internal("odd"), want: "The log cannot be read from node node-1. Kubernetes reports: odd"},
		"an unknown long error": {answer: internal(strings.Repeat("ü", 300)), want: "The log cannot be read from node node-1. Kubernetes reports: " + strings.Repeat("ü", 150) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := text("a")
			if tc.answer != nil {
				answer = refuse(tc.answer)
			}
			l := newLab(t, answer)
			if tc.change != nil {
				tc.change(l)
			}
			_, err := l.Read(t.Context(), ada, query)
			if err == nil {
				t.Fatal("got a log, want an error")
			}
			if got := Sentence(err); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if len(l.open) > 0 {
				t.Errorf("got open logs %v, want none", l.open)
			}
		})
	}
}

// followed collects what Follow sends.
type followed struct {
	updates chan Update
	stop    context.CancelFunc
	ended   chan error
}

func (l *lab) followed(t *testing.T) *followed {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &followed{updates: make(chan Update), stop: stop, ended: make(chan error, 1)}
	go func() {
		f.ended <- l.Follow(ctx, ada, query, func(u Update) error {
			select {
			case f.updates <- u:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-f.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow ended: %v", err)
		}
		if len(l.open) > 0 {
			t.Errorf("got open logs %v, want none", l.open)
		}
	})
	return f
}

// next returns the next update that satisfies is.
func (f *followed) next(t *testing.T, what string, is func(Update) bool) Update {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case u := <-f.updates:
			if is(u) {
				return u
			}
		case <-deadline:
			t.Fatalf("no update within 20 s: %s", what)
		}
	}
}

// A container that ends says how, and its lines remain.
func TestFollowToTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(*lab)
		want string
	}{
		"success":             {end: func(l *lab) { l.pods[0] = podOf(ended(0)) }, want: "The container has ended."},
		"failure":             {end: func(l *lab) { l.pods[0] = podOf(ended(3)) }, want: "Container main ended with exit code 3."},
		"deletion":            {end: func(l *lab) { l.pods = nil }, want: deletedNote},
		"another of its name": {end: func(l *lab) { p := *l.pods[0]; p.UID = types.UID("2"); l.pods = []*index.Pod{&p} }, want: deletedNote},
		"a restart": {end: func(l *lab) {
			l.pods[0] = podOf(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}})
		}, want: "The container ended and was started again. Reload the page to see its new log."},
	} {
		t.Run(name, func(t *testing.T) {
			finish := make(chan struct{})
			l := newLab(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintln(w, "first")
				_ = http.NewResponseController(w).Flush()
				<-finish
				fmt.Fprint(w, "last")
			})
			f := l.followed(t)
			f.next(t, "the first line", func(u Update) bool { return u.Reset && len(u.Lines) == 1 && u.Lines[0].Text == "first" })
			l.set(func() { tc.end(l) })
			close(finish)
			f.next(t, "the last line", func(u Update) bool { return !u.Reset && len(u.Lines) == 1 && u.Lines[0].Text == "last" })
			note := f.next(t, "the note", func(u Update) bool { return u.Note != "" })
			if note.Note != tc.want || note.Reset || note.Clear || len(note.Lines) > 0 {
				t.Errorf("got %+v, want only the note %q", note, tc.want)
			}
		})
	}
}

// A log is opened again after an interruption, and one that cannot be opened yet is
// tried again.
func TestFollowTriesAgain(t *testing.T) {
	t.Parallel()
	opened := 0
	l := newLab(t, nil)
	l.answer = func(w http.ResponseWriter, r *http.Request) {
		switch opened++; opened {
		case 1:
			refuse(apierrors.NewBadRequest(`container "main" in pod "train-0" is waiting to start: ContainerCreating`))(w, r)
		case 2:
			text("a")(w, r)
		default:
			text("a", "b")(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
	f := l.followed(t)
	f.next(t, "a note", func(u Update) bool { return strings.Contains(u.Note, "has not started yet") && !u.Clear })
	f.next(t, "the log", func(u Update) bool { return u.Reset && len(u.Lines) == 1 && u.Note == "" })
	f.next(t, "the log again", func(u Update) bool { return u.Reset && len(u.Lines) == 2 })
}

// A reader who loses the permission keeps no line, although the API server sends more.
func TestFollowWhileAllowed(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(w, "secret")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	})
	f := l.followed(t)
	f.next(t, "the log", func(u Update) bool { return len(u.Lines) > 0 })
	l.set(func() { l.mayRead = false })
	denied := f.next(t, "the denial", func(u Update) bool { return u.Clear })
	if !strings.Contains(denied.Note, "permission") || len(denied.Lines) > 0 {
		t.Errorf("got %+v, want a note without lines", denied)
	}
}

// The same holds after the log has ended.
func TestEndedWhileAllowed(t *testing.T) {
	t.Parallel()
	l := newLab(t, text("secret"))
	l.pods[0] = podOf(ended(0))
	f := l.followed(t)
	f.next(t, "the end", func(u Update) bool { return u.Note == "The container has ended." })
	l.set(func() { l.mayRead, l.pods = false, nil })
	f.next(t, "the denial", func(u Update) bool { return u.Clear && strings.Contains(u.Note, "permission") })
}

// A user has at most MaxOpen logs open, others are not affected, and a closed log can
// be opened again.
func TestOpenLogsAreLimited(t *testing.T) {
	l := newLab(t, text("a"))
	var open []io.Closer
	for range MaxOpen {
		log, err := l.Open(t.Context(), ada, query)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, log)
	}
	_, err := l.Open(t.Context(), ada, query)
	if want := "You have 10 logs open, which is the limit. Close one of them."; err == nil || Sentence(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	other, err := l.Open(t.Context(), governance.User{Name: "grace"}, query)
	if err != nil {
		t.Errorf("of another user: %v", err)
	} else {
		other.Close()
	}
	open[0].Close()
	open[0].Close() // twice counts once
	again, err := l.Open(t.Context(), ada, query)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Open(t.Context(), ada, query); err == nil {
		t.Error("a log that was closed twice counts twice")
	}
	for _, log := range append(open[1:], again) {
		log.Close()
	}
	if len(l.open) > 0 {
		t.Errorf("got open logs %v, want none", l.open)
	}
}
