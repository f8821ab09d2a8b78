package live

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrTooMany is the error of a user who asks more often than one may.
var ErrTooMany = errors.New("you asked for many simulations in a short time")

// A user may ask one question a second in the long run, and some at once: a page
// asks several.
const (
	questionPeriod = time.Second
	questionBurst  = 5
)

// maxLimits is the number of users from which those who may ask all questions at
// once are forgotten.
const maxLimits = 1000

// limits has the rate limiter of each user who asked lately.
type limits struct {
	mu    sync.Mutex
	users map[string]*rate.Limiter
}

// allows reports whether a user may ask another question now.
func (s *Simulator) allows(user string) bool {
	l, now := &s.limits, s.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == nil {
		l.users = map[string]*rate.Limiter{}
	}
	if len(l.users) >= maxLimits {
		for name, limiter := range l.users {
			if limiter.TokensAt(now) >= questionBurst {
				delete(l.users, name)
			}
		}
	}
	if l.users[user] == nil {
		l.users[user] = rate.NewLimiter(rate.Every(questionPeriod), questionBurst)
	}
	return l.users[user].AllowN(now, 1)
}
