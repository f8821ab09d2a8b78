package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"golang.org/x/oauth2"
)

// ErrUnavailable is wrapped by errors of the connection to the provider, and of
// its configuration. The same attempt may succeed later.
var ErrUnavailable = errors.New("the sign-in provider does not answer")

// Refusal is an error about the user: trying again does not help.
type Refusal struct {
	Message string // for the user
	Err     error  // the cause, only logged
}

func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Message + ": " + r.Err.Error()
	}
	return r.Message
}

func (r *Refusal) Unwrap() error { return r.Err }

// refuse returns a Refusal with a cause in the format of fmt.Errorf.
func refuse(message, cause string, args ...any) error {
	return &Refusal{Message: message, Err: fmt.Errorf(cause, args...)}
}

// userErrorCodes are the error codes of a token endpoint about the user (RFC 6749,
// 5.2; OpenID Connect Core 1.0, 3.1.2.6). All others are about this console, such
// as a client secret that was changed at the provider first.
var userErrorCodes = map[string]bool{
	"invalid_grant": true, "access_denied": true,
	"login_required": true, "interaction_required": true, "consent_required": true, "account_selection_required": true,
}

// asUnavailable returns err wrapped in ErrUnavailable if it is about the connection
// or this console, and nil if it is about the user.
func asUnavailable(err error) error {
	var network net.Error
	var address *url.Error
	var response *oauth2.RetrieveError
	switch {
	case errors.As(err, &response) && userErrorCodes[response.ErrorCode]:
		return nil
	case errors.As(err, &response):
		return fmt.Errorf("%w: %w", ErrUnavailable, withoutResponseBody(err))
	case errors.As(err, &network), errors.As(err, &address), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
