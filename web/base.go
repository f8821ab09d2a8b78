package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"kuota.dev/kuota/views/ui"

	"github.com/labstack/echo/v4"
)

// Inside the console every address begins at the console's root: those of routes, of
// links and redirects, in sealed values and in the parameter return. The base path is
// removed where a request arrives (underBase), and added where an address leaves: in
// Location headers (addBase), in attributes of HTML (ui.At) and in the Path of cookies.

// IsBase reports whether base is a base path: empty, or segments that browsers, proxies
// and cookies read alike, each after a slash.
func IsBase(base string) bool {
	return base == "" || base[0] == '/' && path.Clean(base) == base && base != "/" && !strings.ContainsFunc(base, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/", r)
	})
}

// isProbe reports whether a request is a health check, which the kubelet sends to the
// address of the pod.
func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }

// underBase passes requests under the base path to next, without it. Probes are at the
// root of the host; everything else there is not found, also /, or a proxy that removes the
// base path would redirect for ever.
func (s *Server) underBase(next http.Handler) http.Handler {
	if s.base == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.WithContext(ui.WithBase(r.Context(), s.base))
		if isProbe(r.URL.Path) {
			next.ServeHTTP(w, inner)
			return
		}
		path, under := strings.CutPrefix(r.URL.EscapedPath(), s.base)
		switch {
		case under && strings.HasPrefix(path, "/"):
			address := *r.URL
			address.Path, address.RawPath = strings.TrimPrefix(r.URL.Path, s.base), strings.TrimPrefix(r.URL.RawPath, s.base)
			inner.URL = &address
			next.ServeHTTP(w, inner)
		case under && path == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			http.Redirect(w, r, (&url.URL{Path: s.base + "/", RawQuery: r.URL.RawQuery}).String(), http.StatusSeeOther)
		default:
			http.Error(w, "This console is at "+s.base+"/. A proxy in front of it must not change the path.", http.StatusNotFound)
		}
	})
}

// addBase puts the base path before the Location of a redirect to a page of the console.
func (s *Server) addBase(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Before(func() {
			header := c.Response().Header()
			if to := header.Get(echo.HeaderLocation); strings.HasPrefix(to, "/") {
				header.Set(echo.HeaderLocation, s.base+to)
			}
		})
		return next(c)
	}
}
