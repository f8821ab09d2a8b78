package teams

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"

	"github.com/labstack/echo/v4"
)

// teamsAnswer is the answer of GET /teams.json. Amounts are vCPU and memory in GiB, and
// counts of others.
type teamsAnswer struct {
	At       time.Time  `json:"at"`
	Resource string     `json:"resource"`
	Unit     string     `json:"unit"`
	Pool     string     `json:"pool,omitempty"` // empty for all
	Total    int        `json:"total"`          // teams that the filters select
	Page     int        `json:"page"`
	Pages    int        `json:"pages"`
	Teams    []teamJSON `json:"teams"`
}

type teamJSON struct {
	Name        string       `json:"name"`
	DisplayName string       `json:"displayName,omitempty"`
	Namespace   string       `json:"namespace"`
	Path        string       `json:"path"` // of its page
	Weight      int64        `json:"weight"`
	Allocated   *json.Number `json:"allocated"`
	Used        *json.Number `json:"used"`
	Own         *json.Number `json:"own"`
	Borrowed    *json.Number `json:"borrowed"`
	Lent        *json.Number `json:"lent"`
	Growth      *json.Number `json:"growth"`
	Utilization json.Number  `json:"utilizationPercent,omitempty"` // absent without quota
	Running     int          `json:"runningTasks"`
	Waiting     int          `json:"waitingTasks"`
}

// teamsJSON answers GET /teams.json: the rows of one page of the list.
func (h *Pages) teamsJSON(c echo.Context, scope access.Scope) error {
	q := h.teamsQuery(c.QueryParams())
	s, err := h.Capacity.Within(c.Request().Context(), scope)
	if err != nil {
		return err
	}
	resource := q.Counted(s)
	found := q.TeamLines(s, resource).Found
	from, to, page := listing.Bounds(q.Page, teamsOnPage, len(found))
	answer := teamsAnswer{
		At: h.Now().UTC(), Resource: resource, Unit: format.Unit(resource), Pool: q.Pool, Total: len(found),
		Page: page, Pages: max(1, (len(found)+teamsOnPage-1)/teamsOnPage), Teams: []teamJSON{},
	}
	for _, f := range found[from:to] {
		amount := func(n resources.Amount) *json.Number { return format.JSONAmount(resource, n) }
		t := teamJSON{
			Name: f.Team.Name, DisplayName: f.Team.DisplayName, Namespace: f.Team.Namespace, Path: figures.TeamURL(f.Team), Weight: int64(f.Team.Weight),
			Allocated: amount(f.Nominal), Used: amount(f.Usage), Own: amount(f.Own), Borrowed: amount(f.Borrowed), Lent: amount(f.LentToCohort), Growth: amount(f.Growth),
			Running: f.Running, Waiting: f.Waiting,
		}
		if f.Nominal > 0 {
			t.Utilization = json.Number(strings.TrimSuffix(usage.Percent(f.Usage, f.Nominal), " %"))
		}
		answer.Teams = append(answer.Teams, t)
	}
	return c.JSON(http.StatusOK, answer)
}
