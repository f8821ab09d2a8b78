package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"kuota.dev/kuota/governance"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
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

// decisionCache caches the decisions of access reviews. Concurrent lookups of the
// same key share one review. The zero value is ready.
type decisionCache struct {
	once    sync.Once
	cached  *cache.LRUExpireCache // of decision by key
	reviews singleflight.Group
}

type decision struct {
	allowed bool
	err     error // of the review
}

// get returns the cached decision, or that of review.
func (a *decisionCache) get(ctx context.Context, k key, review func(context.Context) (bool, error)) (bool, error) {
	a.once.Do(func() { a.cached = cache.NewLRUExpireCache(maxDecisions) })
	if cached, ok := a.cached.Get(k); ok {
		known, _ := cached.(decision)
		return known.allowed, known.err
	}
	// A caller that stops waiting does not cancel the review for the others.
	result := a.reviews.DoChan(string(k[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		began := time.Now() // a change during the review may be missing in its decision
		allowed, err := review(ctx)
		if err != nil {
			a.cached.Add(k, decision{err: err}, errorTTL)
			return false, err
		}
		a.cached.Add(k, decision{allowed: allowed}, decisionTTL-time.Since(began))
		return allowed, nil
	})
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-result:
		return r.Err == nil && r.Val.(bool), r.Err
	}
}
