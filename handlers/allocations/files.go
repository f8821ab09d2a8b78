package allocations

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views/ui"

	"github.com/labstack/echo/v4"
)

// selection returns the allocations that the filters of an address select.
func (h *Pages) selection(c echo.Context) ([]listed, error) {
	state, err := h.Allocations.State(c.Request().Context(), console.UserOf(c))
	return parseListQuery(c.QueryParams()).found(listOf(state), state.Departments), err
}

// policiesCSV answers GET /policies.csv: all allocations that the filters select, with a line
// for each pool.
func (h *Pages) policiesCSV(c echo.Context) error {
	found, err := h.selection(c)
	if err != nil {
		return err
	}
	all := quota.Resources{}
	for _, l := range found {
		for _, pool := range l.resolved.Pools {
			all.Add(pool.Nominal)
		}
	}
	maps.DeleteFunc(all, func(_ string, amount resources.Amount) bool { return amount == 0 })
	names := all.Names()
	rows := [][]string{{"team", "name", "namespace", "status", "weight", "lending and borrowing", "preemption", "pool"}}
	for _, name := range names {
		rows[0] = append(rows[0], format.ResourceLabel(name))
	}
	rows[0] = append(rows[0], "department")
	for _, l := range found {
		team := []string{l.Name, l.Spec.DisplayName, l.namespace(), l.status.Label, strconv.Itoa(int(l.Spec.FairShareWeight)), sharing(effective.Spec(l.ComputeAllocation).Sharing), describe.WithinTeam(l.Spec.Preemption)}
		if l.Spec.Observed() {
			team[4], team[5], team[6] = "", "", ""
		}
		if len(l.resolved.Pools) == 0 {
			rows = append(rows, slices.Concat(team, make([]string, 1+len(names)), []string{l.Spec.Department}))
		}
		for _, pool := range l.resolved.Pools {
			row := slices.Concat(team, []string{pool.Name})
			for _, name := range names {
				row = append(row, quota.Number(name, pool.Nominal[name]))
			}
			rows = append(rows, append(row, l.Spec.Department))
		}
	}
	return console.CSVFile(c, "allocations", rows)
}

// allocationsAnswer is the answer of GET /policies.json.
type allocationsAnswer struct {
	At          time.Time        `json:"at"`
	Total       int              `json:"total"`
	Page        int              `json:"page,omitempty"` // if the request names one
	Pages       int              `json:"pages,omitempty"`
	Allocations []allocationJSON `json:"allocations"`
}

type allocationJSON struct {
	Name        string     `json:"name"`
	DisplayName string     `json:"displayName,omitempty"`
	Namespace   string     `json:"namespace,omitempty"`
	Path        string     `json:"path"` // of its page
	Status      string     `json:"status"`
	Reason      string     `json:"reason,omitempty"`
	Department  string     `json:"department,omitempty"`
	Weight      *int64     `json:"weight,omitempty"` // this and the next are not known of a queue that Kuota only observes
	Sharing     string     `json:"sharing,omitempty"`
	Preemption  string     `json:"preemption,omitempty"`
	Quota       []poolJSON `json:"quota"`
}

type poolJSON struct {
	Pool      string                  `json:"pool"`
	Resources map[string]*json.Number `json:"resources"`
}

// policiesJSON answers GET /policies.json: the allocations that the filters select, all or those of
// one page.
func (h *Pages) policiesJSON(c echo.Context) error {
	found, err := h.selection(c)
	if err != nil {
		return err
	}
	from, to, page, pages := listing.Part(c.QueryParam("page"), teamsOnPage, len(found))
	answer := allocationsAnswer{At: h.Now().UTC(), Total: len(found), Page: page, Pages: pages, Allocations: []allocationJSON{}}
	for _, l := range found[from:to] {
		a := allocationJSON{Name: l.Name, DisplayName: l.Spec.DisplayName, Department: l.Spec.Department, Namespace: l.namespace(), Path: string(ui.At(c.Request().Context(), urls.Allocation(l.Name))), Status: l.status.Label, Reason: l.status.Text, Quota: []poolJSON{}}
		if !l.Spec.Observed() {
			a.Weight, a.Sharing, a.Preemption = new(int64(l.Spec.FairShareWeight)), sharing(effective.Spec(l.ComputeAllocation).Sharing), describe.WithinTeam(l.Spec.Preemption)
		}
		for _, pool := range l.resolved.Pools {
			amounts := maps.Clone(pool.Nominal)
			maps.DeleteFunc(amounts, func(_ string, amount resources.Amount) bool { return amount == 0 })
			a.Quota = append(a.Quota, poolJSON{Pool: pool.Name, Resources: format.JSONAmounts(amounts)})
		}
		answer.Allocations = append(answer.Allocations, a)
	}
	return c.JSON(http.StatusOK, answer)
}
