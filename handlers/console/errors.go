package console

import (
	"errors"
	"net/http"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Unavailable reports whether err means that the cluster does not answer. Forms are
// then shown again, as typed.
func Unavailable(err error) bool { return governance.KindOf(err) == governance.Unavailable }

// Statuses maps kinds of error to HTTP statuses.
var Statuses = map[governance.Kind]int{
	governance.Internal:    http.StatusInternalServerError,
	governance.Invalid:     http.StatusUnprocessableEntity,
	governance.NotFound:    http.StatusNotFound,
	governance.Exists:      http.StatusConflict,
	governance.Conflict:    http.StatusConflict,
	governance.Forbidden:   http.StatusForbidden,
	governance.Outside:     http.StatusForbidden,
	governance.Unavailable: http.StatusServiceUnavailable,
}

// Handler converts errors of package governance to those of package web. No other
// place does so.
func (h *Console) Handler(handler func(echo.Context) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		h.People.see(UserOf(c))
		err := handler(c)
		var ours *governance.Error
		switch {
		case !errors.As(err, &ours):
			return err
		case ours.Kind == governance.Outside && !web.WantsFragment(c) && !strings.HasPrefix(c.Path(), web.APIPrefix+"/"):
			return h.noAccess(c)
		}
		return &web.Error{
			Status: Statuses[ours.Kind], Message: ours.Message,
			Retry: ours.Kind == governance.Unavailable, Fields: fields(ours), Err: err,
		}
	}
}

// fields returns what is wrong with the fields of a body of the API.
func fields(refused *governance.Error) (list []web.Field) {
	for _, f := range refused.Fields {
		list = append(list, web.Field{Field: f.Path, Message: f.Message})
	}
	return list
}

// Within converts a handler of what a scope includes, which is called with the scope of the
// user.
func (h *Console) Within(handler func(c echo.Context, scope access.Scope) error) echo.HandlerFunc {
	return h.Handler(func(c echo.Context) error {
		scope, err := h.Tasks.Scope(c.Request().Context(), UserOf(c))
		if err != nil {
			return err
		}
		return handler(c, scope)
	})
}

// shownGroups is how many of their groups a user without a team is shown.
const shownGroups = 20

// noAccess answers a user who is not allowed to see any team.
func (h *Console) noAccess(c echo.Context) error {
	page := views.NoAccess{Chrome: h.Chrome(c), RetryURL: c.Path(), Groups: web.UserOf(c).Groups, GroupsLeftOut: web.UserOf(c).GroupsLeftOut}
	page.Title = "No team yet"
	state, err := h.Departments.State(c.Request().Context(), UserOf(c))
	for i := range state.Departments {
		if d := &state.Departments[i]; err == nil && state.Sees(d.Name) {
			page.Departments = append(page.Departments, views.NamedLink{Name: quota.Title(d), URL: urls.Department(d.Name)})
		}
	}
	if more := len(page.Groups) - shownGroups; more > 0 {
		page.Groups, page.More = page.Groups[:shownGroups], more
	}
	return web.Render(c, http.StatusForbidden, views.NoAccessPage(page))
}

// Live returns the live part of a page, or a card for a reader who is not allowed to
// see any team any more.
func Live(id string, part templ.Component, err error) (templ.Component, error) {
	if governance.KindOf(err) == governance.Outside {
		return views.NoTeamCard(id), nil
	}
	return part, err
}

// SectionTrouble returns a sentence that one part of a page cannot be shown, with
// the reason if it is meant for readers.
func SectionTrouble(what string, err error) string {
	if kind := governance.KindOf(err); kind == governance.Unavailable {
		return what + " cannot be shown now: the cluster does not respond."
	}
	return what + " cannot be shown now. See the console's log for the reason."
}
