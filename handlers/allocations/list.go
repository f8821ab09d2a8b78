package allocations

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	allocationviews "kuota.dev/kuota/views/allocations"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostDeleted is how many deleted teams the page names; a search finds the others.
const mostDeleted = 50

// policies answers GET /policies: the allocation of each team. After a save,
// ?created= names the team, and after a deletion ?deleted=.
func (h *Pages) policies(c echo.Context) error {
	q := parseListQuery(c.QueryParams())
	page, state, err := h.policiesPage(c.Request().Context(), console.UserOf(c), q)
	if err != nil {
		return err
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Policies", "policies", q.URL(urls.Policies+"/events")
	page.Notice = h.policiesNotice(page, state, c.QueryParam("created"), c.QueryParam("deleted"), c.QueryParam("released"))
	return web.Render(c, http.StatusOK, allocationviews.Policies(page))
}

// policiesNotice reports what was just done. It names no team that the reader does not see,
// unless nobody is hidden from who reads it.
func (h *Pages) policiesNotice(page allocationviews.PoliciesPage, state allocations.State, created, deleted, released string) string {
	find := func(team string) int {
		return slices.IndexFunc(state.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == team })
	}
	switch i := find(created); {
	case i >= 0:
		namespace := cmp.Or(state.Allocations[i].Spec.Namespace, h.Naming.Namespace(created))
		return fmt.Sprintf("Allocation %s was created. Submit tasks to queue %s in namespace %s.", created, h.Naming.LocalQueue(created), namespace)
	case find(deleted) >= 0:
		return fmt.Sprintf("Allocation %s is being deleted; its row shows what it waits for. Its namespace stays.", deleted)
	case deleted != "" && page.CanWrite && quota.CheckTeamName(deleted) == "":
		return fmt.Sprintf("Allocation %s was deleted. Its namespace stays.", deleted)
	case released != "" && page.CanWrite && quota.CheckTeamName(released) == "":
		return fmt.Sprintf("Team %s is released. Its ClusterQueue, LocalQueue and namespace stay as they are.", released)
	}
	return ""
}

// policiesEvents answers GET /policies/events: the same, as it changes.
func (h *Pages) policiesEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := parseListQuery(c.QueryParams())
		return s.Stream(c, web.Part{Changed: h.Changes.Subscribe, Render: func(ctx context.Context) (templ.Component, error) {
			page, _, err := h.policiesPage(ctx, console.UserOf(c), q)
			part, err := console.Live("allocations", allocationviews.AllocationsTable(page), err)
			return templ.Join(views.ClusterPolicyCard(page.Policy), part), err
		}}, h.Frame(c))
	}
}

func (h *Pages) policiesPage(ctx context.Context, user governance.User, q listQuery) (page allocationviews.PoliciesPage, state allocations.State, err error) {
	if state, err = h.Allocations.State(ctx, user); err != nil {
		return page, state, err
	}
	all := listOf(state)
	found := q.found(all, state.Departments)
	from, to, number := listing.Bounds(q.page, teamsOnPage, len(found))
	page = allocationviews.PoliciesPage{
		NewURL: urls.NewAllocation, Action: urls.Policies, Total: len(all), Note: q.note(len(found), len(all)),
		Text: q.text, Filters: q.filters(all), Sort: q.sort, Order: q.Values.Get("order"), Heads: q.heads(), Pager: q.Pager(number, from, to, len(found)),
		CSVURL: q.URL(urls.PoliciesCSV, q.PageName, ""), JSONURL: q.URL(urls.PoliciesJSON, q.PageName, ""),
	}
	tree, err := h.Departments.State(ctx, user)
	if err != nil {
		return page, state, err
	}
	if of := console.DepartmentFilter(tree, q.department); of.ID != "" {
		page.Filters = append(page.Filters, of)
	}
	if q.filtered() {
		page.ClearURL = q.With("q", "", "status", "", "pool", "", "department", "", q.PageName, "")
	}
	if page.Policy, err = h.PolicyPages.Card(ctx, user); err != nil {
		return page, state, err
	}
	for _, l := range found[from:to] {
		page.Allocations = append(page.Allocations, allocationRow(l))
	}
	page.Over = overallocated(all, state)
	if !q.filtered() {
		for _, pool := range slices.Sorted(maps.Keys(state.Others)) {
			page.Others = append(page.Others, allocationviews.QuotaLine{Pool: pool, Parts: format.ShortAmounts(state.Others[pool])})
		}
	}
	// Who sees their own team only is no admin, and is not asked about: pages of
	// many members would ask the API server once more each.
	if !state.All && len(state.Allocations) > 0 && state.Governed.Empty() {
		return page, state, nil
	}
	may, err := h.May(ctx, user)
	page.CanWrite = may.Creates()
	if state.All && may.Create {
		for _, team := range h.Revisions.DeletedTeams(state.Allocations) {
			switch {
			case !strings.Contains(team, strings.ToLower(q.text)):
			case len(page.Deleted) == mostDeleted:
				page.MoreDeleted++
			default:
				page.Deleted = append(page.Deleted, views.NamedLink{Name: team, URL: urls.AllocationVersions(team)})
			}
		}
	}
	if may.Creates() || may.Updates() || page.Policy.MayEdit {
		page.ImportURL = urls.Import
	}
	if err == nil && may.Create && state.All && page.Policy != nil && page.Policy.MayEdit && h.Adoption != nil {
		unmanaged, err := h.Adoption.Unmanaged(ctx)
		if err == nil && unmanaged > 0 {
			page.AdoptURL, page.Unmanaged = urls.Adoption, unmanaged
		}
	}
	page.Many = q.manyForm(may, state.Departments.Len() > 0)
	for i := range page.Allocations {
		row := &page.Allocations[i]
		if row.Managed != "" {
			continue
		}
		department := found[from+i].Spec.Department
		if may.UpdatesIn(department) && found[from+i].DeletionTimestamp == nil {
			row.EditURL = row.URL + "/edit"
		}
		if may.DeletesIn(department) {
			row.DeleteURL = row.URL + "/delete"
		}
	}
	return page, state, err
}

