package web

import (
	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Render responds with a component. It renders to a buffer first, so that an
// error page can still be sent if the template fails.
func Render(c echo.Context, status int, component templ.Component) error {
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := component.Render(c.Request().Context(), buffer); err != nil {
		return err
	}
	return c.HTMLBlob(status, buffer.Bytes())
}

// WantsFragment reports whether the page's script requested the part that
// changes, and not a browser the page.
func WantsFragment(c echo.Context) bool {
	return c.Request().Header.Get(echo.HeaderXRequestedWith) == "fetch"
}
