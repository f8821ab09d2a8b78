package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"golang.org/x/oauth2"
)

// ErrAway is wrapped by every error that the same attempt may not meet once
// the provider answers again.
var ErrUnavailable = errors.New("the sign-in provider does not answer")

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

// aboutThePerson are the codes with which a token endpoint says no to somebody
// (RFC 6749, 5.2; OpenID Connect Core 1.0, 3.1.2.6). All others are about this
// console, such as a client secret that was changed at the provider first.
var userErrorCodes = map[string]bool{
	"invalid_grant": true, "access_denied": true,
	"login_required": true, "interaction_required": true, "consent_required": true, "account_selection_required": true,
}

// away wraps what went wrong between this console and the provider in ErrAway,
// and leaves what the provider says about a person to the caller.
func asUnavailable(err error) error {
	var network net.Error
	var address *url.Error
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && userErrorCodes[answer.ErrorCode]:
		return nil
	case errors.As(err, &answer):
		return fmt.Errorf("%w: %w", ErrUnavailable, withoutResponseBody(err))
	case errors.As(err, &network), errors.As(err, &address), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
