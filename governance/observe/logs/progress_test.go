package logs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The progress of a task is read as its reader, from the last lines of one pod, and not again
// for a moment.
func TestProgress(t *testing.T) {
	l := newLab(t, text(
		`2026-11-30T12:00:01Z {"event": "progress", "step": 1}`, `2026-11-30T12:00:02Z a line of "progress"`, `2026-11-30T12:00:03Z {"event": "progress", "step": 2, "time": "2026-11-30T12:00:02.5+00:00"}`))
	for range 2 {
		got, err := l.Progress(t.Context(), ada, query.Task)
		if err != nil || len(got) != 2 || got[0].Step != 1 || got[1].Step != 2 {
			t.Fatalf("got %+v, %v, want two lines", got, err)
		}
		if at := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC); !got[0].At.Equal(at) || got[1].At.Sub(at) != 1500*time.Millisecond {
			t.Errorf("got times %s and %s", got[0].At, got[1].At)
		}
	}
	if len(l.requests) != 1 || l.requests[0].URL.Query().Encode() != "container=main&tailLines=2000&timestamps=true" || l.requests[0].Header.Get("Impersonate-User") != "ada" {
		t.Errorf("got %d requests, the first of %s as %s", len(l.requests), l.requests[0].URL.RawQuery, l.requests[0].Header.Get("Impersonate-User"))
	}
	l.set(func() { l.mayRead = false })
	if got, err := l.Progress(t.Context(), ada, query.Task); got != nil || err != nil {
		t.Errorf("without permission: got %+v, %v", got, err)
	}
	if len(l.open) > 0 {
		t.Errorf("got open logs %v, want none", l.open)
	}
}

// Tasks without lines of progress have none, and neither have logs that cannot be read, hang,
// or have no end.
func TestNoProgress(t *testing.T) {
	endless := strings.Repeat("x", 64<<10)
	for name, answer := range map[string]http.HandlerFunc{
		"other lines": text("2026-11-30T12:00:01Z step 1"),
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no kubelet", http.StatusInternalServerError)
		},
		"hangs": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, endless); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, answer)
			began := time.Now()
			got, err := l.Progress(t.Context(), ada, query.Task)
			if err != nil || got != nil {
				t.Errorf("got %+v, %v, want none", got, err)
			}
			if took := time.Since(began); name == "hangs" && took < progressWait {
				t.Errorf("the page waited %s, want %s", took, progressWait)
			}
		})
	}
	l := newLab(t, text("a"))
	l.pods = nil
	if got, err := l.Progress(t.Context(), ada, query.Task); got != nil || err != nil || len(l.requests) > 0 {
		t.Errorf("without pods: got %+v, %v, %d requests", got, err, len(l.requests))
	}
}

// Of many pods the first two that run are read: those of the first workers.
func TestProgressOfManyPods(t *testing.T) {
	var asked []string
	l := newLab(t, nil)
	l.answer = func(http.ResponseWriter, *http.Request) {}
	pod := func(name string, at *int32, phase corev1.PodPhase) *index.Pod {
		p := index.New(time.Now).PodOf(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main"}}}, Status: corev1.PodStatus{Phase: phase},
		})
		p.Index = at
		return p
	}
	l.pods = nil
	for i := range 12 {
		l.pods = append(l.pods, pod(fmt.Sprintf("train-%d", 11-i), new(int32(11-i)), corev1.PodRunning))
	}
	l.pods[11].Phase = corev1.PodFailed
	l.Service.Cluster = logsOf(func(name string) string {
		asked = append(asked, name)
		return ""
	})
	if got, err := l.Progress(t.Context(), ada, query.Task); got != nil || err != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	if want := "train-1 train-2"; strings.Join(asked, " ") != want {
		t.Errorf("the logs of %v were read, want %s", asked, want)
	}
}

// logsOf is an API server that has the log of each pod.
type logsOf func(pod string) string

func (l logsOf) LogAs(_ context.Context, _ governance.User, _, pod string, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(l(pod))), nil
}
