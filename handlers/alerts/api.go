package alerts

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

const apiSilences = "/alerts/silences"

// registerAPI adds the endpoints of alerts.
func (h *Pages) registerAPI(s *web.Server) {
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/alerts", Summary: "List alerts", Query: []web.Parameter{{Name: "department", About: "of this department, of those below it and of their teams"}}, Answer: alertsAnswer{}, Handler: h.Handler(h.file)})
	s.API(web.Endpoint{Method: http.MethodGet, Path: apiSilences, Summary: "List the silences of alerts", Answer: silencesAnswer{}, Handler: h.Handler(h.getSilences)})
	s.API(web.Endpoint{Method: http.MethodPost, Path: apiSilences, Summary: "Silence alerts", Body: SilenceRequest{}, Answer: console.DoneAnswer{}, Handler: h.writing(h.postSilence)})
	s.API(web.Endpoint{Method: http.MethodDelete, Path: apiSilences + "/:id", Summary: "End a silence", Answer: console.DoneAnswer{}, Handler: h.writing(func(c echo.Context) error {
		return console.Done(c, h.Alerts.EndSilence(c.Request().Context(), console.UserOf(c), c.Param("id")))
	})})
	s.API(web.Endpoint{Method: http.MethodPost, Path: "/alerts/receivers/:name/test", Summary: "Send a test message to a receiver of alerts", Answer: console.DoneAnswer{}, Handler: h.writing(func(c echo.Context) error {
		return console.Done(c, h.Alerts.Test(c.Request().Context(), console.UserOf(c), c.Param("name")))
	})})
}

// writing returns the handler of a write, which needs history.
func (h *Pages) writing(handler func(echo.Context) error) echo.HandlerFunc {
	return h.Handler(h.Writing(func(c echo.Context) error {
		if h.Alerts == nil {
			return &governance.Error{Kind: governance.Unavailable, Op: "silence alerts", Message: tasks.NoHistory}
		}
		return handler(c)
	}))
}

// SilenceRequest is a silence that begins now.
type SilenceRequest struct {
	Rule   string `json:"rule,omitempty"` // default all
	Team   string `json:"team,omitempty"` // default all
	For    string `json:"for"`            // such as 30m, 4h, 1d or 1w; at most a week
	Reason string `json:"reason,omitempty"`
}

// silencesAnswer is the answer of GET /alerts/silences.
type silencesAnswer struct {
	Silences []silenceJSON `json:"silences"`
}

type silenceJSON struct {
	ID     string    `json:"id"`
	Rule   string    `json:"rule,omitempty"` // absent for all
	Team   string    `json:"team,omitempty"` // absent for all
	Until  time.Time `json:"until"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
}

// getSilences answers GET /alerts/silences.
func (h *Pages) getSilences(c echo.Context) error {
	state, _, err := h.read(c)
	if err != nil {
		return err
	}
	answer := silencesAnswer{Silences: []silenceJSON{}}
	for _, n := range state.Silences {
		answer.Silences = append(answer.Silences, silenceJSON{ID: n.ID, Rule: n.Rule, Team: n.Team, Until: n.Until.UTC(), Actor: n.Actor, Reason: n.Reason})
	}
	return c.JSON(http.StatusOK, answer)
}

// postSilence answers POST /alerts/silences.
func (h *Pages) postSilence(c echo.Context) error {
	var request SilenceRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	if err := access.Require(ctx, user, h.Alerts.MaySilence, "silence alerts"); err != nil {
		return err
	}
	var wrong governance.FieldErrors
	if _, known := alerts.Describe(alerts.Rule(request.Rule)); request.Rule != "" && !known {
		wrong.Add("rule", "is no rule of alerts")
	}
	lasts, err := time.ParseDuration(request.For)
	if i := slices.IndexFunc(silenceDurations, func(d silenceDuration) bool { return d.value == request.For }); i >= 0 {
		lasts, err = silenceDurations[i].lasts, nil
	}
	if err != nil || lasts <= 0 || lasts > silenceDurations[len(silenceDurations)-1].lasts {
		wrong.Add("for", "write a time such as 30m, 4h, 1d or 1w, of at most a week")
	}
	if len(request.Reason) > maxReason {
		wrong.Addf("reason", "has more than %d characters", maxReason)
	}
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "silence alerts", Message: "Some values are not valid.", Fields: wrong}
	}
	return console.Done(c, h.Alerts.Silence(ctx, user, history.Silence{Rule: request.Rule, Team: request.Team, Until: h.Now().Add(lasts), Reason: strings.TrimSpace(request.Reason)}))
}
