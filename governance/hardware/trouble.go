package hardware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// errNonsense is an answer of another type than was asked for.
var errNonsense = errors.New("the answer is of another type than was asked for")

// sentence says to people what went wrong, why, and what to do. It names no
// address, and quotes nothing that a server wrote: that is for the log.
func sentence(err error, timeout time.Duration) string {
	var refused *prometheus.Error
	var token errToken
	switch {
	case errors.As(err, &token):
		return "The token for Prometheus cannot be read: see what --prometheus-token-file names."
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("Prometheus answered with more than %d MiB, which is not read: choose this cluster's series with --prometheus-match.", mostBytes>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Prometheus did not answer within %g s: see whether it is overloaded, or give it more time with --prometheus-timeout.", timeout.Seconds())
	case !errors.As(err, &refused) && isNetwork(err):
		return "Prometheus cannot be reached: see whether it runs, and whether --prometheus-url and --prometheus-ca-file are right."
	case refused == nil, refused.Type == prometheus.ErrBadResponse:
		return "What answers is not the API of Prometheus: see whether --prometheus-url is right."
	case refused.Type == prometheus.ErrClient && (strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusUnauthorized)) || strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusForbidden))):
		return "Prometheus refuses the console: see whether the token of --prometheus-token-file is right and may query."
	case refused.Type == prometheus.ErrClient:
		return "What answers does not know the API of Prometheus: see whether --prometheus-url is right, with its path."
	case refused.Type == prometheus.ErrServer:
		return "Prometheus answered that it has an error of its own, or has no time: its log says which."
	}
	return "Prometheus does not answer the question: the console's log says why."
}

// isNetwork tells whether no answer came at all.
func isNetwork(err error) bool {
	var network interface{ Timeout() bool } // as url.Error and net.Error have it
	return errors.As(err, &network)
}
