package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"
)

// ErrAway is wrapped by every error that the same attempt may not meet once
// the provider answers again.
var ErrAway = errors.New("the sign-in provider does not answer")

// Refusal is why somebody is not signed in.
type Refusal struct {
	Message string // for the person
	Err     error  // the cause, for the log
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Message + ": " + r.Err.Error()
	}
	return r.Message
}

func (r *Refusal) Unwrap() error { return r.Err }

// refuse makes a Refusal; its cause is written as fmt.Errorf does.
func refuse(message, cause string, args ...any) error {
	return &Refusal{Message: message, Err: fmt.Errorf(cause, args...)}
}

// away wraps what went wrong on the way to the provider in ErrAway, and
// leaves all else to the caller.
func away(err error) error {
	var network net.Error
	var address *url.Error
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && answer.Response.StatusCode < http.StatusInternalServerError && answer.Response.StatusCode != http.StatusTooManyRequests:
		return nil
	case errors.As(err, &answer), errors.As(err, &network), errors.As(err, &address), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}
