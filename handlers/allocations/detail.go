package allocations

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/revisions"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allocation answers GET /policies/allocations/{name}. ?saved= and ?held= say
// what was just done.
func (h *Pages) allocation(c echo.Context) error {
	page, err := h.allocationPage(c.Request().Context(), console.UserOf(c), c.Param("name"))
	if err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = titleOf(&page), "policies", urls.Allocation(page.Team)+"/events"
	if query := c.QueryString(); query != "" {
		page.Stream += "?" + query // which renders the notice too
	}
	if err := h.addNotice(c.Request().Context(), c, &page); err != nil {
		return err
	}
	return web.Render(c, http.StatusOK, allocationviews.AllocationDetailPage(page))
}

func titleOf(page *allocationviews.AllocationDetail) string {
	return "Allocation of " + cmp.Or(page.DisplayName, page.Team)
}

// addNotice adds what the query reports as just done.
func (h *Pages) addNotice(ctx context.Context, c echo.Context, page *allocationviews.AllocationDetail) error {
	switch {
	case c.QueryParam("saved") != "":
		now, err := h.Allocations.Find(ctx, console.UserOf(c), page.Team)
		if err != nil {
			return err
		}
		page.Notice = savedNotice(now.Spec.Activation)
	case c.QueryParam("held") != "":
		page.Notice = "The queue is on hold: running tasks continue, and none start. Delete the team here when the last has ended."
	}
	return nil
}

// savedNotice describes what a save means for the tasks of a team that is now in
// this activation.
func savedNotice(a v1alpha1.Activation) string {
	switch a {
	case v1alpha1.Hold:
		return "Saved. The queue is on hold: running tasks continue, and none start until you resume it."
	case v1alpha1.Drain:
		return "Saved. The queue is drained: running tasks are stopped and requeued, and none start until you resume it."
	}
	return "Saved. Applies to new admissions; borrowed quota can be reclaimed."
}

// allocationEvents answers GET /policies/allocations/{name}/events: the same,
// as it changes.
func (h *Pages) allocationEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		team := c.Param("name")
		// Access is checked before the stream begins.
		if _, err := h.Allocations.Find(c.Request().Context(), console.UserOf(c), team); err != nil {
			return err
		}
		return s.Stream(c, web.Part{Changed: h.Changes.Subscribe, Render: func(ctx context.Context) (templ.Component, error) {
			page, err := h.allocationPage(ctx, console.UserOf(c), team)
			if governance.KindOf(err) == governance.NotFound {
				return allocationviews.AllocationDeletedBody(team, urls.Policies), nil
			}
			if err == nil {
				page.Title = titleOf(&page)
				err = h.addNotice(ctx, c, &page)
			}
			return console.Live("allocation", allocationviews.AllocationDetailBody(page), err)
		}}, h.Frame(c))
	}
}

func (h *Pages) allocationPage(ctx context.Context, user governance.User, team string) (allocationviews.AllocationDetail, error) {
	a, err := h.Allocations.Find(ctx, user, team)
	if err != nil {
		return allocationviews.AllocationDetail{}, err
	}
	state, err := h.Allocations.State(ctx, user)
	if err != nil {
		return allocationviews.AllocationDetail{}, err
	}
	one := listedOf(&a, state.Types, state.Departments)
	row := allocationRow(one)
	page := allocationviews.AllocationDetail{
		Team: a.Name, DisplayName: a.Spec.DisplayName, Description: a.Spec.Description, UpURL: urls.Policies,
		Status: row.Status, Correction: row.Correction,
		Conditions: conditions(&a, state), Namespace: format.OrDash(a.Status.Namespace), ClusterQueue: format.OrDash(a.Status.ClusterQueue), LocalQueue: format.OrDash(a.Status.LocalQueue),
		Members: format.Members(a.Spec.Members), Overrides: overrides(&a),
		YAML: manifest.AllocationYAML(&a), YAMLURL: urls.Allocation(a.Name) + "/yaml",
	}
	if a.Status.Namespace != "" {
		page.TabsOf = a.Name
	}
	m, managed := managerOf(&a)
	if managed {
		page.Managed = m.sentence
	}
	page.Quota, page.QuotaNote = quotaFigures(&a, state.Types)
	for _, c := range describe.AllocationChanges(nil, &a.Spec) {
		switch {
		case c.Path == "Display name", c.Path == "Description", c.Path == "Member", strings.HasPrefix(c.Path, "Quota, "): // shown elsewhere on the page
		case a.Spec.Observed() && c.Path != "Management" && c.Path != "Existing ClusterQueue": // has no effect
		default:
			page.Settings = append(page.Settings, views.ValueLine{Name: c.Path, Value: c.After})
		}
	}
	page.Settings = append(page.Settings, views.ValueLine{Name: "Created", Value: a.CreationTimestamp.UTC().Format(time.RFC3339)})
	if page.History, err = h.Versions.Card(ctx, user, revisions.AllocationOwner(a.Name), versions.ShownVersions, urls.AllocationVersions(a.Name)); err != nil {
		return allocationviews.AllocationDetail{}, err
	}
	page.History.ActivityURL = urls.ActivityOf(string(a.UID))
	if !state.All && !state.Governed.Includes(a.Spec.Department) || managed {
		return page, nil // a member, who is not asked about: see policiesPage
	}
	may, err := h.May(ctx, user)
	if may.UpdatesIn(a.Spec.Department) && a.DeletionTimestamp == nil {
		page.EditURL = urls.Allocation(a.Name) + "/edit"
	}
	if may.UpdatesIn(a.Spec.Department) && a.DeletionTimestamp == nil {
		page.HoldURL, page.ResumeURL = holdURLs(&a)
	}
	if may.DeletesIn(a.Spec.Department) {
		page.DeleteURL = urls.Allocation(a.Name) + "/delete"
	}
	return page, err
}

