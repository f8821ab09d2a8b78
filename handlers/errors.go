package handlers

import (
	"errors"
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// statuses says which HTTP status each kind of error is.
var statuses = map[governance.Kind]int{
	governance.Internal:    http.StatusInternalServerError,
	governance.Invalid:     http.StatusUnprocessableEntity,
	governance.NotFound:    http.StatusNotFound,
	governance.Exists:      http.StatusConflict,
	governance.Conflict:    http.StatusConflict,
	governance.Forbidden:   http.StatusForbidden,
	governance.Unavailable: http.StatusServiceUnavailable,
}

// answer turns the domain's errors into the web's, in this one place.
func answer(handler func(echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := handler(c)
		var ours *governance.Error
		if errors.As(err, &ours) {
			return &web.Error{
				Status: statuses[ours.Kind], Message: ours.Message,
				Retry: ours.Kind == governance.Unavailable, Err: err,
			}
		}
		return err
	}
}
