package cluster_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"kuota.dev/kuota/governance/cluster"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A replica that no longer leads writes no versions: a leader that was paused would create
// pruned ones again.
func TestRevisionsAreFenced(t *testing.T) {
	requests := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	refused := errors.New("not the leader")
	fence := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return next.RoundTrip(r)
			}
			return nil, refused
		})
	}
	c, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{Namespace: "kuota-system", NoSessions: true, Fence: fence, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	revision := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "allocation-a-1"}}
	if _, err := c.Revisions.Create(t.Context(), revision); !errors.Is(err, refused) {
		t.Errorf("create: got %v, want the error of the fence", err)
	}
	if err := c.Revisions.Delete(t.Context(), revision.Name); !errors.Is(err, refused) {
		t.Errorf("delete: got %v, want the error of the fence", err)
	}
	if _, err := c.Revisions.Get(t.Context(), revision.Name); errors.Is(err, refused) {
		t.Errorf("get: got %v", err)
	}
	close(requests)
	for request := range requests {
		if request != "GET /apis/apps/v1/namespaces/kuota-system/controllerrevisions/allocation-a-1" {
			t.Errorf("the API server got %s", request)
		}
	}
}
