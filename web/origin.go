package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// foreign is what another site's page is told.
var errCrossSite = &Error{Status: http.StatusForbidden, Message: "This request came from another site and was rejected. Open the console and try again there."}

// isolate refuses what other sites' pages send: everything that writes, all
// that is not the opening of a page, and the opening of one inside theirs.
func (s *Server) rejectCrossSite(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		if s.protection.Check(request) != nil {
			return errCrossSite
		}
		switch request.Header.Get("Sec-Fetch-Dest") {
		case "iframe", "frame", "embed", "object", "fencedframe":
			return errCrossSite
		}
		site := request.Header.Get("Sec-Fetch-Site")
		if (site == "cross-site" || site == "same-site") && request.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return errCrossSite
		}
		return next(c)
	}
}

// onlyFromHere holds a stream to what is asked of a write: browsers open one
// across sites without asking.
func (s *Server) sameOriginOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		as := c.Request().Clone(c.Request().Context())
		as.Method = http.MethodPost
		if s.protection.Check(as) != nil {
			return errCrossSite
		}
		return next(c)
	}
}

// onlyHost refuses requests that name another host than the console's own.
// Health checks come by the pod's address.
func requireHost(ours func(host string) bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if path := c.Request().URL.Path; ours(c.Request().Host) || path == "/healthz" || path == "/readyz" {
				return next(c)
			}
			return &Error{Status: http.StatusMisdirectedRequest, Message: "The console does not serve this host name. Open it by its configured address."}
		}
	}
}

// isLoopbackHost tells whether a Host header names this machine. Without
// sign-in it keeps a page of somebody's site, whose name was pointed at this
// machine, from acting as the local identity.
func isLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return IsLoopback(strings.Trim(host, "[]"))
}

// IsLoopback tells whether a host name or address is this machine's own.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// clientAddress reads who sent a request: the other end of the connection, or,
// where that is a configured proxy, the last address in X-Forwarded-For that
// is none.
func clientAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, proxy := range proxies {
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: proxy.Addr().AsSlice(), Mask: net.CIDRMask(proxy.Bits(), proxy.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// How many requests for signing in one address may send: signInRate a second
// after the first signInBurst. One sign-in takes two, and a whole office may
// stand behind one address.
const (
	signInRate  = 5
	signInBurst = 200
)

// limitSignIn refuses too many sign-ins from one address; an IPv6 network of
// 64 bits counts as one.
func limitSignIn() echo.MiddlewareFunc {
	return middleware.RateLimiterWithConfig(middleware.RateLimiterConfig{
		Store: middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: signInRate, Burst: signInBurst}),
		IdentifierExtractor: func(c echo.Context) (string, error) {
			address, err := netip.ParseAddr(c.RealIP())
			if err == nil && address.Is6() && !address.Is4In6() {
				network, err := address.Prefix(64)
				return network.String(), err
			}
			return address.String(), err
		},
		DenyHandler: func(c echo.Context, _ string, _ error) error {
			c.Response().Header().Set(echo.HeaderRetryAfter, "30")
			return &Error{Status: http.StatusTooManyRequests, Message: "Too many sign-ins from your address. Wait half a minute, then try again.", Retry: true}
		},
	})
}
