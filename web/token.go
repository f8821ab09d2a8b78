package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// ErrToken is the error of Options.Tokens for a token that nobody may use here.
var ErrToken = errors.New("the token is not accepted")

// Tokens returns the user that a bearer token identifies, or ErrToken.
type Tokens func(ctx context.Context, token string) (User, error)

// maxToken is the size in bytes of the longest token that is read.
const maxToken = 16 << 10

// isData reports whether a request reads a file for programs. Only these accept a bearer
// token: programs change nothing, and no browser sends one by itself.
func isData(request *http.Request) bool {
	path := request.URL.Path
	return (request.Method == http.MethodGet || request.Method == http.MethodHead) && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".csv"))
}

// bearer returns the token of a request for data; empty for none.
func bearer(request *http.Request) string {
	scheme, token, ok := strings.Cut(request.Header.Get(echo.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !isData(request) || isNavigation(request) {
		return ""
	}
	return strings.TrimSpace(token)
}

// identifyToken sets the user of a request with a bearer token.
func (s *Server) identifyToken(c echo.Context, token string) error {
	if s.tokens == nil || len(token) > maxToken {
		return ErrToken
	}
	user, err := s.tokens(c.Request().Context(), token)
	if err != nil {
		return err
	}
	user.From = c.RealIP()
	c.Set(userKey, user)
	return nil
}
