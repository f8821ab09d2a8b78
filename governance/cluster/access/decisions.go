package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// decisionTTL is how long a decision is cached, allowed or not. A permission
	// that a user lost ends within it.
	decisionTTL = 10 * time.Second
	// errorTTL is how long an error is cached, so that many pages do not send many
	// reviews to a struggling API server.
	errorTTL = time.Second
	// reviewTimeout bounds one review.
	reviewTimeout = 5 * time.Second
	// maxDecisions bounds the memory of the cache.
	maxDecisions = 100_000
)

// key identifies a user, by name and all groups, and what they want to do.
type key [sha256.Size]byte

func keyOf(user governance.User, what authorizationv1.ResourceAttributes) key {
	// JSON keeps names apart whatever characters they contain.
	text, err := json.Marshal([]any{user.Name, user.Groups, what})
	if err != nil {
		panic(err) // strings always encode
	}
	return sha256.Sum256(text)
}

// reviewCache caches the results of reviews. Concurrent lookups of the same key share one
// review. The zero value is ready.
type reviewCache[V any] struct {
	once    sync.Once
	cached  *cache.LRUExpireCache // of result by key
	reviews singleflight.Group
}

type result[V any] struct {
	value V
	err   error // of the review
}

// get returns the cached result, or that of review. The cache has at most so many results.
func (c *reviewCache[V]) get(ctx context.Context, k key, most int, review func(context.Context) (V, error)) (V, error) {
	c.once.Do(func() { c.cached = cache.NewLRUExpireCache(most) })
	if cached, ok := c.cached.Get(k); ok {
		known, _ := cached.(result[V])
		return known.value, known.err
	}
	// A caller that stops waiting does not cancel the review for the others.
	reviewed := c.reviews.DoChan(string(k[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		began := time.Now() // a change during the review may be missing in its result
		var found result[V]
		found.value, found.err = review(ctx)
		ttl := decisionTTL - time.Since(began)
		if found.err != nil {
			ttl = errorTTL
		}
		c.cached.Add(k, found, ttl)
		return found, nil
	})
	select {
	case <-ctx.Done():
		return *new(V), ctx.Err()
	case r := <-reviewed:
		found, _ := r.Val.(result[V])
		return found.value, found.err
	}
}

// May reports whether user can do something to a resource in a namespace. The
// API server authorizes the request again.
func (s *Service) May(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	return s.may(ctx, user, attributes(verb, resource, namespace))
}

// attributes describes a request; the resource may have a subresource, as in
// deployments/scale.
func attributes(verb string, resource schema.GroupVersionResource, namespace string) authorizationv1.ResourceAttributes {
	name, subresource, _ := strings.Cut(resource.Resource, "/")
	return authorizationv1.ResourceAttributes{Verb: verb, Group: resource.Group, Resource: name, Subresource: subresource, Namespace: namespace}
}

// ConsoleMay reports whether the console's account can do that for user: as
// itself for the local user of a console without sign-in, else by
// impersonation, constrained (Kubernetes 1.36) or not.
func (s *Service) ConsoleMay(ctx context.Context, user governance.User, verb string, resource schema.GroupVersionResource, namespace string) (bool, error) {
	return s.consoleMay(ctx, user, attributes(verb, resource, namespace))
}

func (s *Service) consoleMay(ctx context.Context, user governance.User, what authorizationv1.ResourceAttributes) (bool, error) {
	if user.Local {
		return s.console(ctx, what)
	}
	mode, legacy := "user-info", authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"}
	if user.ServiceAccount {
		if !user.Writes {
			return false, nil
		}
		mode, legacy.Resource = "serviceaccount", "serviceaccounts"
		legacy.Namespace, legacy.Name, _ = strings.Cut(strings.TrimPrefix(user.Name, "system:serviceaccount:"), ":")
	}
	what.Verb = "impersonate-on:" + mode + ":" + what.Verb
	may, err := s.console(ctx, what)
	if err != nil || may {
		return may, err
	}
	return s.console(ctx, legacy)
}

// console sends a review for the console's account. Its cache key has an empty
// user name, which no user has.
func (s *Service) console(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	return s.decisions.get(ctx, keyOf(governance.User{}, what), maxDecisions, func(ctx context.Context) (bool, error) { return s.Cluster.ConsoleAllowed(ctx, what) })
}

// MayReadLogs reports whether user can read the logs of pods in a namespace, and the
// console can do so for them. The API server authorizes the request again.
func (s *Service) MayReadLogs(ctx context.Context, user governance.User, namespace string) (bool, error) {
	what := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: namespace}
	may, err := s.may(ctx, user, what)
	if err != nil || !may {
		return false, err
	}
	return s.consoleMay(ctx, user, what)
}
