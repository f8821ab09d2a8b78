package console

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"

	"github.com/labstack/echo/v4"
)

// ReadOnlyReason says why nothing is written; empty when it is.
func (h *Console) ReadOnlyReason() string {
	if h.ReadOnly == nil {
		return ""
	}
	return h.ReadOnly()
}

// Writing refuses forms, and what is sent from them, where nothing is written.
func (h *Console) Writing(handler func(echo.Context) error) func(echo.Context) error {
	return func(c echo.Context) error {
		if why := h.ReadOnlyReason(); why != "" {
			return &governance.Error{Kind: governance.Forbidden, Op: "open a form", Message: why}
		}
		return handler(c)
	}
}

// May is what somebody is shown the way to.
func (h *Console) May(ctx context.Context, user governance.User) (allocations.Permissions, error) {
	if h.ReadOnlyReason() != "" {
		return allocations.Permissions{}, nil
	}
	return h.Allocations.May(ctx, user)
}
