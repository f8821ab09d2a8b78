package web

import (
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// contentSecurityPolicy allows what pages use and no more: our own files,
// streams and forms, nothing inline, and HTML from the server only through the
// script's one Trusted Types policy.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types kuota"

// secureHeaders sets what browsers need to be told on every answer.
func secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		return next(c)
	}
}

// sameOrigin refuses what another site's page sends.
func sameOrigin() echo.MiddlewareFunc {
	protection := http.NewCrossOriginProtection()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := protection.Check(c.Request()); err != nil {
				return &Error{Status: http.StatusForbidden, Message: "This was sent from another site, and is refused. Open the form here and send it again.", Err: err}
			}
			return next(c)
		}
	}
}

// loopbackHost refuses requests that name another host. Without sign-in it
// keeps a page of somebody's site, whose name was pointed at this machine,
// from acting as the local identity.
func loopbackHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		host := c.Request().Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			return &Error{Status: http.StatusMisdirectedRequest, Message: "Without sign-in the console answers on this machine only. Open it as http://127.0.0.1 or http://localhost."}
		}
		return next(c)
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
