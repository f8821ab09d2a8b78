package hardware

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	dashboardviews "kuota.dev/kuota/views/dashboard"

	"github.com/labstack/echo/v4"
)

// maxIdle is the largest number of idle tasks that a page shows.
const maxIdle = 50

// hardwareRow is the activity of one team's accelerators, in accelerators.
type hardwareRow struct {
	name, sub string
	team      bool
	kind      utilization.Kind
	used      float64 // accelerators allocated to pods; negative if not applicable
	use       utilization.Usage
}

// rows returns the rows of teams by name, of other teams, of devices without an
// owner, and of devices without data.
func (n hardwareNow) rows() (rows []hardwareRow) {
	keys := maps.Clone(n.usage)
	for key := range n.sums.Teams {
		keys[key] += 0
	}
	rank := func(name string) int {
		switch name {
		case format.OtherTeams:
			return 1
		case noTeam:
			return 2
		}
		return 0
	}
	byName := func(a, b utilization.UsageKey) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), strings.Compare(a.Name, b.Name), strings.Compare(string(a.Kind), string(b.Kind)))
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), byName) {
		row := hardwareRow{name: key.Name, team: rank(key.Name) == 0, kind: key.Kind, used: keys[key], use: n.sums.Teams[key]}
		switch key.Name {
		case format.OtherTeams:
			row.name = "Other teams"
		case noTeam:
			row.name, row.sub = "No team", "tasks in queues and namespaces that belong to no team"
		}
		rows = append(rows, row)
	}
	for _, kind := range n.kinds() {
		if use := n.sums.Unattributed[kind]; use.Devices > 0 {
			rows = append(rows, hardwareRow{name: "Unattributed", sub: "series without a pod, or with a pod of no task", kind: kind, used: -1, use: use})
		}
	}
	for _, kind := range n.kinds() {
		if missing := n.sums.All.Devices[kind].Missing(); missing > 0 {
			rows = append(rows, hardwareRow{name: "No data", sub: fmt.Sprintf("%s without data in Prometheus", format.Count(int(missing), string(kind))), kind: kind, used: -1, use: utilization.Usage{Devices: float64(missing)}})
		}
	}
	return rows
}

// use returns the rows of the table.
func (n hardwareNow) use() []dashboardviews.HardwareUse {
	rows := n.rows()
	largest := map[utilization.Kind]float64{}
	for _, row := range rows {
		largest[row.kind] = max(largest[row.kind], row.used, row.use.Used)
	}
	list := make([]dashboardviews.HardwareUse, len(rows))
	for i, row := range rows {
		v := dashboardviews.HardwareUse{
			ID: "hardware-" + strings.ReplaceAll(strings.ToLower(row.name+"-"+string(row.kind)), " ", "-"), Name: row.name, Sub: row.sub, Unit: string(row.kind) + "s",
			Used: "–", WithData: "–", Busy: "–", Utilization: "–", LargestOfAll: largest[row.kind], BusyNumber: row.use.Used,
		}
		if row.team {
			v.ID, v.URL = "hardware-team-"+row.name+"-"+strings.ReplaceAll(string(row.kind), " ", "-"), urls.Team(row.name)
		}
		if row.used >= 0 {
			v.Used, v.UsedNumber = format.Average(row.used), row.used
		}
		if row.use.Known() {
			v.WithData, v.Busy, v.Utilization = format.Average(row.use.Of), format.Average(row.use.Used), share(row.use.Share())
			v.Meter = row.used > 0
		}
		list[i] = v
	}
	return list
}

// hardwareIdle adds the tasks whose accelerators are idle.
func (h *Pages) hardwareIdle(s *dashboardviews.HardwareSection, n hardwareNow, all bool) {
	if n.state.Reading == nil {
		return
	}
	after := h.Hardware.IdleAfter()
	s.IdleLead = marked(fmt.Sprintf("admitted at least %s ago, with every accelerator below %s since", plainDuration(after), share(h.IdleBelow)), n.state.Reading.Simulated)
	idle := n.state.Reading.Idle(n.cluster, n.pool, after, h.IdleBelow)
	if len(idle) > 0 {
		s.IdleWho = "Idle tasks"
		if !all {
			s.IdleWho += " of your teams"
		}
		s.IdleNow = marked(n.idleWords(idle, h.Now()), n.state.Reading.Simulated)
	}
	if more := len(idle) - maxIdle; more > 0 {
		idle, s.IdleMore = idle[:maxIdle], fmt.Sprintf("%s more with fewer accelerators.", format.Count(more, "task"))
	}
	s.IdleCurrency = n.prices.Currency
	for _, t := range idle {
		o := n.owners[t.Task]
		cost, _ := n.monthly(t, h.Now())
		s.Idle = append(s.Idle, dashboardviews.HardwareIdle{
			ID: "idle-" + o.Task.UID, Name: o.Task.Name, Team: format.OrDash(o.Team), Accelerators: format.Thousands(t.Accelerators),
			URL:   urls.TaskOf(o.Task.Namespace, o.Task.Kind, o.Task.Name),
			Since: t.AdmittedAt.UTC().Format(time.RFC3339), SinceAgo: format.Age(h.Now().Sub(t.AdmittedAt)), Peak: share(t.Peak), Cost: format.Money(cost),
		})
	}
}

// monthHours is the length of a month in costs of idle accelerators.
const monthHours = 730

