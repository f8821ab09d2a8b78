package instances

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/figures"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/listing"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	instanceviews "kuota.dev/kuota/views/instances"
	"kuota.dev/kuota/web"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// instances answers GET /instances: pools and nodes.
func (h *Pages) instances(c echo.Context, scope access.Scope) error {
	q := parseNodeQuery(c.QueryParams())
	page, err := h.instancesPage(c.Request().Context(), scope, q)
	if err != nil {
		return err
	}
	state, err := h.Policy.State(c.Request().Context(), console.UserOf(c))
	if err != nil {
		return err
	}
	if state.MayEdit && h.ReadOnlyReason() == "" {
		page.EditURL = urls.EditPools
	}
	page.Chrome = h.Chrome(c)
	page.Title, page.Active, page.Stream = "Instances", "instances", q.URL(urls.Instances+"/events")
	return web.Render(c, http.StatusOK, instanceviews.Instances(page))
}

// instancesEvents answers GET /instances/events with the live part of the same page.
func (h *Pages) instancesEvents(s *web.Server) func(echo.Context) error {
	return func(c echo.Context) error {
		q := parseNodeQuery(c.QueryParams())
		return h.StreamWithin(s, c, "instances", q.Values, web.Part{Changed: h.CapacityChanges.Subscribe, MinGap: console.FiguresMinGap}, func(scope access.Scope) web.RenderFunc {
			return func(ctx context.Context) (templ.Component, error) {
				page, err := h.instancesPage(ctx, scope, q)
				return instanceviews.InstancesLive(page), err
			}
		})
	}
}

func (h *Pages) instancesPage(ctx context.Context, scope access.Scope, q nodeQuery) (instanceviews.InstancesPage, error) {
	snapshot, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return instanceviews.InstancesPage{}, err
	}
	found := q.find(snapshot.Nodes)
	page := instanceviews.InstancesPage{
		Summary: nodeSummary(snapshot.Nodes), Action: urls.Instances, Text: q.text, Filters: q.filters(snapshot), Sort: q.Values.Get("sort"), Order: q.Values.Get("order"),
		Heads: q.heads(), CSVURL: q.URL(urls.InstancesCSV, "page", ""), PoolsCSV: urls.With(urls.CapacityCSV, nil, "pool", q.pool),
	}
	page.ExportURL = urls.ExportOf(page.PoolsCSV, page.CSVURL)
	if q.filtered() {
		page.ClearURL = q.With("pool", "", "state", "", "q", "", "page", "")
		page.Found = format.Count(len(found), "node") + " found"
	}
	for i := range snapshot.Pools {
		if q.pool != "" && snapshot.Pools[i].Name != q.pool {
			continue
		}
		page.Pools = append(page.Pools, poolFigures(&snapshot.Pools[i])...)
	}
	from, to, at := listing.Bounds(q.page, nodesPageSize, len(found))
	page.Pager = q.Pager(at, from, to, len(found))
	for _, node := range found[from:to] {
		row := nodeRow(node, h.Now())
		row.Dashboard = h.External(h.Dashboard, urls.LinkSource{Node: node.Name})
		page.Nodes = append(page.Nodes, row)
	}
	return page, nil
}

// nodeTones maps states of nodes to the tones of their tags.
var nodeTones = map[capacity.NodeState]string{capacity.Ready: "ok", capacity.Recovering: "wait", capacity.Cordoned: "idle"}

func nodeSummary(nodes []capacity.NodeSnapshot) string {
	if len(nodes) == 0 {
		return ""
	}
	counts := map[capacity.NodeState]int{}
	for i := range nodes {
		counts[nodes[i].State]++
	}
	var parts []string
	for _, state := range nodeStates {
		if n := counts[state]; n > 0 {
			parts = append(parts, format.Thousands(int64(n))+" "+strings.ToLower(string(state)))
		}
	}
	return format.Count(len(nodes), "node") + ": " + strings.Join(parts, ", ")
}

