package web

import (
	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Render writes a component as the whole answer. It is rendered to a buffer
// first, so that a template that fails still leads to a clean error page.
func Render(c echo.Context, status int, component templ.Component) error {
	buffer := templ.GetBuffer()
	defer templ.ReleaseBuffer(buffer)
	if err := component.Render(c.Request().Context(), buffer); err != nil {
		return err
	}
	return c.HTMLBlob(status, buffer.Bytes())
}

// WantsFragment tells whether the page's script asks for the part that
// changes, rather than a person for the page.
func WantsFragment(c echo.Context) bool {
	return c.Request().Header.Get(echo.HeaderXRequestedWith) == "fetch"
}
