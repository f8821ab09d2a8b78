package access

import (
	"context"
	"crypto/sha256"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
)

// maxTokens bounds the memory of the cache of tokens.
const maxTokens = 10_000

// Tokens finds the service accounts of bearer tokens. It caches each answer for
// decisionTTL, so that a program that sends many requests costs one review, and a token
// that is revoked ends within that. The cache has hashes of tokens only.
type Tokens struct {
	Cluster *cluster.Cluster

	accounts reviewCache[account]
}

type account struct {
	user  governance.User
	known bool
}

// ServiceAccount returns the service account of a token; known is false for every other
// token. Concurrent calls for one token share a review.
func (t *Tokens) ServiceAccount(ctx context.Context, token string) (user governance.User, known bool, err error) {
	found, err := t.accounts.get(ctx, sha256.Sum256([]byte(token)), maxTokens, func(ctx context.Context) (found account, err error) {
		found.user, found.known, err = t.Cluster.ServiceAccount(ctx, token)
		return found, err
	})
	return found.user, found.known, err
}
