package governance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
)

// User is the identity that a request acts as.
type User struct {
	Name   string   // in Kubernetes
	Groups []string // in Kubernetes, without those that the API server adds
	Email  string   // that the sign-in provider says is verified; empty for none
	// Local marks the only identity of a console without sign-in. It acts with the
	// permissions of the console, which listens on loopback only.
	Local bool
	From  string // remote address, for the audit
	// ServiceAccount marks an account of Kubernetes that the API server confirmed by its
	// token. It reads what RBAC allows it, and nothing is done as it unless Writes is set.
	ServiceAccount bool
	// Writes marks a service account that an admin allowed by name to write: the console
	// impersonates it as other users.
	Writes bool
}

// Find returns the first item of a list for which is returns true, and false if there is
// none.
func Find[T any](list []T, is func(T) bool) (item T, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return item, false
}

// ErrPanic is the error of what panicked.
var ErrPanic = errors.New("panic")

// Recovered returns the error of do, or that do panicked, which it logs. What runs in a
// goroutine of its own calls it around an object that users wrote: the panic would end the
// process, for the same object again at each start.
func Recovered(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, cause)
			slog.Default().Error("panic in background work", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	return do()
}

// Sleep returns after d, or with the error of ctx when it ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
