package activity

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	activityviews "kuota.dev/kuota/views/activity"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

const (
	pageSize = 100
	csvBatch = 2000 // entries that are read at a time
)

// query is the query in the address of the list.
type query struct {
	listing.Address
	history.ActivityQuery
	team       string
	department string
	problem    string // a sentence about an invalid value; empty for none
}

func parse(values url.Values) query {
	q := query{Address: listing.NewAddress(urls.Activity, "before")}
	one := func(name string) string { return q.Take(values, name) }
	q.team, q.Actor, q.Action, q.NameContains, q.UID = one("team"), one("actor"), one("action"), one("q"), one("uid")
	q.department = one("department")
	q.From, q.To, q.problem = q.TakeDays(values)
	if text := values.Get("before"); text != "" {
		at, id, _ := strings.Cut(text, "~")
		when, err := time.Parse(time.RFC3339Nano, at)
		if err == nil {
			q.Before = &history.Activity{At: when, ID: id}
		}
	}
	return q
}

// cursor returns the value of before= for what is older than an entry.
func cursor(e history.Activity) string { return e.At.UTC().Format(time.RFC3339Nano) + "~" + e.ID }

// reader reads the entries that one user sees.
type reader struct {
	*Pages
	user  governance.User
	scope access.Scope
	uids  map[string]string // of the allocations of teams
}

// open returns what the user of a request sees, and the teams for the filter.
func (h *Pages) open(c echo.Context, scope access.Scope, q *query) (*reader, []string, error) {
	list, err := h.Tasks.ListWithin(c.Request().Context(), scope, index.Query{}, nil)
	if err != nil {
		return nil, nil, err
	}
	var asked []string
	if q.team != "" {
		asked = []string{q.team}
	}
	if asked, err = h.TeamsOf(c.Request().Context(), q.department, asked); err != nil {
		return nil, nil, err
	}
	q.Teams = classstats.VisibleTeams(scope, list.Teams, asked)
	if q.Teams != nil && asked == nil {
		q.Teams = append(q.Teams, "") // the cluster policy, which everyone sees who sees a team
	}
	return &reader{Pages: h, user: console.UserOf(c), scope: scope, uids: map[string]string{}}, list.Teams, nil
}

// read returns the next limit entries that the user sees, and the query for the rest; nil
// at the end.
func (r *reader) read(ctx context.Context, q history.ActivityQuery, limit int) (seen []history.Activity, rest *history.ActivityQuery, err error) {
	for {
		q.Limit = limit + 1
		found, err := r.History.Activity(ctx, q)
		if err != nil {
			return nil, nil, &governance.Error{Kind: governance.Unavailable, Op: "list activity", Message: tasks.HistoryUnavailable(err), Err: err}
		}
		more := len(found) > limit
		found = found[:min(limit, len(found))]
		for i, e := range found {
			visible, err := r.sees(ctx, e)
			if err != nil {
				return nil, nil, err
			}
			if visible {
				seen = append(seen, r.redacted(e))
			}
			if len(seen) == limit {
				if i+1 < len(found) || more {
					q.Before = &found[i]
					return seen, &q, nil
				}
				return seen, nil, nil
			}
		}
		if !more {
			return seen, nil, nil
		}
		q.Before = &found[len(found)-1]
	}
}

// sees reports whether the user sees an entry of a team that they see. A team of that
// name may have had another namespace, or may have been another allocation.
func (r *reader) sees(ctx context.Context, e history.Activity) (bool, error) {
	switch {
	case r.scope.All:
		return true, nil
	case e.Namespace != "":
		return r.scope.Includes(e.Namespace), nil
	case e.Team == "":
		return e.Kind == "ClusterPolicy", nil
	}
	uid, known := r.uids[e.Team]
	if !known {
		a, err := r.Allocations.Find(ctx, r.user, e.Team)
		if err != nil && governance.KindOf(err) != governance.NotFound {
			return false, err
		}
		uid = string(a.UID)
		r.uids[e.Team] = uid
	}
	return uid != "" && e.UID == uid, nil
}

// redacted returns an entry without what only users see who see all teams: addresses, and
// errors, which can name other teams.
func (r *reader) redacted(e history.Activity) history.Activity {
	if !r.scope.All {
		e.Address, e.Error = "", ""
	}
	return e
}

