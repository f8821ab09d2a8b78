package versions

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/change"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	versionviews "kuota.dev/kuota/views/versions"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of versions.
type Pages struct {
	*console.Console
	Policy    console.Policy
	Revisions Revisions
}

func ValueChanges(changes []change.Field) (lines []views.ValueChange) {
	for _, c := range changes {
		lines = append(lines, views.ValueChange{Name: c.Path, Before: format.OrDash(c.Before), After: format.OrDash(c.After)})
	}
	return lines
}

var objectTones = map[string]string{change.Created: "ok", change.Changed: "wait", change.Removed: "bad"}

// ObjectLines returns the objects that a save changes, with their fields.
func ObjectLines(changes []change.Object) (lines []views.ObjectLine) {
	for i, o := range changes {
		lines = append(lines, views.ObjectLine{
			ID: fmt.Sprintf("object-%d", i), Tone: objectTones[o.Action], Action: o.Action, Created: o.Action == change.Created,
			Name: o.Kind + " " + o.Name, Fields: ValueChanges(o.Fields),
		})
	}
	return lines
}

// Revisions reads versions of policies and allocations.
type Revisions interface {
	History(ctx context.Context, user governance.User, of revisions.Owner) ([]revisions.Revision, error)
	Version(ctx context.Context, user governance.User, of revisions.Owner, number int64) (revisions.Version, error)
	// DeletedTeams returns the teams with versions that are not in existing.
	DeletedTeams(existing []v1alpha1.ComputeAllocation) []string
}

// Numbers of versions on the page of an allocation and of the policy.
const (
	ShownVersions       = 10
	ShownPolicyVersions = 3
)

// allocationVersions answers GET /policies/allocations/{name}/revisions.
func (h *Pages) allocationVersions(c echo.Context) error {
	team := c.Param("name")
	return h.versions(c, revisions.AllocationOwner(team), "Versions of "+team, urls.AllocationVersions(team))
}

// policyVersions answers GET /policies/cluster/revisions.
func (h *Pages) policyVersions(c echo.Context) error {
	return h.versions(c, revisions.PolicyOwner(), "Versions of the cluster policy", urls.PolicyVersions)
}

func (h *Pages) versions(c echo.Context, of revisions.Owner, title, url string) error {
	history, err := h.Revisions.History(c.Request().Context(), console.UserOf(c), of)
	if err != nil {
		return err
	}
	page := versionviews.HistoryPage{
		Chrome: h.Chrome(c), UpURL: urls.Policies, UpLabel: "Policies",
		Lead:    fmt.Sprintf("The last %d versions are kept, also after deletion.", revisions.Limit),
		History: historyOf(history, len(history), url),
	}
	page.Title, page.Active = title, "policies"
	return web.Render(c, http.StatusOK, versionviews.HistoryList(page))
}

// Card returns the card of the last versions. While they cannot be read, the card has
// a note, so that the rest of the page is shown.
func (h *Pages) Card(ctx context.Context, user governance.User, of revisions.Owner, most int, url string) (views.History, error) {
	all, err := h.Revisions.History(ctx, user, of)
	switch governance.KindOf(err) {
	case governance.Unavailable:
		return views.History{Note: "The versions cannot be read now. Reload the page in a moment."}, nil
	}
	return historyOf(all, most, url), err
}

func historyOf(all []revisions.Revision, most int, url string) views.History {
	history := views.History{}
	if len(all) == 0 {
		history.Note = "No versions yet."
	}
	for _, r := range all[:min(len(all), most)] {
		history.Lines = append(history.Lines, historyLine(r, url))
	}
	if len(all) > most {
		history.AllURL = url
	}
	return history
}

func historyLine(r revisions.Revision, url string) views.HistoryLine {
	number := strconv.FormatInt(r.Number, 10)
	line := views.HistoryLine{
		Number: number, URL: url + "/" + number, When: r.At.UTC().Format(time.RFC3339),
		Who: r.By, Reason: r.Reason, Changes: r.Summary,
	}
	switch {
	case r.By == "":
		line.Who = "Unknown"
	case r.ByProgram:
		line.WhoNote = "field manager; the API server did not record the user"
	}
	if r.Skipped > 0 {
		line.Missing = format.Count(int(r.Skipped), "change") + " before it is missing: the console was not running."
		if r.Skipped > 1 {
			line.Missing = format.Count(int(r.Skipped), "change") + " before it are missing: the console was not running."
		}
	}
	return line
}

