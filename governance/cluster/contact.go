package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
)

// How often the API server is asked whether it is there, how long it may take
// to answer, and how long it may stay silent before it counts as away.
const (
	contactInterval = time.Second
	contactTimeout  = 2 * time.Second
	contactLost     = 4 * time.Second
)

// Contact is how long ago the API server last answered. A watch alone does not
// tell: over a broken network it stays silent for minutes.
type Contact struct {
	last atomic.Int64 // Unix nanoseconds; 0 before the first answer
}

// Age is the time since the API server last answered. ok is false while it
// does not answer, and before it ever has.
func (c *Contact) Age(now time.Time) (age time.Duration, ok bool) {
	last := c.last.Load()
	if last == 0 {
		return 0, false
	}
	age = max(0, now.Sub(time.Unix(0, last)))
	return age, age < contactLost
}

// Last is when the API server answered last; zero before it ever did.
func (c *Contact) Last() time.Time {
	last := c.last.Load()
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(0, last)
}

// keep asks until ctx ends.
func (c *Contact) keep(ctx context.Context, clients kubernetes.Interface) {
	ticker := time.NewTicker(contactInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, contactTimeout)
		if _, err := clients.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(attempt); err == nil {
			c.last.Store(time.Now().UnixNano())
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
