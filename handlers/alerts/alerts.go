package alerts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	alertviews "kuota.dev/kuota/views/alerts"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Pages answers the routes of alerts.
type Pages struct {
	*console.Console
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Form(urls.Alerts, h.Handler(h.show), h.Handler(h.save))
	s.Events(urls.AlertsEvents, h.Handler(h.events(s)))
	s.Page(urls.AlertsCSV, h.Handler(h.csv))
	s.Page(urls.AlertsJSON, h.Handler(h.file))
	h.registerAPI(s)
}

// address returns the address of a page or a file, and the department whose alerts it has; empty
// for all.
func address(c echo.Context) (a listing.Address, department string) {
	a = listing.NewAddress(urls.Alerts, "")
	return a, a.Take(c.QueryParams(), "department")
}

// read returns what the user of a request sees, of a department if the address names one.
func (h *Pages) read(c echo.Context) (alerts.State, access.Scope, error) {
	return h.readIn(c.Request().Context(), c)
}

func (h *Pages) readIn(ctx context.Context, c echo.Context) (alerts.State, access.Scope, error) {
	scope, err := h.Tasks.Scope(ctx, console.UserOf(c))
	if err != nil {
		return alerts.State{}, scope, err
	}
	if h.Alerts == nil {
		return alerts.State{}, scope, &governance.Error{Kind: governance.Unavailable, Op: "list alerts", Message: tasks.NoHistory}
	}
	state, err := h.Alerts.Within(ctx, scope)
	if _, department := address(c); department != "" {
		outside := func(a alerts.Alert) bool { return !slices.Contains(a.Departments, department) }
		state.Firing, state.Resolved = slices.DeleteFunc(slices.Clone(state.Firing), outside), slices.DeleteFunc(slices.Clone(state.Resolved), outside)
	}
	return state, scope, err
}

// show answers GET /alerts.
func (h *Pages) show(c echo.Context) error { return h.render(c, http.StatusOK, silenceInput{}) }

func (h *Pages) render(c echo.Context, status int, typed silenceInput) error {
	state, scope, err := h.read(c)
	if err != nil && !console.Unavailable(err) {
		return err
	}
	page := h.page(c, state, scope)
	if err != nil {
		page.Trouble = sentenceOf(err)
	}
	a, department := address(c)
	if page.Filters, err = h.OfferDepartments(c, nil, department); err != nil && !console.Unavailable(err) {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Alerts", "alerts", a.URL(urls.AlertsEvents)
	if h.Alerts != nil && h.ReadOnlyReason() == "" {
		may, err := h.Alerts.MaySilence(c.Request().Context(), console.UserOf(c))
		if err != nil {
			return err
		}
		if may && scope.All {
			if page.Form, err = h.form(c, state, typed); err != nil {
				return err
			}
		}
	}
	switch c.QueryParam("done") {
	case "silenced":
		page.Notice = "The alerts are silenced."
	case "sent":
		page.Notice = "A test message is sent. Its outcome appears below within seconds."
	case "ended":
		page.Notice = "The silence has ended."
	}
	return web.Render(c, status, alertviews.Alerts(page))
}

func sentenceOf(err error) string {
	var ours *governance.Error
	if errors.As(err, &ours) {
		return ours.Message
	}
	return "Alerts cannot be read now."
}

// events answers GET /alerts/events with the live part of the page.
func (h *Pages) events(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		return s.Stream(c, web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: console.FiguresMinGap, Render: func(ctx context.Context) (templ.Component, error) {
			state, scope, err := h.readIn(ctx, c)
			if err != nil && !console.Unavailable(err) {
				return nil, err
			}
			return alertviews.AlertsLive(h.page(c, state, scope)), nil
		}}, h.Frame(c))
	}
}

func (h *Pages) page(c echo.Context, state alerts.State, scope access.Scope) alertviews.AlertsPage {
	at, department := address(c)
	page := alertviews.AlertsPage{Action: urls.Alerts, CSVURL: at.URL(urls.AlertsCSV), JSONURL: at.URL(urls.AlertsJSON), PolicyURL: urls.EditAlerts, All: scope.All}
	if department != "" {
		page.ClearURL = urls.Alerts
	}
	for _, a := range state.Firing {
		page.Firing = append(page.Firing, row(a))
	}
	if n := len(page.Firing); n > 0 {
		page.FiringNum = format.Count(n, "alert")
	}
	for _, a := range state.Resolved {
		page.Resolved = append(page.Resolved, row(a))
	}
	for _, d := range alerts.Rules {
		if d.Cluster && !scope.All {
			continue
		}
		rule := alertviews.AlertRule{ID: "rule-" + string(d.Rule), Name: string(d.Rule), Title: d.Title, Meaning: d.Meaning(state.Thresholds), Severity: severity(d.Severity)}
		if state.IsOff(d.Rule) {
			rule.Meaning, rule.Severity = "The cluster policy turned this rule off.", views.Status{Tone: "idle", Label: "Off"}
		}
		page.Rules = append(page.Rules, rule)
	}
	for _, n := range state.Silences {
		page.Silences = append(page.Silences, alertviews.SilenceRow{ID: n.ID, Rule: ruleName(n.Rule), Team: cmp.Or(n.Team, "All teams"), Until: format.Time(n.Until), Actor: n.Actor, Reason: format.OrDash(n.Reason)})
	}
	for _, r := range state.Receivers {
		gets, of := "All alerts", ""
		switch {
		case r.Team != "":
			of = "of team " + r.Team
		case r.Department != "":
			of = "of department " + r.Department
		}
		switch {
		case of != "" && r.Severity != "":
			gets = format.Capitalize(of) + ", " + r.Severity + " and above"
		case of != "":
			gets = format.Capitalize(of)
		case r.Severity != "":
			gets = format.Capitalize(r.Severity) + " and above"
		}
		switch r.Notices {
		case v1alpha1.AlsoNotices:
			gets += "; notices"
		case v1alpha1.OnlyNotices:
			gets = strings.TrimSpace("Notices " + of)
		}
		page.Receivers = append(page.Receivers, alertviews.AlertReceiver{Name: r.Name, Type: string(r.Type), Secret: r.SecretName, To: strings.Join(r.To, ", "), Gets: gets, Untested: r.Type == v1alpha1.EmailReceiver && len(r.To) == 0})
	}
	for _, d := range state.Deliveries {
		page.Deliveries = append(page.Deliveries, deliveryRow(d))
	}
	return page
}

