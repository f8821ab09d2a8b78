package console

import (
	"context"
	"net/url"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// FiguresMinGap is the least time between two updates of a page of figures.
const FiguresMinGap = time.Second

// StreamFigures streams a page of figures to all readers with the same scope, at
// most once a second. id is that of the live part. part returns its render function
// for a scope. The page is rendered when capacity changes, or what also signals,
// unless it is nil.
func (h *Console) StreamFigures(s *web.Server, c echo.Context, id string, values url.Values, part func(access.Scope) func(context.Context) (templ.Component, error), also Listener) error {
	changed := h.CapacityChanges.Subscribe
	if also != nil {
		changed = func(ctx context.Context) <-chan struct{} { return cluster.Either(ctx, h.CapacityChanges, also) }
	}
	return s.Stream(c, web.Part{Changed: changed, MinGap: FiguresMinGap, Shared: func(ctx context.Context) (string, web.RenderFunc, error) {
		scope, err := h.Tasks.Scope(ctx, UserOf(c))
		if governance.KindOf(err) == governance.Outside {
			return "nothing of " + id, func(context.Context) (templ.Component, error) { return views.NoTeamCard(id), nil }, nil
		}
		return id + " " + values.Encode() + " " + scope.Key(), part(scope), err
	}}, h.Frame(c))
}

// SnapshotFor returns the snapshot within the scope of the user.
func (h *Console) SnapshotFor(c echo.Context) (*capacity.Snapshot, error) {
	ctx := c.Request().Context()
	scope, err := h.Tasks.Scope(ctx, UserOf(c))
	if err != nil {
		return nil, err
	}
	return h.Capacity.Within(ctx, scope)
}
