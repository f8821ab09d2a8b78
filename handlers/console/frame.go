package console

import (
	"context"
	"net/url"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Unchanged is the query of a page that a save leads to, after which the spec is as before.
const Unchanged = "?unchanged=true"

// Chrome returns the frame of a page. It shows nothing of the cluster to a user who
// is not signed in.
func (h *Console) Chrome(c echo.Context) views.Chrome {
	user := web.UserOf(c)
	if user.Name == "" {
		return views.Chrome{}
	}
	chrome := views.Chrome{User: user.Name, SignOut: !user.Local, Cluster: h.clusterStatus(), Stream: "/events"}
	if h.Notices != nil {
		chrome.Notices = urls.Notices
		if chrome.Cluster.Reachable {
			h.Notices.Seen(c.Request().Context(), UserOf(c))
		}
	}
	// A cluster that is unreachable is not asked: the page must not wait for a link.
	if chrome.Cluster.Reachable && h.Settings.CanView(c.Request().Context(), UserOf(c)) {
		chrome.Settings = urls.Settings
	}
	if chrome.Cluster.Reachable {
		chrome.Alerts = h.countAlerts(c.Request().Context(), UserOf(c))
	}
	chrome.Trouble = h.trouble()
	switch {
	case c.QueryParam("unchanged") != "":
		chrome.Done = "Nothing was changed."
	case c.Param("team") == "": // where saved= is a name
		chrome.Done = map[string]string{
			"cluster": "The cluster policy was saved.", "pools": "The pools were saved.", "prices": "The prices were saved.", "alerts": "The rules and receivers of alerts were saved.",
		}[c.QueryParam("saved")]
	}
	return chrome
}

// countAlerts returns how many alerts fire that a user sees. An error counts as none.
func (h *Console) countAlerts(ctx context.Context, user governance.User) int {
	if h.Alerts == nil {
		return 0
	}
	scope, err := h.Tasks.Scope(ctx, user)
	if err != nil {
		return 0
	}
	return h.Alerts.Count(scope)
}

// trouble returns a sentence about what keeps the whole console from working, or "".
func (h *Console) trouble() string {
	if why := h.ReadOnlyReason(); why != "" || h.Trouble == nil {
		return why
	}
	return h.Trouble()
}

// events answers GET /events with the live part of the frame, for pages without a
// stream of their own.
func (h *Console) events(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		frame := h.Frame(c)
		return s.Stream(c, web.Part{Render: frame}, frame)
	}
}

func (h *Console) clusterStatus() views.ClusterStatus {
	age, ok := h.Contact.Age(h.Now())
	status := views.ClusterStatus{Name: h.ClusterName, Reachable: ok}
	if ok || age > 0 {
		status.Age = format.ShortAge(age)
	}
	return status
}

// Frame returns a function that renders the live part of the frame.
func (h *Console) Frame(c echo.Context) func(context.Context) (templ.Component, error) {
	settings, user := "", UserOf(c)
	if h.Settings.CanView(c.Request().Context(), user) {
		settings = urls.Settings
	}
	return func(ctx context.Context) (templ.Component, error) {
		chrome := views.Chrome{Cluster: h.clusterStatus(), Trouble: h.trouble(), Settings: settings}
		if chrome.Cluster.Reachable {
			chrome.Alerts = h.countAlerts(ctx, user)
		}
		return views.Frame(chrome), nil
	}
}

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
