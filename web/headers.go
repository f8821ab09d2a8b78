package web

import (
	"regexp"

	"github.com/labstack/echo/v4"
)

// contentSecurityPolicy allows only what pages use: files, streams and forms of
// this console, nothing inline, and HTML in scripts only through the one Trusted
// Types policy.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types kuota"

// secureHeaders sets the security headers of every response.
func (s *Server) secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.overTLS() {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// noGzip matches an Accept-Encoding that refuses gzip.
var noGzip = regexp.MustCompile(`(?i)(^|,)\s*gzip\s*;\s*q\s*=\s*0(\.0*)?\s*(,|$)`)

// refuseGzip keeps a response uncompressed whose client refuses gzip: Echo only looks for its
// name in Accept-Encoding.
func refuseGzip(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if header := c.Request().Header; noGzip.MatchString(header.Get(echo.HeaderAcceptEncoding)) {
			header.Del(echo.HeaderAcceptEncoding)
		}
		return next(c)
	}
}