func deliveryRow(d history.Delivery) alertviews.DeliveryRow {
	row := alertviews.DeliveryRow{ID: "delivery-" + d.ID, At: format.Time(d.Created), Receiver: d.Receiver, Attempts: format.Count(d.Attempts, "attempt"), Error: d.Error}
	var m alerts.Message
	switch err := json.Unmarshal([]byte(d.Message), &m); {
	case err != nil:
		row.Contents = "–"
	case m.Test:
		row.Contents = "Test"
	default:
		row.Contents = format.Count(len(m.Alerts)+m.More, "alert")
	}
	switch {
	case !d.Delivered.IsZero() && d.Error != "":
		row.Outcome = views.Status{Tone: "wait", Label: "Partly delivered"}
	case !d.Delivered.IsZero():
		row.Outcome = views.Status{Tone: "ok", Label: "Delivered"}
	case d.Due.IsZero():
		row.Outcome = views.Status{Tone: "bad", Label: "Failed"}
	case d.Attempts > 0:
		row.Outcome = views.Status{Tone: "wait", Label: "Retrying"}
	default:
		row.Outcome = views.Status{Tone: "wait", Label: "Waiting"}
	}
	return row
}

func ruleName(rule string) string {
	if d, ok := alerts.Describe(alerts.Rule(rule)); ok {
		return d.Title
	}
	return cmp.Or(rule, "All rules")
}

func severity(s alerts.Severity) views.Status {
	tones := map[alerts.Severity]string{alerts.Critical: "bad", alerts.Warning: "wait", alerts.Info: "info"}
	return views.Status{Tone: tones[s], Label: format.Capitalize(string(s))}
}

func row(a alerts.Alert) alertviews.AlertRow {
	row := alertviews.AlertRow{
		ID: "alert-" + a.ID, Severity: severity(a.Severity), Title: a.Title, Summary: a.Summary, Team: views.TaskLink{Name: format.OrDash(a.Team)},
		Since: format.Time(a.Since), Fired: format.Time(a.Fired),
	}
	if a.Team != "" {
		row.Team.URL = urls.Team(a.Team)
	}
	if !a.Resolved.IsZero() {
		row.Resolved = format.Time(a.Resolved)
	}
	if a.Silence != nil {
		row.Silenced = "Silenced until " + a.Silence.Until.UTC().Format("2006-01-02 15:04 UTC") + "."
	}
	return row
}

// csv answers GET /alerts.csv: the rows of the page.
func (h *Pages) csv(c echo.Context) error {
	state, _, err := h.read(c)
	if err != nil {
		return err
	}
	rows := [][]string{{"rule", "severity", "state", "team", "department", "summary", "since", "fired", "resolved", "silenced until"}}
	for _, a := range slices.Concat(state.Firing, state.Resolved) {
		silenced := time.Time{}
		if a.Silence != nil {
			silenced = a.Silence.Until
		}
		rows = append(rows, []string{a.Alert.Rule, string(a.Severity), stateOf(a), a.Team, a.Department(), a.Summary, format.Time(a.Since), format.Time(a.Fired), format.Time(a.Resolved), format.Time(silenced)})
	}
	return console.CSVFile(c, "alerts", rows)
}

func stateOf(a alerts.Alert) string {
	if a.Resolved.IsZero() {
		return "firing"
	}
	return "resolved"
}

// alertJSON is one alert of GET /alerts.json.
type alertJSON struct {
	Rule          string     `json:"rule"`
	Severity      string     `json:"severity"`
	State         string     `json:"state"` // firing or resolved
	Team          string     `json:"team,omitempty"`
	Of            string     `json:"department,omitempty"` // that the team is in now, or that the alert is about
	Summary       string     `json:"summary"`
	Since         time.Time  `json:"since"`
	Fired         time.Time  `json:"fired"`
	Resolved      *time.Time `json:"resolved,omitempty"`
	SilencedUntil *time.Time `json:"silencedUntil,omitempty"`
}

