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
)

const (
	// keep is how long an answer counts, yes or no. A permission that somebody
	// lost is lost here within it.
	keep = 10 * time.Second
	// keepError is how soon what could not be asked is asked again. Meanwhile the
	// answer is the same error: many pages do not ask a struggling API server
	// many times.
	keepError = time.Second
	// askLimit is how long one question may take.
	askLimit = 5 * time.Second
	// maxAnswers bounds the memory that answers take.
	maxAnswers = 100_000
)

// key is who asks for what. The person is always in it: their name and all of
// their groups.
type key [sha256.Size]byte

func keyOf(user governance.User, what authorizationv1.ResourceAttributes) key {
	// JSON tells names apart whatever characters are in them.
	text, err := json.Marshal([]any{user.Name, user.Groups, what})
	if err != nil {
		panic(err) // strings always encode
	}
	return sha256.Sum256(text)
}

// answers remembers what the API server said, and for a moment that it said
// nothing.
type decisionCache struct {
	mu      sync.Mutex
	known   map[key]answer
	swept   time.Time
	asking  singleflight.Group
	nowFunc func() time.Time // the clock; nil takes the real one
}

type answer struct {
	allowed bool
	err     error // why there is none
	until   time.Time
}

func (a *decisionCache) get(ctx context.Context, k key, ask func(context.Context) (bool, error)) (bool, error) {
	now := a.now()
	a.mu.Lock()
	known, ok := a.known[k]
	a.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.allowed, known.err
	}
	// Whoever gives up waiting takes nobody else's answer away.
	result := a.asking.DoChan(string(k[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer cancel()
		asked := a.now() // what changes while it is asked may not be in the answer
		allowed, err := ask(ctx)
		switch {
		case err == nil:
			a.put(k, answer{allowed: allowed, until: asked.Add(keep)})
		default:
			a.put(k, answer{err: err, until: a.now().Add(keepError)})
		}
		return err == nil && allowed, err
	})
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-result:
		return r.Err == nil && r.Val.(bool), r.Err
	}
}

func (a *decisionCache) put(k key, known answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); a.known == nil || len(a.known) >= maxAnswers {
		a.known = map[key]answer{}
	} else if now.Sub(a.swept) > keep {
		for k, old := range a.known {
			if !now.Before(old.until) {
				delete(a.known, k)
			}
		}
		a.swept = now
	}
	a.known[k] = known
}

func (a *decisionCache) now() time.Time {
	if a.nowFunc != nil {
		return a.nowFunc()
	}
	return time.Now()
}
