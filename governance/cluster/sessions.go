package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SessionType is the type of the Secrets of Sessions.
const SessionType = corev1.SecretType("kuota.dev/session")

const (
	sessionPrefix  = "kuota-session-"
	sessionData    = "sealed"
	sessionLabel   = "kuota.dev/session"
	sessionExpires = "kuota.dev/expires" // annotation, RFC 3339
	sessionSweep   = time.Minute
	// sessionTimeout bounds one request to the API server. A reader waits for it.
	sessionTimeout = 5 * time.Second
)

// Sessions stores texts in Secrets in the namespace of the console, one each: sealed
// sessions, and records of runs and notices. Every replica watches them, so that reading one costs no API call, and
// a session that one replica deletes ends on all.
type Sessions struct {
	namespace string
	clients   kubernetes.Interface
	cache     cache.Cache
	misses    *rate.Limiter // bounds reads of sessions that the cache does not have
	deleted   sync.Map      // by name: deleted by this replica, but maybe still in the cache
	log       *slog.Logger
}

func newSessions(config *rest.Config, mapper meta.RESTMapper, clients kubernetes.Interface, namespace string, counts *watches, log *slog.Logger) (*Sessions, error) {
	watched, err := newRedialingCache(config, cache.Options{
		Scheme: Scheme, Mapper: mapper,
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{sessionLabel: "true"}),
		DefaultTransform:     cache.TransformStripManagedFields(),
		NewInformer:          counts.informer,
	})
	if err != nil {
		return nil, fmt.Errorf("watching sessions: %w", err)
	}
	return &Sessions{namespace: namespace, clients: clients, cache: watched, misses: rate.NewLimiter(20, 40), log: log}, nil
}

// run runs the watch and deletes expired sessions until ctx ends.
func (s *Sessions) run(ctx context.Context) {
	go func() {
		if err := s.cache.Start(ctx); err != nil {
			s.log.Error("watching sessions ended", "error", err)
		}
	}()
	_ = wait.PollUntilContextCancel(ctx, sessionSweep, false, func(ctx context.Context) (bool, error) {
		s.sweep(ctx)
		return false, nil
	})
}

// sweep deletes expired sessions. One that cannot be deleted is tried again by the next sweep.
func (s *Sessions) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sessionSweep)
	defer cancel()
	s.deleted.Range(func(name, _ any) bool {
		err := s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name.(string)}, &corev1.Secret{}, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			s.deleted.Delete(name)
		}
		return true
	})
	var all corev1.SecretList
	if err := s.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Warn("expired sessions not deleted", "error", err)
		return
	}
	for i := range all.Items {
		expires, err := time.Parse(time.RFC3339, all.Items[i].Annotations[sessionExpires])
		if err != nil || time.Now().Before(expires) {
			continue
		}
		if err := s.delete(ctx, all.Items[i].Name); err != nil {
			s.log.Warn("expired session not deleted", "name", all.Items[i].Name, "error", err)
		}
	}
}

// Get returns the text of a session from the cache. version is empty if the
// session does not exist.
func (s *Sessions) Get(ctx context.Context, name string) (sealed, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	if _, gone := s.deleted.Load(sessionPrefix + name); gone {
		return "", "", nil
	}
	var secret corev1.Secret
	err = s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: sessionPrefix + name}, &secret, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		// It may be new, perhaps created by another replica, and not be in the cache yet.
		if !s.misses.Allow() {
			return "", "", &governance.Error{Kind: governance.Unavailable, Op: "read session", Message: "Too many unknown sessions are requested. Try again in a moment."}
		}
		var live *corev1.Secret
		if live, err = s.clients.CoreV1().Secrets(s.namespace).Get(ctx, sessionPrefix+name, metav1.GetOptions{}); err == nil {
			secret = *live
		}
	}
	return textOf(&secret, err)
}

// Known is Get without a read of what the cache does not have.
func (s *Sessions) Known(ctx context.Context, name string) (text, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	if _, gone := s.deleted.Load(sessionPrefix + name); gone {
		return "", "", nil
	}
	var secret corev1.Secret
	err = s.cache.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: sessionPrefix + name}, &secret, client.UnsafeDisableDeepCopy)
	return textOf(&secret, err)
}

// Latest is Get from the API server, for what changes while a person looks at it.
func (s *Sessions) Latest(ctx context.Context, name string) (text, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	secret, err := s.clients.CoreV1().Secrets(s.namespace).Get(ctx, sessionPrefix+name, metav1.GetOptions{})
	return textOf(secret, err)
}

// textOf returns the text of a Secret that was read; empty for none.
func textOf(secret *corev1.Secret, err error) (text, version string, _ error) {
	switch {
	case apierrors.IsNotFound(err):
		return "", "", nil
	case err != nil:
		return "", "", Translate("read session", err)
	}
	return string(secret.Data[sessionData]), secret.ResourceVersion, nil
}

// WithPrefix returns the texts whose names begin with a prefix, from the cache. Those of
// sign-ins have hashes as names.
func (s *Sessions) WithPrefix(ctx context.Context, prefix string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	var all corev1.SecretList
	if err := s.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, Translate("list records", err)
	}
	found := map[string]string{}
	for i := range all.Items {
		name := strings.TrimPrefix(all.Items[i].Name, sessionPrefix)
		if _, gone := s.deleted.Load(all.Items[i].Name); !gone && strings.HasPrefix(name, prefix) {
			found[name] = string(all.Items[i].Data[sessionData])
		}
	}
	return found, nil
}

// Create creates a session. It returns false if the name is taken.
func (s *Sessions) Create(ctx context.Context, name, sealed string, expires time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	_, err := s.clients.CoreV1().Secrets(s.namespace).Create(ctx, s.secret(name, sealed, expires), metav1.CreateOptions{FieldManager: FieldManager})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err == nil {
		s.deleted.Delete(sessionPrefix + name)
	}
	return err == nil, Translate("keep session", err)
}

// Update replaces the text of a session that was read at version. It returns
// false if the session changed or was deleted since.
func (s *Sessions) Update(ctx context.Context, name, sealed string, expires time.Time, version string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	secret := s.secret(name, sealed, expires)
	secret.ResourceVersion = version
	_, err := s.clients.CoreV1().Secrets(s.namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: FieldManager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, Translate("keep session", err)
}

// Delete deletes a session if it exists.
func (s *Sessions) Delete(ctx context.Context, name string) error {
	return s.delete(ctx, sessionPrefix+name)
}

func (s *Sessions) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	err := client.IgnoreNotFound(s.clients.CoreV1().Secrets(s.namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	if err == nil {
		s.deleted.Store(name, true)
	}
	return Translate("delete session", err)
}

func (s *Sessions) secret(name, sealed string, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: sessionPrefix + name,
			Labels:      map[string]string{sessionLabel: "true", "app.kubernetes.io/managed-by": FieldManager},
			Annotations: map[string]string{sessionExpires: expires.UTC().Format(time.RFC3339)},
		},
		Type: SessionType,
		Data: map[string][]byte{sessionData: []byte(sealed)},
	}
}
