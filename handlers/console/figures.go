package console

import (
	"context"
	"net/url"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// FiguresMinGap is the least time between two updates of a page of figures.
const FiguresMinGap = time.Second

// StreamFigures sends a page of figures to all who see the same, at most once a
// second. id is of the live part, and part what renders it for a scope.
func (h *Console) StreamFigures(s *web.Server, c echo.Context, id string, values url.Values, part func(access.Scope) func(context.Context) (templ.Component, error)) error {
	return s.Stream(c, web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: FiguresMinGap, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
		scope, err := h.Tasks.Scope(ctx, UserOf(c))
		if governance.KindOf(err) == governance.Outside {
			return "nothing of " + id, func(context.Context) (templ.Component, error) { return views.NoTeamCard(id), nil }, nil
		}
		return id + " " + values.Encode() + " " + scope.Key(), part(scope), err
	}}, h.Frame(c))
}

// SnapshotFor is the cluster as who asks may see it.
func (h *Console) SnapshotFor(c echo.Context) (*capacity.Snapshot, error) {
	ctx := c.Request().Context()
	scope, err := h.Tasks.Scope(ctx, UserOf(c))
	if err != nil {
		return nil, err
	}
	return h.Capacity.Within(ctx, scope)
}