// alertsAnswer is the answer of GET /alerts.json.
type alertsAnswer struct {
	At     time.Time   `json:"at"`
	Alerts []alertJSON `json:"alerts"`
}

// file answers GET /alerts.json: the rows of the page.
func (h *Pages) file(c echo.Context) error {
	state, _, err := h.read(c)
	if err != nil {
		return err
	}
	answer := alertsAnswer{h.Now().UTC(), []alertJSON{}}
	for _, a := range slices.Concat(state.Firing, state.Resolved) {
		one := alertJSON{Rule: a.Alert.Rule, Severity: string(a.Severity), State: stateOf(a), Team: a.Team, Of: a.Department(), Summary: a.Summary, Since: a.Since.UTC(), Fired: a.Fired.UTC()}
		if !a.Resolved.IsZero() {
			one.Resolved = &a.Resolved
		}
		if a.Silence != nil {
			one.SilencedUntil = &a.Silence.Until
		}
		answer.Alerts = append(answer.Alerts, one)
	}
	return c.JSON(http.StatusOK, answer)
}

// silenceInput is the form for a silence as it was sent.
type silenceInput struct {
	rule, team, duration, reason, wrong string
}

// maxReason bounds the reason of a silence, in bytes.
const maxReason = 500

// silenceDuration is a choice of the form.
type silenceDuration struct {
	value, label string
	lasts        time.Duration
}

var silenceDurations = []silenceDuration{{"1h", "1 hour", time.Hour}, {"4h", "4 hours", 4 * time.Hour}, {"1d", "1 day", 24 * time.Hour}, {"1w", "1 week", 7 * 24 * time.Hour}}

func (h *Pages) form(c echo.Context, state alerts.State, typed silenceInput) (*alertviews.SilenceForm, error) {
	rule, team := listing.NewFilter("rule", "Rule", "All rules", typed.rule), listing.NewFilter("team", "Team", "All teams", typed.team)
	for _, d := range alerts.Rules {
		rule.Add(string(d.Rule), d.Title)
	}
	allocations, err := h.Allocations.State(c.Request().Context(), console.UserOf(c))
	if err != nil && !console.Unavailable(err) {
		return nil, err
	}
	for _, a := range allocations.Allocations {
		team.Add(a.Name)
	}
	lasts := listing.NewFilter("duration", "For", "", cmp.Or(typed.duration, silenceDurations[0].value))
	for _, d := range silenceDurations {
		lasts.Add(d.value, d.label)
	}
	return &alertviews.SilenceForm{Filters: []views.Filter{rule.Done(), team.Done(), lasts.Filter}, Reason: typed.reason, Wrong: typed.wrong}, nil
}

// save answers POST /alerts: it silences alerts, or ends a silence.
func (h *Pages) save(c echo.Context) error {
	if h.Alerts == nil {
		return &governance.Error{Kind: governance.Unavailable, Op: "silence alerts", Message: tasks.NoHistory}
	}
	if why := h.ReadOnlyReason(); why != "" {
		return &governance.Error{Kind: governance.Forbidden, Op: "silence alerts", Message: why}
	}
	ctx, user := c.Request().Context(), console.UserOf(c)
	if c.FormValue("action") == "end" {
		if err := h.Alerts.EndSilence(ctx, user, c.FormValue("silence")); err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, urls.Alerts+"?done=ended")
	}
	if c.FormValue("action") == "test" {
		if err := h.Alerts.Test(ctx, user, c.FormValue("receiver")); err != nil {
			return err
		}
		return c.Redirect(http.StatusSeeOther, urls.Alerts+"?done=sent")
	}
	typed := silenceInput{rule: c.FormValue("rule"), team: c.FormValue("team"), duration: c.FormValue("duration"), reason: strings.TrimSpace(c.FormValue("reason"))}
	i := slices.IndexFunc(silenceDurations, func(d silenceDuration) bool { return d.value == typed.duration })
	_, known := alerts.Describe(alerts.Rule(typed.rule))
	switch {
	case typed.rule != "" && !known:
		typed.wrong = "Choose a rule of the list."
	case i < 0:
		typed.wrong = "Choose how long the alerts are silenced."
	case len(typed.reason) > maxReason:
		typed.wrong = "Write a reason of at most 500 characters."
	}
	if typed.wrong != "" {
		if may, err := h.Alerts.MaySilence(ctx, user); err != nil || !may {
			return cmp.Or(err, error(&governance.Error{Kind: governance.Forbidden, Op: "silence alerts", Message: "Only users who may change the cluster policy can silence alerts."}))
		}
		return h.render(c, http.StatusUnprocessableEntity, typed)
	}
	n := history.Silence{Rule: typed.rule, Team: typed.team, Until: h.Now().Add(silenceDurations[i].lasts), Reason: typed.reason}
	if err := h.Alerts.Silence(ctx, user, n); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, urls.Alerts+"?done=silenced")
}
