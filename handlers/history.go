package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// How many versions stand on the page of what they are versions of.
const (
	shownVersions       = 10
	shownPolicyVersions = 3
)

// policyVersionsURL is the page of all versions of the policy.
const policyVersionsURL = "/policies/cluster/revisions"

func allocationVersionsURL(team string) string { return allocationURL(team) + "/revisions" }

// allocationVersions answers GET /policies/allocations/{name}/revisions.
func (h *Handlers) allocationVersions(c echo.Context) error {
	team := c.Param("name")
	return h.versions(c, revisions.AllocationOwner(team), "Versions of "+team, allocationVersionsURL(team))
}

// policyVersions answers GET /policies/cluster/revisions.
func (h *Handlers) policyVersions(c echo.Context) error {
	return h.versions(c, revisions.PolicyOwner(), "Versions of the cluster policy", policyVersionsURL)
}

func (h *Handlers) versions(c echo.Context, of revisions.Owner, title, url string) error {
	history, err := h.Revisions.History(c.Request().Context(), userOf(c), of)
	if err != nil {
		return err
	}
	page := views.HistoryPage{
		Chrome: h.Chrome(c), UpURL: policiesURL, UpLabel: "Policies",
		Lead:    fmt.Sprintf("The last %d versions are kept, also after deletion.", revisions.Limit),
		History: historyOf(history, len(history), url),
	}
	page.Title, page.Active = title, "policies"
	return web.Render(c, http.StatusOK, views.HistoryList(page))
}

// history is the card of the last versions. Where they cannot be read, that
// stands there, and the rest of the page is shown.
func (h *Handlers) history(ctx context.Context, user governance.User, of revisions.Owner, most int, url string) (views.History, error) {
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
		Who: r.By, Because: r.Reason, Changes: r.Summary,
	}
	switch {
	case r.By == "":
		line.Who = "Unknown"
	case r.ByProgram:
		line.WhoNote = "field manager; the API server did not record the user"
	}
	if r.Skipped > 0 {
		line.Missing = countOf(int(r.Skipped), "change") + " before it is missing: the console was not running."
		if r.Skipped > 1 {
			line.Missing = countOf(int(r.Skipped), "change") + " before it are missing: the console was not running."
		}
	}
	return line
}

// allocationVersion answers GET /policies/allocations/{name}/revisions/{n}.
func (h *Handlers) allocationVersion(c echo.Context) error {
	team := c.Param("name")
	version, err := h.version(c, revisions.AllocationOwner(team), c.Param("n"))
	if err != nil {
		return err
	}
	page := h.versionPage(c, version, allocationVersionsURL(team))
	page.Title = fmt.Sprintf("Version %d of %s", version.Number, team)
	page.UpURL, page.UpLabel = allocationURL(team), team
	if version.Deleted {
		page.UpURL, page.UpLabel = policiesURL, "Policies"
		page.Lead = "Team " + team + " was deleted."
	}
	may, err := h.may(c.Request().Context(), userOf(c))
	switch {
	case err != nil:
		return err
	case version.Deleted && may.Create:
		page.RestoreURL = newAllocationURL + "?restores=" + origin(team, version.Number)
	case !version.Deleted && !version.Newest && may.Update:
		page.RestoreURL = allocationURL(team) + "/edit?restores=" + origin(team, version.Number)
	}
	return web.Render(c, http.StatusOK, views.VersionDetail(page))
}

// policyVersion answers GET /policies/cluster/revisions/{n}.
func (h *Handlers) policyVersion(c echo.Context) error {
	version, err := h.version(c, revisions.PolicyOwner(), c.Param("n"))
	if err != nil {
		return err
	}
	page := h.versionPage(c, version, policyVersionsURL)
	page.Title = fmt.Sprintf("Version %d of the cluster policy", version.Number)
	page.UpURL, page.UpLabel = policiesURL, "Policies"
	state, err := h.Policy.State(c.Request().Context(), userOf(c))
	if err != nil {
		return err
	}
	if state.MayEdit && h.readOnly() == "" && (!version.Newest || state.Policy == nil) {
		page.RestoreURL = fmt.Sprintf("%s?restores=%d", policyURL, version.Number)
	}
	return web.Render(c, http.StatusOK, views.VersionDetail(page))
}

// version reads the version that an address names.
func (h *Handlers) version(c echo.Context, of revisions.Owner, number string) (revisions.Version, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != number {
		return revisions.Version{}, echo.ErrNotFound
	}
	return h.Revisions.Version(c.Request().Context(), userOf(c), of, n)
}

func (h *Handlers) versionPage(c echo.Context, version revisions.Version, url string) views.VersionPage {
	page := views.VersionPage{Chrome: h.Chrome(c), Line: historyLine(version.Revision, url), Changes: valueChanges(version.Changes)}
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
			line.Added = false // all of the first is new
		}
		page.YAML = append(page.YAML, views.YAMLLine{Text: line.Text, New: line.Added, Gone: line.Removed})
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
