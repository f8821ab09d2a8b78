package console

import (
	"context"
	"net/url"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// FiguresMinGap is the least time between two updates of a page of figures.
const FiguresMinGap = time.Second

// StreamWithin streams a part of a page to all readers with the same scope and the same
// values of the address. id is that of the part, and within returns its render function for
// a scope.
func (h *Console) StreamWithin(s *web.Server, c echo.Context, id string, values url.Values, part web.Part, within func(access.Scope) web.RenderFunc) error {
	part.Shared = func(ctx context.Context) (string, web.RenderFunc, error) {
		scope, err := h.Tasks.Scope(ctx, UserOf(c))
		if governance.KindOf(err) == governance.Outside {
			return "nothing of " + id, func(context.Context) (templ.Component, error) { return views.NoTeamCard(id), nil }, nil
		}
		return id + " " + values.Encode() + " " + scope.Key(), within(scope), err
	}
	return s.Stream(c, part, h.Frame(c))
}
