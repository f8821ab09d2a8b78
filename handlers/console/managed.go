package console

import (
	"net/http"

	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// ShowManaged answers a request for a form of an object that is managed elsewhere.
func (h *Console) ShowManaged(c echo.Context, page views.Managed) error {
	return h.renderManaged(c, http.StatusOK, page)
}

// RefuseManaged answers a form that was sent for such an object. typed is its
// content as YAML, or "".
func (h *Console) RefuseManaged(c echo.Context, page views.Managed, typed string) error {
	page.Refused = true
	if typed != "" {
		page.Text, page.Typed = typed, true
	}
	return h.renderManaged(c, http.StatusForbidden, page)
}

func (h *Console) renderManaged(c echo.Context, status int, page views.Managed) error {
	title := page.Title
	page.Chrome = h.Chrome(c)
	page.Title, page.Active = title, "policies"
	return web.Render(c, status, views.ManagedPage(page))
}
