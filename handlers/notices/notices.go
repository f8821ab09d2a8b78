package notices

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/notices"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	noticeviews "kuota.dev/kuota/views/notices"
	"kuota.dev/kuota/views/ui"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of notices.
type Pages struct {
	*console.Console
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Form(urls.Notices, h.Handler(h.show), h.Handler(h.Writing(h.save)))
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/notices", Summary: "Return which notices about your tasks you get", Answer: NoticesAnswer{}, Handler: h.Handler(h.get)})
	s.API(web.Endpoint{
		Method: http.MethodPut, Path: "/notices", Summary: "Set which notices about your tasks you get; without events, none",
		Body: NoticesRequest{}, Answer: NoticesAnswer{}, Handler: h.Handler(h.Writing(h.put)),
	})
}

// events are the events of notices in words.
var events = []ui.ChoiceProps{
	{Value: string(notices.Start), Label: "Starts", Text: "Kueue admits it for the first time."},
	{Value: string(notices.End), Label: "Ends", Text: "It succeeded."},
	{Value: string(notices.Fail), Label: "Fails", Text: "It ended with a failure."},
	{Value: string(notices.Preempt), Label: "Is preempted", Text: "Each time Kueue evicts it for another task."},
}

// errNone is the error of a console without notices.
var errNone = &governance.Error{Kind: governance.Unavailable, Op: "read notices", Message: "There are no notices: this console runs without sign-in or without history."}

func (h *Pages) read(c echo.Context) (notices.State, error) {
	if h.Notices == nil {
		return notices.State{}, errNone
	}
	return h.Notices.Get(c.Request().Context(), console.UserOf(c))
}

// show answers GET /notices.
func (h *Pages) show(c echo.Context) error { return h.render(c, http.StatusOK, nil, "") }

// render renders the form; typed is what was sent, nil for what is saved.
func (h *Pages) render(c echo.Context, status int, typed *notices.Settings, problem string) error {
	state, err := h.read(c)
	page := noticeviews.NoticesPage{Chrome: h.Chrome(c), Action: urls.Notices, Problem: problem}
	page.Title, page.Active = "Notices", "notices"
	if errors.Is(err, errNone) {
		page.Failure = errNone.Message
		return web.Render(c, status, noticeviews.Notices(page))
	}
	if err != nil {
		return err
	}
	if len(state.Receivers) == 0 && h.Alerts != nil {
		if admin, err := h.Alerts.MaySilence(c.Request().Context(), console.UserOf(c)); err == nil && admin {
			page.PolicyURL = urls.EditAlerts
		}
	}
	shown := state.Settings
	if typed != nil {
		shown = *typed
	}
	for _, event := range events {
		event.Name, event.Many, event.Checked = "on", true, slices.Contains(shown.On, notices.Event(event.Value))
		page.Events = append(page.Events, event)
	}
	for _, r := range state.Receivers {
		choice := ui.ChoiceProps{Name: "to", Value: r.Name, Label: r.Name, Text: words(r, state.Email), Many: true, Checked: slices.Contains(shown.To, r.Name) && r.Problem == "", Off: r.Problem != ""}
		page.Receivers = append(page.Receivers, choice)
	}
	if len(state.Lost) > 0 {
		page.Lost = "You get no notices by " + strings.Join(state.Lost, " and ") + " any more: it is not allowed now, it is of a team that you do not see, or you have no verified address."
	}
	if !state.Until.IsZero() {
		page.Until = format.Time(state.Until)
	}
	if c.QueryParam("done") != "" {
		page.Saved = "Your notices were saved."
		if len(shown.On) == 0 {
			page.Saved = "Saved: you get no notices."
		}
	}
	return web.Render(c, status, noticeviews.Notices(page))
}

// words returns what a receiver is.
func words(r notices.Receiver, email string) string {
	if r.Problem != "" {
		return r.Problem
	}
	text := r.Type
	switch r.Type {
	case string(v1alpha1.EmailReceiver):
		text = "E-mail to " + email
	case string(v1alpha1.TeamsReceiver):
		text = "Microsoft Teams"
	}
	if r.Team != "" {
		text += ", tasks of team " + r.Team
	}
	if r.Department != "" {
		text += ", tasks of department " + r.Department
	}
	if r.Type != string(v1alpha1.EmailReceiver) {
		text += ". Its readers see your name and your tasks"
	}
	return text + "."
}

// save answers POST /notices.
func (h *Pages) save(c echo.Context) error {
	if h.Notices == nil {
		return errNone
	}
	values, err := web.FormValues(c)
	if err != nil {
		return err
	}
	want := notices.Settings{To: values["to"]}
	for _, event := range values["on"] {
		want.On = append(want.On, notices.Event(event))
	}
	err = h.Notices.Set(c.Request().Context(), console.UserOf(c), want)
	if refused, ok := errors.AsType[*governance.Error](err); ok && refused.Kind == governance.Invalid {
		return h.render(c, http.StatusUnprocessableEntity, &want, problem(refused))
	}
	if err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, urls.Notices+"?done=saved")
}

// problem returns why settings were refused, as a sentence.
func problem(refused *governance.Error) string {
	for _, f := range refused.Fields {
		if f.Path == "to" {
			return "Choose how you are notified, or no event."
		}
		if strings.HasPrefix(f.Path, "to[") {
			return "Choose receivers of the list."
		}
	}
	return refused.Message
}

// NoticesRequest is which notices a person wants.
type NoticesRequest struct {
	On []string `json:"on"` // start, end, fail and preempt; empty for no notices
	To []string `json:"to"` // names of receivers
}

// NoticesAnswer is which notices a person gets, and can choose.
type NoticesAnswer struct {
	On        []string          `json:"on"`
	To        []string          `json:"to"`
	Lost      []string          `json:"lost,omitempty"`  // receivers of to that get no notices of the person any more
	Email     string            `json:"email,omitempty"` // that the sign-in provider verified
	Until     *time.Time        `json:"until,omitempty"` // when notices end unless the person opens a page
	Receivers []NoticesReceiver `json:"receivers"`       // that the person can choose
}

// NoticesReceiver is a receiver of notices.
type NoticesReceiver struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Team       string `json:"team,omitempty"`       // whose tasks it gets; empty for all
	Department string `json:"department,omitempty"` // whose teams' tasks it gets; empty for all
	Problem    string `json:"problem,omitempty"`    // why the person cannot choose it
}

// get answers GET /api/v1/notices.
func (h *Pages) get(c echo.Context) error {
	state, err := h.read(c)
	if err != nil {
		return err
	}
	answer := NoticesAnswer{On: []string{}, To: append([]string{}, state.To...), Lost: state.Lost, Email: state.Email, Receivers: []NoticesReceiver{}}
	for _, event := range state.On {
		answer.On = append(answer.On, string(event))
	}
	for _, r := range state.Receivers {
		answer.Receivers = append(answer.Receivers, NoticesReceiver(r))
	}
	if !state.Until.IsZero() {
		answer.Until = &state.Until
	}
	return c.JSON(http.StatusOK, answer)
}

// put answers PUT /api/v1/notices.
func (h *Pages) put(c echo.Context) error {
	var request NoticesRequest
	if err := web.ReadJSON(c, &request); err != nil {
		return err
	}
	if h.Notices == nil {
		return errNone
	}
	want := notices.Settings{To: request.To}
	for _, event := range request.On {
		want.On = append(want.On, notices.Event(event))
	}
	if err := h.Notices.Set(c.Request().Context(), console.UserOf(c), want); err != nil {
		return err
	}
	return h.get(c)
}