// activity answers GET /activity: who did what, the latest first.
func (h *Pages) activity(c echo.Context, scope access.Scope) error {
	q := parse(c.QueryParams())
	r, teams, err := h.open(c, scope, &q)
	if err != nil {
		return err
	}
	page := activityviews.ActivityPage{
		Chrome: h.Chrome(c), Action: urls.Activity, Text: q.NameContains, Actor: q.Actor, From: q.Values.Get("from"), To: q.Values.Get("to"), Wrong: q.problem,
		UID: q.UID, Filters: q.filters(teams), CSVURL: q.URL(urls.ActivityCSV),
	}
	page.Title, page.Active = "Activity", "activity"
	if page.Filters, err = h.OfferDepartments(c, page.Filters, q.department); err != nil {
		return err
	}
	if slices.Contains(teams, q.team) {
		page.OneTeam = q.team
	}
	if len(q.Values) > 0 {
		page.ClearURL = urls.Activity
	}
	switch {
	case h.History == nil:
		page.Trouble = tasks.NoHistory
		return web.Render(c, http.StatusOK, activityviews.Activity(page))
	case q.problem != "":
		return web.Render(c, http.StatusUnprocessableEntity, activityviews.Activity(page))
	}
	found, rest, err := r.read(c.Request().Context(), q.ActivityQuery, pageSize)
	switch {
	case console.Unavailable(err):
		page.Trouble = tasks.HistoryUnavailable(err)
	case err != nil:
		return err
	}
	for _, e := range found {
		row := row(e)
		if e.Kind == "ComputeAllocation" && !slices.Contains(teams, e.Name) { // deleted: its versions remain
			row.Object.URL = urls.AllocationVersions(e.Name)
		}
		page.Rows = append(page.Rows, row)
		if row.Actor != "" && !slices.Contains(page.Actors, row.Actor) {
			page.Actors = append(page.Actors, row.Actor)
		}
	}
	slices.Sort(page.Actors)
	if q.Before != nil {
		page.NewestURL = q.With()
	}
	if rest != nil {
		page.OlderURL = q.With("before", cursor(*rest.Before))
	}
	return web.Render(c, http.StatusOK, activityviews.Activity(page))
}

// activityCSV answers GET /activity.csv: all entries of such a list.
func (h *Pages) activityCSV(c echo.Context, scope access.Scope) error {
	q := parse(c.QueryParams())
	r, err := h.openFile(c, scope, &q)
	if err != nil {
		return err
	}
	rest := &q.ActivityQuery
	head := []string{"time", "person", "source", "address", "action", "outcome", "kind", "namespace", "name", "uid", "team", "changes", "reason", "error"}
	return console.CSVStream(c, "activity", head, func() (rows [][]string, err error) {
		if rest == nil {
			return nil, nil
		}
		var found []history.Activity
		found, rest, err = r.read(c.Request().Context(), *rest, csvBatch)
		for _, e := range found {
			rows = append(rows, []string{
				e.At.UTC().Format(time.RFC3339Nano), e.Actor, string(e.Source), e.Address, e.Action, string(e.Outcome), e.Kind, e.Namespace, e.Name, e.UID, e.Team,
				strings.Join(e.Changes, "\n"), e.Reason, e.Error,
			})
		}
		return rows, err
	})
}

func (q query) filters(teams []string) []views.Filter {
	team, action := q.Filter("team", "Team", "All teams", slices.Sorted(slices.Values(teams))...), listing.NewFilter("action", "Action", "All actions", q.Action)
	for _, a := range audit.Actions {
		action.Add(string(a), a.Past())
	}
	return []views.Filter{team, action.Done()}
}

// maxChanges bounds the changes that a row shows before it is opened.
const maxChanges = 5

