package utilization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// errResultType is returned for a result of an unexpected type.
var errResultType = errors.New("unexpected result type")

// errorText returns a sentence for pages: what went wrong and what to do. It contains
// no address and no text from the server, which belong in the log.
func errorText(err error, timeout time.Duration) string {
	var refused *prometheus.Error
	var token errToken
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &token):
		return "The token for Prometheus cannot be read. Check --prometheus-token-file."
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("Prometheus answered with more than %d MiB. Select this cluster's series with --prometheus-match.", maxBytes>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("Prometheus did not answer within %g s. Check whether it is overloaded.", timeout.Seconds())
	case !errors.As(err, &refused) && isNetwork(err):
		return "Prometheus cannot be reached. Check that it runs, and check --prometheus-url and --prometheus-ca-file."
	case refused == nil, refused.Type == prometheus.ErrBadResponse:
		return "The server that answers is not Prometheus. Check --prometheus-url."
	case refused.Type == prometheus.ErrClient && (strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusUnauthorized)) || strings.HasSuffix(refused.Msg, fmt.Sprint(http.StatusForbidden))):
		return "Prometheus rejects the console. Check that the token of --prometheus-token-file is valid and has permission to query."
	case refused.Type == prometheus.ErrClient:
		return "The server that answers has no Prometheus API at this path. Check --prometheus-url and its path."
	case refused.Type == prometheus.ErrServer:
		return "Prometheus reports an internal error or is overloaded. See its log."
	}
	return "Prometheus rejects the query. See the console's log for the reason."
}

// isNetwork reports whether there was no response at all.
func isNetwork(err error) bool {
	var network interface{ Timeout() bool } // as url.Error and net.Error implement
	return errors.As(err, &network)
}