// monthly returns what the devices of a task cost in a month, at the present prices of
// quota that a team owns; nil without one. all reports whether each device has a price.
func (n hardwareNow) monthly(t utilization.IdleTask, now time.Time) (cost *big.Rat, all bool) {
	all = true
	for on, devices := range t.Devices {
		price := n.prices.At(on.Pool, on.Resource, now)
		if price == nil {
			all = false
			continue
		}
		if cost == nil {
			cost = new(big.Rat)
		}
		cost.Add(cost, new(big.Rat).Mul(price.Own, big.NewRat(devices*monthHours, 1)))
	}
	return cost, all
}

// idleWords describes what idle tasks use, after their name.
func (n hardwareNow) idleWords(idle []utilization.IdleTask, now time.Time) string {
	devices, sum, priced, all := map[utilization.Kind]float64{}, new(big.Rat), false, true
	for _, t := range idle {
		for on, count := range t.Devices {
			kind, whole := utilization.KindOf(on.Resource)
			devices[kind] += float64(count) * whole
		}
		cost, each := n.monthly(t, now)
		all = all && each
		if cost != nil {
			sum.Add(sum, cost)
			priced = true
		}
	}
	var parts []string
	for _, kind := range n.kinds() {
		if devices[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s %ss", format.Average(devices[kind]), format.Thousands(n.sums.All.Devices[kind].Total), kind))
		}
	}
	words := "use " + strings.Join(parts, " and ") + " now"
	if priced {
		words += fmt.Sprintf(": %s %s a month at the present prices", quota.Thousands(sum.FloatString(0)), n.prices.Currency)
	}
	if priced && !all {
		words += ", without those that have no price"
	}
	return words
}

// plainDuration formats a duration as in a setting, such as 30 m.
func plainDuration(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d m", d/time.Minute)
	}
	return format.Duration(d)
}

// hardwareCSV answers GET /hardware.csv: accelerator activity by team; ?pool=
// selects a pool. Cells without data are empty.
func (h *Pages) hardwareCSV(c echo.Context, scope access.Scope) error {
	rows := [][]string{{"team", "accelerator", "held", "devices", "with data", "busy", "utilization", "as of", "simulated"}}
	if h.Hardware != nil {
		n, err := h.hardwareNow(c.Request().Context(), scope, c.QueryParam("pool"))
		if err != nil {
			return err
		}
		at, simulated := "", ""
		if n.state.Reading != nil {
			at, simulated = n.state.Reading.At.UTC().Format(time.RFC3339), strconv.FormatBool(n.state.Reading.Simulated)
		}
		number := func(v float64) string { return strconv.FormatFloat(float64(int64(v*10000+0.5))/10000, 'f', -1, 64) }
		for _, row := range n.rows() {
			line := []string{row.name, string(row.kind), "", number(row.use.Devices), "", "", "", at, simulated}
			if row.used >= 0 {
				line[2] = number(row.used)
			}
			if row.use.Known() {
				line[4], line[5], line[6] = number(row.use.Of), number(row.use.Used), number(row.use.Share())
			}
			rows = append(rows, line)
		}
	}
	return console.CSVFile(c, "hardware", rows)
}

// idleFreshness is how long idle tasks are cached. All readers share the cache.
const idleFreshness = 5 * time.Second

// Idle is a task whose accelerators are idle.
type Idle struct {
	Task         tasks.Address
	Team         string
	Accelerators int64
	Peak         float64   // the largest utilization of any of them, 0 to 1
	Since        time.Time // or earlier: when the console has not seen it
	Simulated    bool      // not measured
}

// Words describes how long the task has been idle.
func (i Idle) Words(now time.Time) string {
	return marked("idle for at least "+format.Age(now.Sub(i.Since)), i.Simulated)
}

// PeakWords describes the largest utilization of any of its accelerators, in a row of its own.
func (i Idle) PeakWords() string { return marked(share(i.Peak), i.Simulated) }

// idleTasks are the idle tasks by UID.
type idleTasks struct {
	mu    sync.Mutex
	at    time.Time // when they were computed
	times utilization.IdleTimes
	tasks map[string]Idle
}

// IdleTasks returns the idle tasks by UID, of all teams: callers show only those that their
// reader sees. It is empty without Prometheus, and while there is no data.
func (h *Pages) IdleTasks(ctx context.Context) map[string]Idle {
	if h == nil || h.Hardware == nil {
		return nil
	}
	c := &h.idle
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := h.Now(); c.at.IsZero() || now.Sub(c.at) >= idleFreshness {
		c.at = now
		h.findIdle(ctx, c)
	}
	if h.Hardware.Now().Reading == nil {
		return nil
	}
	return c.tasks
}

// findIdle computes the idle tasks of the current reading.
func (h *Pages) findIdle(ctx context.Context, c *idleTasks) {
	reading, after := h.Hardware.Now().Reading, h.Hardware.IdleAfter()
	if reading == nil {
		return
	}
	all := access.Scope{All: true}
	snapshot, err := h.Capacity.Within(ctx, all)
	if err != nil {
		return
	}
	owner, err := h.PodOwners.PodOwners(ctx, all)
	if err != nil {
		return
	}
	owners := map[string]queries.Owner{}
	cluster := utilization.Inventory{Nodes: nodeInfos(snapshot), Pods: podOwners(owner, owners)}
	idle := reading.Idle(cluster, "", after, h.IdleBelow)
	since := c.times.Next(reading.At, idle, after)
	c.tasks = map[string]Idle{}
	for _, t := range idle {
		o := owners[t.Task]
		c.tasks[o.Task.UID] = Idle{Task: o.Task, Team: o.Team, Accelerators: t.Accelerators, Peak: t.Peak, Since: since[t.Task], Simulated: reading.Simulated}
	}
}
