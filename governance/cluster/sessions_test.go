package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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
	for _, name := range []string{"unreadable", "odd", "behind"} {
		all.Items = append(all.Items, *c.sessions.secret(name, "", time.Now().Add(-time.Hour)))
	}
	all.Items[0].Annotations[sessionExpires] = "soon"
	return nil
}

// A session that cannot be deleted, or whose time cannot be read, keeps none behind it.
func TestOddSessionsAreSwept(t *testing.T) {
	clients := fake.NewClientset()
	deleted := map[string]bool{}
	clients.PrependReactor("delete", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName()
		if name == sessionPrefix+"odd" {
			return true, nil, errors.New("odd")
		}
		deleted[name] = true
		return true, nil, nil
	})
	s := &Sessions{namespace: "kuota", clients: clients, log: slog.New(slog.DiscardHandler)}
	s.cache = sessionCache{sessions: s}
	s.sweep(t.Context())
	if len(deleted) != 1 || !deleted[sessionPrefix+"behind"] {
		t.Errorf("deleted %v, want only the session behind", deleted)
	}
}
