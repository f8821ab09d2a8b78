package handlers

import (
	"errors"
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// statuses says which HTTP status each kind of error is.
var statuses = map[governance.Kind]int{
	governance.Internal:    http.StatusInternalServerError,
	governance.Invalid:     http.StatusUnprocessableEntity,
	governance.NotFound:    http.StatusNotFound,
	governance.Exists:      http.StatusConflict,
	governance.Conflict:    http.StatusConflict,
	governance.Forbidden:   http.StatusForbidden,
	governance.Outside:     http.StatusForbidden,
	governance.Unavailable: http.StatusServiceUnavailable,
}

// answer turns the domain's errors into the web's, in this one place.
func (h *Handlers) answer(handler func(echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := handler(c)
		var ours *governance.Error
		switch {
		case !errors.As(err, &ours):
			return err
		case ours.Kind == governance.Outside && !web.WantsFragment(c):
			return h.noAccess(c)
		}
		return &web.Error{
			Status: statuses[ours.Kind], Message: ours.Message,
			Retry: ours.Kind == governance.Unavailable, Err: err,
		}
	}
}

// shownGroups is how many of their groups somebody without a team is shown.
const shownGroups = 20

// noAccess answers somebody who may see no team.
func (h *Handlers) noAccess(c echo.Context) error {
	page := views.NoAccess{Chrome: h.Chrome(c), Again: c.Path(), Groups: web.UserOf(c).Groups}
	page.Title = "No team yet"
	if more := len(page.Groups) - shownGroups; more > 0 {
		page.Groups, page.More = page.Groups[:shownGroups], more
	}
	return web.Render(c, http.StatusForbidden, views.NoAccessPage(page))
}

// live is a page's live part, or, for a reader who may see no team any more,
// that.
func live(id string, part templ.Component, err error) (templ.Component, error) {
	if governance.KindOf(err) == governance.Outside {
		return views.NoTeamCard(id), nil
	}
	return part, err
}