// allocationVersion answers GET /policies/allocations/{name}/revisions/{n}.
func (h *Pages) allocationVersion(c echo.Context) error {
	team := c.Param("name")
	version, err := h.Version(c, revisions.AllocationOwner(team), c.Param("n"))
	if err != nil {
		return err
	}
	page := h.versionPage(c, version, urls.AllocationVersions(team))
	page.Title = fmt.Sprintf("Version %d of %s", version.Number, team)
	page.UpURL, page.UpLabel = urls.Allocation(team), team
	if version.Deleted {
		page.UpURL, page.UpLabel = urls.Policies, "Policies"
		page.Lead = "Team " + team + " was deleted."
	}
	may, err := h.May(c.Request().Context(), console.UserOf(c))
	switch {
	case err != nil:
		return err
	case version.Deleted && may.Create:
		page.RestoreURL = urls.NewAllocation + "?restores=" + origin(team, version.Number)
	case !version.Deleted && !version.Newest && (may.Update || h.delegated(c, may, team)):
		page.RestoreURL = urls.Allocation(team) + "/edit?restores=" + origin(team, version.Number)
	}
	return web.Render(c, http.StatusOK, versionviews.VersionDetail(page))
}

// delegated reports whether the reader may change a team as an admin of its department.
func (h *Pages) delegated(c echo.Context, may allocations.Permissions, team string) bool {
	if may.Departments.Empty() {
		return false
	}
	now, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), team)
	return err == nil && may.UpdatesIn(now.Spec.Department)
}

// policyVersion answers GET /policies/cluster/revisions/{n}.
func (h *Pages) policyVersion(c echo.Context) error {
	version, err := h.Version(c, revisions.PolicyOwner(), c.Param("n"))
	if err != nil {
		return err
	}
	page := h.versionPage(c, version, urls.PolicyVersions)
	page.Title = fmt.Sprintf("Version %d of the cluster policy", version.Number)
	page.UpURL, page.UpLabel = urls.Policies, "Policies"
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	if state.MayEdit && h.ReadOnlyReason() == "" && (!version.Newest || state.Policy == nil) {
		page.RestoreURL = fmt.Sprintf("%s?restores=%d", urls.EditPolicy, version.Number)
	}
	return web.Render(c, http.StatusOK, versionviews.VersionDetail(page))
}

// Version returns the version with the number of an address.
func (h *Pages) Version(c echo.Context, of revisions.Owner, number string) (revisions.Version, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != number {
		return revisions.Version{}, echo.ErrNotFound
	}
	return h.Revisions.Version(c.Request().Context(), console.UserOf(c), of, n)
}

func (h *Pages) versionPage(c echo.Context, version revisions.Version, url string) versionviews.VersionPage {
	page := versionviews.VersionPage{Chrome: h.Chrome(c), Line: historyLine(version.Revision, url), Changes: ValueChanges(version.Changes)}
	page.Active = "policies"
	page.YAMLNote = "for kubectl apply"
	switch {
	case version.Older > 0:
		page.YAMLNote = fmt.Sprintf("compared with version %d", version.Older)
	case !version.HasPrevious:
		page.ChangesNote = "The previous version is not available to compare with."
	}
	if version.HasPrevious && len(version.Changes) == 0 {
		page.ChangesNote = version.Summary + "."
	}
	for _, line := range version.Lines {
		if version.Older == 0 {
			line.Added = false // the first version is not compared
		}
		page.YAML = append(page.YAML, views.YAMLLine{Text: line.Text, Added: line.Added, Removed: line.Removed})
	}
	if version.Newest && !version.Deleted {
		page.Lead = "This is the newest version."
	}
	link := func(number int64) string {
		if number == 0 {
			return ""
		}
		return url + "/" + strconv.FormatInt(number, 10)
	}
	page.OlderURL, page.NewerURL = link(version.Older), link(version.Newer)
	return page
}

// origin identifies a version of a team in addresses and forms.
func origin(team string, number int64) string {
	return url.QueryEscape(fmt.Sprintf("%s:%d", team, number))
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.PolicyVersions, h.Handler(h.policyVersions))
	s.Page(urls.PolicyVersions+"/:n", h.Handler(h.policyVersion))
	s.Page(urls.AllocationPrefix+":name/revisions", h.Handler(h.allocationVersions))
	s.Page(urls.AllocationPrefix+":name/revisions/:n", h.Handler(h.allocationVersion))
}
