package teams

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// team answers GET /teams/{team}: quota, usage, queue and history of a team. range=, from=
// and to= select the range of the figures, and page= the page of past tasks. Values of
// the form that submits a task lead to its page, which they were once part of.
func (h *Pages) team(c echo.Context) error {
	t, err := h.Submit.Team(c.Request().Context(), console.UserOf(c), c.Param("team"))
	if err != nil {
		return err
	}
	query := c.QueryParams()
	if !query.Has("submitted") {
		for name := range (&submitForm{}).inputs() {
			if query.Has(name) {
				return c.Redirect(http.StatusSeeOther, urls.With(urls.TeamSubmit(t.Name), query))
			}
		}
	}
	page := teamviews.TeamPage{
		DisplayName: t.DisplayName, AllocationURL: urls.Allocation(t.Name), TasksURL: urls.Tasks + "?" + url.Values{"team": {t.Name}}.Encode(),
		SubmitURL: urls.TeamSubmit(t.Name), MaySubmit: t.MaySubmit,
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Facts, page.Charts = t.Name, "teams", teamFacts(t), h.History != nil
	if h.History != nil {
		page.ActivityURL = urls.TeamActivity(t.Name)
	}
	if err := h.showUsage(c, &page, t.Name, t.Namespace); err != nil {
		return err
	}
	if name := query.Get("submitted"); name != "" {
		page.Notice = views.TaskLink{Name: name, URL: urls.TaskOf(t.Namespace, cmp.Or(query.Get("kind"), string(submit.Job)), name)}
	}
	return web.Render(c, http.StatusOK, teamviews.Team(page))
}

func teamFacts(t submit.Team) []views.ValueLine {
	var pools []string
	for _, p := range t.Pools {
		pools = append(pools, p.Name)
	}
	namespace := format.OrDash(t.Namespace)
	if len(t.Neighbors) > 0 {
		namespace += ", shared with team " + strings.Join(t.Neighbors, ", ") + ": its members see the tasks of each"
	}
	return []views.ValueLine{
		{Name: "Namespace", Value: namespace}, {Name: "Queue", Value: format.OrDash(t.Queue)}, {Name: "Pools", Value: format.OrDash(strings.Join(pools, ", "))},
	}
}
