package web

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"golang.org/x/time/rate"
)

// errCrossSite rejects requests of pages of other sites.
var errCrossSite = &Error{Status: http.StatusForbidden, Message: "This request came from another site and was rejected. Open the console and try again there."}

// rejectCrossSite rejects requests of other sites' pages: all writes, everything
// but navigation, and navigation inside a frame.
func (s *Server) rejectCrossSite(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		if s.protection.Check(request) != nil {
			return s.rejectedCrossSite(c)
		}
		switch request.Header.Get("Sec-Fetch-Dest") {
		case "iframe", "frame", "embed", "object", "fencedframe":
			return s.rejectedCrossSite(c)
		}
		site := request.Header.Get("Sec-Fetch-Site")
		if (site == "cross-site" || site == "same-site") && request.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return s.rejectedCrossSite(c)
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
			return s.rejectedCrossSite(c)
		}
		return next(c)
	}
}

func (s *Server) rejectedCrossSite(c echo.Context) error {
	s.rejections.log(c, "cross-site request rejected")
	return errCrossSite
}

// rejections logs requests that look like attempts to evade a check. Their number is
// limited, because any page and any client can cause them.
type rejections struct {
	limit   *rate.Limiter
	now     func() time.Time
	to      *slog.Logger
	skipped atomic.Int64 // rejections since the last one that was logged
}

// Limits of rejections in the log, on each replica.
const (
	rejectionRate  = 1 // per second
	rejectionBurst = 20
)

func newRejections(now func() time.Time, to *slog.Logger) *rejections {
	return &rejections{limit: rate.NewLimiter(rejectionRate, rejectionBurst), now: now, to: to}
}

// log logs a rejected request, or counts it if there are too many.
func (r *rejections) log(c echo.Context, message string) {
	if !r.limit.AllowN(r.now(), 1) {
		r.skipped.Add(1)
		return
	}
	const longest = 200 // bytes of a value that the client chooses
	cut := func(text string) string { return text[:min(len(text), longest)] }
	request := c.Request()
	r.to.Warn(message, "from", c.RealIP(), "method", cut(request.Method), "path", cut(request.URL.Path), "host", cut(request.Host),
		"origin", cut(request.Header.Get(echo.HeaderOrigin)), "site", cut(request.Header.Get("Sec-Fetch-Site")), "skipped", r.skipped.Swap(0))
}

// requireHost rejects requests whose Host header is not the console's. Health
// checks use the address of the pod.
func (s *Server) requireHost(isOwn func(host string) bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if isOwn(c.Request().Host) || isProbe(c.Request().URL.Path) {
				if s.signIn != nil { // as the origin of a write is compared with it
					c.Request().Host = withoutDefaultPort(c.Request().Host, s.signIn.URL.Scheme)
				}
				return next(c)
			}
			s.rejections.log(c, "request for another host rejected")
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
func (s *Server) limitSignIn() echo.MiddlewareFunc {
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
			s.rejections.log(c, "sign-in rejected: too many from this address")
			c.Response().Header().Set(echo.HeaderRetryAfter, "30")
			return &Error{Status: http.StatusTooManyRequests, Message: "Too many sign-ins from your address. Wait half a minute, then try again.", Retry: true}
		},
	})
}
