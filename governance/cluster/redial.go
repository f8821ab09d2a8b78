package cluster

import (
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// dialAgain is how soon a lost API server is dialled again.
const redialInterval = 250 * time.Millisecond

// newPatientCache makes a cache that is up to date again as soon as the API
// server is back. By itself a reflector (client-go 0.36) waits up to a minute
// after some failures; a watch that simply takes long to connect has no
// failures.
func newRedialingCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return redialer{next} })
	options.HTTPClient = nil // made anew, of this config
	return cache.New(config, options)
}

// patient dials until somebody answers, for reads only: nothing was sent to
// anybody while dialling fails.
type redialer struct{ next http.RoundTripper }

func (p redialer) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(request)
		var network *net.OpError
		if err == nil || request.Method != http.MethodGet || !errors.As(err, &network) || network.Op != "dial" {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return nil, err
		case <-time.After(redialInterval):
		}
	}
}
