package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// errCrossSite rejects requests of pages of other sites.
var errCrossSite = &Error{Status: http.StatusForbidden, Message: "This request came from another site and was rejected. Open the console and try again there."}

// rejectCrossSite rejects requests of other sites' pages: all writes, everything
// but navigation, and navigation inside a frame.
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

// sameOriginOnly applies the check of writes to a stream: browsers open an
// EventSource across sites without preflight.
func (s *Server) sameOriginOnly(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		write := c.Request().Clone(c.Request().Context())
		write.Method = http.MethodPost
		if s.protection.Check(write) != nil {
			return errCrossSite
		}
		return next(c)
	}
}

// requireHost rejects requests whose Host header is not the console's. Health
// checks use the address of the pod.
func requireHost(isOwn func(host string) bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if path := c.Request().URL.Path; isOwn(c.Request().Host) || path == "/healthz" || path == "/readyz" {
				return next(c)
			}
			return &Error{Status: http.StatusMisdirectedRequest, Message: "The console does not serve this host name. Open it by its configured address."}
		}
	}
}

// isLoopbackHost reports whether a Host header names this machine. Without
// sign-in this check prevents DNS rebinding: a site whose name resolves to
// 127.0.0.1 must not act as the local user.
func isLoopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return IsLoopback(strings.Trim(host, "[]"))
}

// IsLoopback reports whether host is localhost or a loopback address.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// clientAddress returns the address of the client: the peer of the connection or,
// if that is a configured proxy, the last address in X-Forwarded-For that is not
// a proxy.
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

// Limits of sign-in requests per client address: a burst of signInBurst, then
// signInRate per second. One sign-in takes two requests, and a whole office can
// share one address.
const (
	signInRate  = 5
	signInBurst = 200
)

// limitSignIn rejects too many sign-in requests of one client address; an IPv6
// /64 network counts as one.
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