// overrides returns sentences about windows and the budget of a team.
func overrides(a *v1alpha1.ComputeAllocation) []string {
	lines := describe.Active(a)
	if used := describe.BudgetUsage(a); used != "" {
		lines = append(lines, used)
	}
	return lines
}

// conditionWords are the conditions in the order of the page: what each is
// called, and how it reads when it holds and when it does not.
var conditionWords = []struct{ kind, name, yes, no string }{
	{v1alpha1.ConditionReady, "Applied", "Yes", "No"},
	{v1alpha1.ConditionQueueActive, "Queue", "Admits tasks", "Admits none"},
	{v1alpha1.ConditionWithinCapacity, "Capacity", "Fits", "Over capacity"},
}

// conditions returns the conditions of an allocation. Its capacity is that of the state that
// the page shows, since the condition follows later.
func conditions(a *v1alpha1.ComputeAllocation, state allocations.State) (lines []allocationviews.ConditionLine) {
	for _, words := range conditionWords {
		for _, condition := range a.Status.Conditions {
			if condition.Type != words.kind {
				continue
			}
			if condition.Type == v1alpha1.ConditionWithinCapacity {
				resolved, _ := quota.Effective(a, state.Types)
				now := quota.WithinCapacity(state.Allocated.Exceeding(resolved.Pools, state.Types))
				if now.Status == condition.Status {
					now.LastTransitionTime = condition.LastTransitionTime
				}
				condition = now
			}
			status := views.Status{Tone: "ok", Label: words.yes, Text: sentenceOf(condition.Message)}
			switch condition.Status {
			case metav1.ConditionFalse:
				status.Tone, status.Label = "bad", words.no
				if condition.Type == v1alpha1.ConditionWithinCapacity {
					status.Tone = "wait"
				}
			case metav1.ConditionUnknown:
				status.Tone, status.Label = "wait", "Not known yet"
			}
			lines = append(lines, allocationviews.ConditionLine{Name: words.name, Status: status, Since: format.Time(condition.LastTransitionTime.Time)})
		}
	}
	return lines
}

func sentenceOf(message string) string {
	if message == "" {
		return ""
	}
	return conditionText(message)
}

// quotaFigures returns the applied quota with all defaults.
func quotaFigures(a *v1alpha1.ComputeAllocation, types catalog.Catalog) (lines []allocationviews.QuotaFigure, note string) {
	resolved, current := quota.Effective(a, types)
	if !current && len(resolved.Pools) > 0 {
		note = "These figures are applied. The last saved change is not applied yet: see the state above."
	}
	specified := map[string]string{}
	for _, row := range effective.Spec(a).Quota {
		if pool, ok := find(row.InstanceType+row.Pool, types); ok {
			specified[pool.Name] = describe.Amounts(row.Quantities)
			if pool.Name != row.InstanceType+row.Pool {
				specified[pool.Name] = fmt.Sprintf("%s of %s", specified[pool.Name], row.InstanceType+row.Pool)
			}
		}
	}
	for _, queue := range append([]quota.ShareQuota{{Resolved: resolved}}, resolved.Shares...) {
		for _, pool := range queue.Pools {
			about, goesOn := "", false
			switch text := specified[pool.Name]; {
			case queue.Share != "":
				about = "share " + queue.Share
			case pool.BorrowOnly:
				about = "borrows only"
			case text != "":
				about = "allocated: " + text
			}
			for _, resource := range pool.Nominal.Names() {
				if pool.Nominal[resource] == 0 && pool.BorrowingLimit[resource] == 0 {
					continue
				}
				lines = append(lines, allocationviews.QuotaFigure{
					Pool: pool.Name, SamePool: goesOn, Note: about, Resource: format.ResourceLabel(resource),
					Own: figure(resource, pool.Nominal), Borrow: limitFigure(resource, pool.Nominal, pool.BorrowingLimit),
				})
				about, goesOn = "", true
			}
		}
	}
	return lines, note
}
