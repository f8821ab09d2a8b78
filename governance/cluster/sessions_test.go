package cluster

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sessionCache has expired sessions, and one whose time cannot be read.
type sessionCache struct {
	cache.Cache
	sessions *Sessions
}

func (c sessionCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, _ := list.(*corev1.SecretList)
	for _, name := range []string{"unreadable", "hanging", "behind"} {
		all.Items = append(all.Items, *c.sessions.secret(name, "", time.Now().Add(-time.Hour)))
	}
	all.Items[0].Annotations[sessionExpires] = "soon"
	return nil
}

// A session whose deletion hangs, or whose time cannot be read, keeps none behind it.
func TestOddSessionsAreSwept(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	deleted := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before which the server does not notice that the client gave up
		name := path.Base(r.URL.Path)
		if name == sessionPrefix+"hanging" {
			<-r.Context().Done()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		deleted[name] = true
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`))
	}))
	t.Cleanup(server.Close)
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := &Sessions{namespace: "kuota", clients: clients, log: slog.New(slog.DiscardHandler)}
	s.cache = sessionCache{sessions: s}
	s.sweep(t.Context())
	mu.Lock()
	defer mu.Unlock()
	if len(deleted) != 1 || !deleted[sessionPrefix+"behind"] {
		t.Errorf("deleted %v, want only the session behind", deleted)
	}
}
