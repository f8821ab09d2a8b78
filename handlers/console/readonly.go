package console

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"

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
