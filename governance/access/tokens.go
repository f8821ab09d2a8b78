package access

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// maxTokens bounds the memory of the cache of tokens.
const maxTokens = 10_000

// Tokens finds the service accounts of bearer tokens. It caches each answer for
// decisionTTL, so that a program that sends many requests costs one review, and a token
// that is revoked ends within that. The cache has hashes of tokens only.
type Tokens struct {
	Cluster *cluster.Cluster

	once    sync.Once
	cached  *cache.LRUExpireCache // of account by hash
	reviews singleflight.Group
}

type account struct {
	user  governance.User
	known bool
}

// ServiceAccount returns the service account of a token; known is false for every other
// token. Concurrent calls for one token share a review.
func (t *Tokens) ServiceAccount(ctx context.Context, token string) (user governance.User, known bool, err error) {
	t.once.Do(func() { t.cached = cache.NewLRUExpireCache(maxTokens) })
	hash := sha256.Sum256([]byte(token))
	if found, ok := t.cached.Get(hash); ok {
		a, _ := found.(account)
		return a.user, a.known, nil
	}
	result := t.reviews.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		began := time.Now()
		user, known, err := t.Cluster.ServiceAccount(ctx, token)
		if err != nil {
			return account{}, err
		}
		t.cached.Add(hash, account{user, known}, decisionTTL-time.Since(began))
		return account{user, known}, nil
	})
	select {
	case <-ctx.Done():
		return user, false, ctx.Err()
	case r := <-result:
		a, _ := r.Val.(account)
		return a.user, a.known, r.Err
	}
}
