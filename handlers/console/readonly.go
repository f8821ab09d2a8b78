package console

import (
	"context"
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// ReadOnlyReason returns why the console writes nothing, or "" if it writes.
func (h *Console) ReadOnlyReason() string {
	if h.ReadOnly == nil {
		return ""
	}
	return h.ReadOnly()
}

// Writing refuses requests for forms, and sent forms, if the console is read-only.
func (h *Console) Writing(handler func(echo.Context) error) func(echo.Context) error {
	return func(c echo.Context) error {
		if why := h.ReadOnlyReason(); why != "" {
			return &governance.Error{Kind: governance.Forbidden, Op: "open a form", Message: why}
		}
		return handler(c)
	}
}

// May returns the permissions of a user, which decide the links that they are shown.
func (h *Console) May(ctx context.Context, user governance.User) (allocations.Permissions, error) {
	if h.ReadOnlyReason() != "" {
		return allocations.Permissions{}, nil
	}
	return h.Allocations.May(ctx, user)
}

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
