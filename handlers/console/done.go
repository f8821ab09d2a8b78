package console

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// DoneAnswer is the answer of an endpoint that has nothing else to say.
type DoneAnswer struct {
	Done bool `json:"done"`
}

// Done answers with DoneAnswer unless err is set.
func Done(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, DoneAnswer{true})
}