// overallocated returns the pools of these teams that have less than all teams are allocated.
func overallocated(all []listed, state allocations.State) (over []allocationviews.PoolExcess) {
	var pools []quota.FlavorQuotas
	for _, pool := range state.Types.Pools() {
		if slices.ContainsFunc(all, func(l listed) bool { return l.in(pool.Name, false) }) {
			pools = append(pools, quota.FlavorQuotas{Name: pool.Name})
		}
	}
	for _, pool := range pools {
		if text := quota.DescribeExcess(state.Allocated.Exceeding([]quota.FlavorQuotas{pool}, state.Types)); text != "" {
			over = append(over, allocationviews.PoolExcess{Pool: pool.Name, URL: urls.Policies + "?pool=" + url.QueryEscape(pool.Name), Text: strings.TrimPrefix(text, pool.Name+": ")})
		}
	}
	return over
}

func allocationRow(l listed) allocationviews.AllocationRow {
	a := l.ComputeAllocation
	row := allocationviews.AllocationRow{
		Team: a.Name, DisplayName: a.Spec.DisplayName,
		Namespace:  format.OrDash(a.Status.Namespace),
		Status:     l.status,
		Sharing:    sharing(effective.Spec(a).Sharing),
		Overrides:  describe.Active(a),
		Preemption: describe.WithinTeam(a.Spec.Preemption),
		Weight:     int64(a.Spec.FairShareWeight),
		URL:        urls.Allocation(a.Name),
	}
	if m, managed := managerOf(a); managed {
		row.Managed = m.short
	}
	if row.Observed = a.Spec.Observed(); row.Observed {
		row.Sharing, row.Preemption = format.OrDash(""), format.OrDash("")
	}
	if fix := a.Status.LastCorrection; fix != nil {
		row.Correction = fmt.Sprintf("%s was changed by %s and corrected, %s", fix.Object, fix.Manager, fix.Time.UTC().Format(time.RFC3339))
	}
	if !l.current && len(l.resolved.Pools) > 0 {
		row.Status.Text = strings.TrimSuffix(row.Status.Text, ".") + ". Until you fix this, the previous quota stays active."
	}
	for _, pool := range l.resolved.Pools {
		parts := format.ShortAmounts(pool.Nominal)
		if pool.BorrowOnly {
			parts = "borrows only"
		}
		row.Quota = append(row.Quota, allocationviews.QuotaLine{Pool: pool.Name, Parts: parts})
	}
	return row
}

// allocationStatus puts the conditions into one word and a sentence.
func allocationStatus(a *v1alpha1.ComputeAllocation, departments []*v1alpha1.Department) views.Status {
	ready := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case a.DeletionTimestamp != nil && ready != nil && ready.Reason == "Deleting":
		return views.Status{Tone: "wait", Label: "Deleting", Text: format.Capitalize(ready.Message)}
	case a.DeletionTimestamp != nil:
		return views.Status{Tone: "wait", Label: "Deleting"}
	case ready == nil || ready.ObservedGeneration != a.Generation:
		return views.Status{Tone: "wait", Label: "Applying"}
	case ready.Status != metav1.ConditionTrue && meta.IsStatusConditionPresentAndEqual(a.Status.Conditions, v1alpha1.ConditionQueueActive, metav1.ConditionUnknown):
		return views.Status{Tone: "wait", Label: "Applying", Text: ready.Message}
	case ready.Status != metav1.ConditionTrue:
		return views.Status{Tone: "bad", Label: "Not ready", Text: conditionText(ready.Message)}
	case effective.Spec(a).Activation == v1alpha1.Hold:
		return views.Status{Tone: "idle", Label: "Held", Text: "Running tasks continue; none starts."}
	case effective.Spec(a).Activation == v1alpha1.Drain:
		return views.Status{Tone: "idle", Label: "Drained", Text: "No task runs; all wait."}
	}
	if label, text := describe.Held(a, departments...); label != "" {
		return views.Status{Tone: "idle", Label: label, Text: text}
	}
	return views.Status{Tone: "ok", Label: "Active"}
}

// sharing returns the strategy and the borrow limit in the words of the list.
func sharing(s v1alpha1.Sharing) string {
	switch {
	case s.Strategy == v1alpha1.Lend:
		return "Lends"
	case s.Strategy == v1alpha1.DontLend:
		return "Does not lend"
	}
	text := fmt.Sprintf("Lends and borrows up to %d %%", v1alpha1.DefaultBorrowLimitPercent)
	switch {
	case s.Unlimited:
		text = "Lends and borrows without limit"
	case s.BorrowLimitPercent != nil:
		text = fmt.Sprintf("Lends and borrows up to %d %%", *s.BorrowLimitPercent)
	}
	if n := len(s.BorrowLimits); n > 0 {
		text += ", other limits in " + format.Count(n, "pool")
	}
	return text
}
