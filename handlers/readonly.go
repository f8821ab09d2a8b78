package handlers

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"

	"github.com/labstack/echo/v4"
)

// readOnly says why nothing is written; empty when it is.
func (h *Handlers) readOnly() string {
	if h.ReadOnly == nil {
		return ""
	}
	return h.ReadOnly()
}

// writing refuses forms, and what is sent from them, where nothing is written.
func (h *Handlers) writing(handler func(echo.Context) error) func(echo.Context) error {
	return func(c echo.Context) error {
		if why := h.readOnly(); why != "" {
			return &governance.Error{Kind: governance.Forbidden, Op: "open a form", Message: why}
		}
		return handler(c)
	}
}

// may is what somebody is shown the way to.
func (h *Handlers) may(ctx context.Context, user governance.User) (allocations.Permissions, error) {
	if h.readOnly() != "" {
		return allocations.Permissions{}, nil
	}
	return h.Allocations.May(ctx, user)
}