// poolFigures returns the rows of one pool, one for each resource.
func poolFigures(p *capacity.PoolSnapshot) (rows []instanceviews.PoolFigures) {
	for _, pr := range p.Resources {
		if pr.Resource == catalog.Network || pr.Physical == 0 && pr.Nominal == 0 && pr.Usage == 0 && pr.Outside == 0 {
			continue // follows from the others, or the pool has none
		}
		row := instanceviews.PoolFigures{
			ID: "pool-" + p.Name + "-" + pr.Resource, Pool: p.Name, SamePool: len(rows) > 0, Resource: format.ResourceLabel(pr.Resource),
			PoolNumbers: figures.PoolNumbers(&pr), Used: quota.Short(pr.Resource, pr.Usage),
		}
		row.Meter.Label = poolWords(pr)
		if !row.SamePool {
			row.URL, row.Nodes, row.Note = urls.With(urls.Instances, nil, "pool", p.Name), format.Thousands(p.Nodes), acceleratorWords(p)
			if len(p.Types) != 1 || p.Types[0] != p.Name {
				row.Types = strings.Join(p.Types, ", ")
			}
			for _, s := range []struct {
				n     int64
				state capacity.NodeState
			}{{p.Ready, capacity.Ready}, {p.Recovering, capacity.Recovering}, {p.Cordoned, capacity.Cordoned}} {
				if s.n > 0 {
					row.States = append(row.States, views.Status{Tone: nodeTones[s.state], Label: fmt.Sprintf("%s %s", format.Thousands(s.n), strings.ToLower(string(s.state)))})
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func acceleratorWords(p *capacity.PoolSnapshot) string {
	if p.AcceleratorMemory == 0 {
		return p.AcceleratorModel
	}
	return strings.TrimPrefix(fmt.Sprintf("%s · %d GB", p.AcceleratorModel, p.AcceleratorMemory), " · ")
}

// poolWords describes the bar of a pool.
func poolWords(c capacity.PoolResource) string {
	words := fmt.Sprintf("%s: %s used from own quota", quota.Amount(c.Resource, c.Physical), quota.Grouped(c.Resource, c.OwnBound))
	for _, part := range []struct {
		amount resources.Amount
		what   string
	}{{c.BorrowedBound, "borrowed"}, {c.Outside, "outside Kueue"}, {c.Unhealthy, "unhealthy"}} {
		if part.amount > 0 {
			words += fmt.Sprintf(", %s %s", quota.Grouped(c.Resource, part.amount), part.what)
		}
	}
	return fmt.Sprintf("%s, %s idle; %s allocated as quota", words, quota.Grouped(c.Resource, c.Idle), quota.Grouped(c.Resource, c.Nominal))
}

func nodeRow(n *capacity.NodeSnapshot, now time.Time) instanceviews.NodeRow {
	row := instanceviews.NodeRow{
		ID: "node-" + n.Name, Name: n.Name, Pool: format.OrDash(n.Pool), Type: format.OrDash(n.Type),
		Status: views.Status{Tone: nodeTones[n.State], Label: string(n.State), Text: n.Message},
		VCPU:   boundOf(n, catalog.CPU), Memory: boundOf(n, catalog.Memory), Pods: format.Thousands(n.Pods),
		Accelerators: acceleratorFigures(n.Physical, n.Physical), Bound: acceleratorFigures(n.Physical, n.Bound), Free: acceleratorFigures(n.Physical, n.Free),
		Created: n.Created.UTC().Format(time.RFC3339), Age: format.Age(now.Sub(n.Created)),
	}
	if n.Pool != "" {
		row.PoolURL = urls.With(urls.Instances, nil, "pool", n.Pool)
	}
	if !n.Since.IsZero() && n.State != capacity.Ready {
		row.Since = n.Since.UTC().Format(time.RFC3339)
	}
	for _, team := range teamsOn(n) {
		t := instanceviews.NodeTeam{Name: format.OtherTeams, Text: format.OrDash(format.ShortAmounts(n.Teams[team]))}
		if team != "" {
			t.Name, t.URL = team, urls.Team(team)
		}
		row.Teams = append(row.Teams, t)
	}
	for _, name := range resourcesOf(n) {
		number := func(r quota.Resources) string { return quota.Grouped(name, r[name]) }
		row.Figures = append(row.Figures, instanceviews.NodeFigure{Resource: format.ResourceLabel(name), Text: fmt.Sprintf("%s physical, %s allocatable: %s bound, %s outside Kueue, %s free",
			number(n.Physical), number(n.Allocatable), number(n.Bound), number(n.Outside), number(n.Free))})
	}
	return row
}

func boundOf(n *capacity.NodeSnapshot, resource string) instanceviews.Amounts {
	return instanceviews.Amounts{Bound: quota.Short(resource, n.Bound[resource]), Of: quota.Short(resource, n.Physical[resource])}
}

// Pages answers the routes of pools and nodes.
type Pages struct {
	*console.Console
	Policy console.Policy
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Instances, h.Within(h.instances))
	s.Events(urls.Instances+"/events", h.instancesEvents(s))
	s.Page(urls.InstancesCSV, h.Within(h.instancesCSV))
}
