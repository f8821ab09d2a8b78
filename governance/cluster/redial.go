package cluster

import (
	"errors"
	"net"
	"net/http"
	"time"

	"kuota.dev/kuota/governance"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// redialInterval is when a dial to an unreachable API server is repeated.
const redialInterval = 250 * time.Millisecond

// newRedialingCache returns a cache that is up to date soon after the API
// server is reachable again. By default, a reflector (client-go 0.36) waits up
// to a minute after several failures. With redialer a watch only takes long to
// connect and does not fail.
func newRedialingCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return redialer{next} })
	options.HTTPClient = nil // so that it is created from this config
	return cache.New(config, options)
}

// redialer repeats a dial until it succeeds or the context ends. It repeats
// reads only, although no request was sent when a dial fails.
type redialer struct{ next http.RoundTripper }

func (p redialer) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(request)
		var network *net.OpError
		if err == nil || request.Method != http.MethodGet || !errors.As(err, &network) || network.Op != "dial" {
			return response, err
		}
		if governance.Sleep(request.Context(), redialInterval) != nil {
			return nil, err
		}
	}
}