func row(e history.Activity) activityviews.ActivityRow {
	row := activityviews.ActivityRow{
		ID: "activity-" + e.ID, At: format.Time(e.At), Actor: e.Actor, Address: e.Address, Action: audit.Action(e.Action).Past(),
		Object: views.TaskLink{Name: e.Name, URL: objectURL(e)}, Kind: e.Kind, Team: format.OrDash(e.Team), Namespace: e.Namespace, Reason: e.Reason, Error: e.Error,
		Changes: e.Changes[:min(len(e.Changes), maxChanges)], More: e.Changes[min(len(e.Changes), maxChanges):],
	}
	row.MoreLabel = format.Count(len(row.More), "more change")
	switch e.Outcome {
	case history.Refused:
		row.Outcome = views.Status{Tone: "bad", Label: "Refused"}
	case history.OutcomeUnknown:
		row.Outcome = views.Status{Tone: "wait", Label: "Outcome unknown"}
	}
	switch {
	case e.Source == history.SourceController:
		row.Actor, row.By = "", "Kuota"
	case e.Actor == "" && e.Source == history.SourceOutside:
		row.By = "Unknown, outside the console"
	case e.Actor == "":
		row.By = "Unknown"
	}
	return row
}

// objectURL returns the page of an object; empty for none.
func objectURL(e history.Activity) string {
	switch e.Kind {
	case "ComputeAllocation":
		return urls.Allocation(e.Name)
	case "ClusterPolicy":
		return urls.Policies
	}
	if e.UID == "" {
		return ""
	}
	return urls.PastTask(history.Task{Namespace: e.Namespace, Kind: e.Kind, Name: e.Name, UID: e.UID})
}

// Pages answers the routes of activity.
type Pages struct {
	*console.Console
	History console.History // nil for none
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Activity, h.Within(h.activity))
	s.Page(urls.ActivityCSV, h.Within(h.activityCSV))
	s.Page(urls.ActivityJSON, h.Within(h.activityJSON))
	s.API(web.Endpoint{Method: http.MethodGet, Path: "/activity", Summary: "List who did what, the latest first", Answer: activityAnswer{}, Handler: h.Within(h.activityJSON), Query: []web.Parameter{
		{Name: "team", About: "of this team"}, {Name: "department", About: "of the teams in this department and below it"}, {Name: "actor", About: "by this user"}, {Name: "action", About: "of this action, such as stop"}, {Name: "q", About: "whose name contains this"},
		{Name: "uid", About: "of the object with this UID"}, {Name: "from", About: "first day, such as 2026-11-01"}, {Name: "to", About: "last day"}, {Name: "before", About: "older than this value of next"},
	}})
}

// activityAnswer is the answer of GET /activity.json.
type activityAnswer struct {
	Entries []entryJSON `json:"entries"`        // the latest first
	Next    string      `json:"next,omitempty"` // the value of before= for older entries
}

type entryJSON struct {
	At        time.Time `json:"at"`
	ID        string    `json:"id"`
	Actor     string    `json:"actor,omitempty"` // absent for controllers, and if unknown
	Source    string    `json:"source"`
	Address   string    `json:"address,omitempty"`
	Action    string    `json:"action"`
	Outcome   string    `json:"outcome"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Team      string    `json:"team,omitempty"`
	Changes   []string  `json:"changes,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// openFile is open for a file, which cannot show why it has no rows.
func (h *Pages) openFile(c echo.Context, scope access.Scope, q *query) (*reader, error) {
	r, _, err := h.open(c, scope, q)
	switch {
	case err != nil:
		return nil, err
	case h.History == nil:
		return nil, &governance.Error{Kind: governance.NotFound, Op: "list activity", Message: tasks.NoHistory}
	case q.problem != "":
		return nil, &governance.Error{Kind: governance.Invalid, Op: "list activity", Message: q.problem}
	}
	return r, nil
}

// activityJSON answers GET /activity.json: the rows of one page of the list.
func (h *Pages) activityJSON(c echo.Context, scope access.Scope) error {
	q := parse(c.QueryParams())
	r, err := h.openFile(c, scope, &q)
	if err != nil {
		return err
	}
	found, rest, err := r.read(c.Request().Context(), q.ActivityQuery, pageSize)
	if err != nil {
		return err
	}
	answer := activityAnswer{Entries: []entryJSON{}}
	for _, e := range found {
		answer.Entries = append(answer.Entries, entryJSON{
			At: e.At.UTC(), ID: e.ID, Actor: e.Actor, Source: string(e.Source), Address: e.Address, Action: e.Action, Outcome: string(e.Outcome),
			Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID, Team: e.Team, Changes: e.Changes, Reason: e.Reason, Error: e.Error,
		})
	}
	if rest != nil {
		answer.Next = cursor(*rest.Before)
	}
	return c.JSON(http.StatusOK, answer)
}
