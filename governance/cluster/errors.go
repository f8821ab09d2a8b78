package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/governance"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Unreachable is the message that a reader sees while the API server does not
// answer.
const Unreachable = "The cluster cannot be reached. Try again in a moment."

// Translate converts an error of Kubernetes to a governance.Error. op is what
// was being done, for the log.
func Translate(op string, err error) error {
	if err == nil {
		return nil
	}
	var ours *governance.Error
	if errors.As(err, &ours) {
		return err
	}
	translated := &governance.Error{Op: op, Err: err}
	var status apierrors.APIStatus
	switch {
	case unreachable(err):
		translated.Kind, translated.Message = governance.Unavailable, Unreachable
	case meta.IsNoMatchError(err):
		translated.Kind, translated.Message = governance.Unavailable, "A CRD that this needs is not installed. The settings page names it."
	case apierrors.IsNotFound(err):
		translated.Kind, translated.Message = governance.NotFound, "It no longer exists."
	case apierrors.IsAlreadyExists(err):
		translated.Kind, translated.Message = governance.Exists, "An object with this name already exists. Choose another name."
	case apierrors.IsConflict(err):
		translated.Kind, translated.Message = governance.Conflict, "It was changed in the meantime. Reload the page and try again."
	case apierrors.IsForbidden(err):
		translated.Kind, translated.Message = governance.Forbidden, "You do not have permission to do this."
	case apierrors.IsInvalid(err) && errors.As(err, &status):
		translated.Kind, translated.Message = governance.Invalid, "The API server rejected it."
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				translated.Fields = append(translated.Fields, governance.FieldError{Path: cause.Field, Message: plain(cause.Message)})
			}
		}
	default:
		translated.Kind, translated.Message = governance.Internal, "Something went wrong. See the console's log for the reason."
	}
	return translated
}

// unreachable reports whether the same call may succeed once the cluster is
// reachable again.
func unreachable(err error) bool {
	var network net.Error
	var address *url.Error
	var status apierrors.APIStatus
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) || errors.As(err, &address) ||
		apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// plain returns the sentence of a validation message of the API server, which
// has the form `Invalid value: "object": sentence`.
func plain(message string) string {
	if i := strings.LastIndex(message, `": `); i >= 0 && strings.HasPrefix(message, "Invalid value") {
		return message[i+3:]
	}
	return message
}
