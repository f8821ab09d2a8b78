package hardware

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/timerange"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	dashboardviews "kuota.dev/kuota/views/dashboard"
	"kuota.dev/kuota/web"
)

const hardwareCSVURL = "/hardware.csv"

// Utilization returns how busy accelerators are.
type Utilization interface {
	// Now returns the latest state. It never waits.
	Now() utilization.State
	// History returns the gauges over a range. It waits for one second at most.
	History(ctx context.Context, span utilization.Range, c utilization.Inventory, pool string) (utilization.History, error)
	// Samples returns the samples a second of trainings over a range. It waits as History does.
	Samples(ctx context.Context, namespace, pods string, span utilization.Range) ([]time.Time, utilization.Series, error)
	// IdleAfter returns how long the accelerators of a task must do nothing until the
	// task counts as idle.
	IdleAfter() time.Duration
}

// PodOwners returns the task and team of pods.
type PodOwners interface {
	PodOwners(ctx context.Context, scope access.Scope) (func(index.PodName) (queries.Owner, bool), error)
}

// noTeam is the key of usage without a team in sums by team, like otherTeams for
// hidden teams. No team can have this name.
const noTeam = ""

// hardwareNow is the current state of the hardware within a scope.
type hardwareNow struct {
	state   utilization.State
	cluster utilization.Inventory
	pool    string
	sums    utilization.Sums // devices without a reading are not included
	usage   map[utilization.UsageKey]float64
	owners  map[string]queries.Owner // by the task's key in sums
	prices  accounting.Prices
}

// hardwareNow reads the state of one pool, or of all if none has that name.
func (h *Pages) hardwareNow(ctx context.Context, scope access.Scope, pool string) (hardwareNow, error) {
	snapshot, err := h.Capacity.Within(ctx, scope)
	if err != nil {
		return hardwareNow{}, err
	}
	owner, err := h.PodOwners.PodOwners(ctx, scope)
	if err != nil {
		return hardwareNow{}, err
	}
	n := hardwareNow{state: h.Hardware.Now(), owners: map[string]queries.Owner{}, usage: map[utilization.UsageKey]float64{}, prices: accounting.PricesOf(snapshot.Prices)}
	for _, p := range snapshot.Pools {
		if p.Name == pool {
			n.pool = pool
		}
	}
	n.cluster = utilization.Inventory{Nodes: nodeInfos(snapshot), Pods: podOwners(owner, n.owners)}
	for _, team := range snapshot.Teams {
		n.addUsage(team.Name, team)
	}
	if snapshot.Others != nil && scope.All { // only queues without a team are left
		n.addUsage(noTeam, *snapshot.Others)
	} else if snapshot.Others != nil {
		n.addUsage(format.OtherTeams, *snapshot.Others)
	}
	reading := n.state.Reading
	if reading == nil {
		reading = &utilization.Reading{}
	}
	n.sums = reading.Sum(n.cluster, n.pool)
	return n, nil
}

// podOwners returns the owners of pods for sums. It adds each to owners, by its task.
func podOwners(owner func(index.PodName) (queries.Owner, bool), owners map[string]queries.Owner) func(utilization.PodName) (utilization.PodOwner, bool) {
	return func(name utilization.PodName) (utilization.PodOwner, bool) {
		o, known := owner(index.PodName(name))
		switch {
		case !known:
			return utilization.PodOwner{}, false
		case o.Hidden:
			return utilization.PodOwner{Team: format.OtherTeams}, true
		}
		key := strings.Join([]string{o.Task.Namespace, o.Task.Kind, o.Task.Name, o.Task.UID}, "/")
		owners[key] = o
		return utilization.PodOwner{Team: o.Team, Task: key, Accelerators: int64(o.Accelerators), AdmittedAt: o.AdmittedAt}, true
	}
}

// nodeInfos returns the nodes of a snapshot with their devices.
func nodeInfos(snapshot *capacity.Snapshot) map[string]utilization.NodeInfo {
	nodes := make(map[string]utilization.NodeInfo, len(snapshot.Nodes))
	for i := range snapshot.Nodes {
		node := &snapshot.Nodes[i]
		place := utilization.NodeInfo{Pool: node.Pool}
		for resource, amount := range node.Physical {
			// Partitions belong to GPUs that are counted already.
			if kind, share := utilization.KindOf(resource); kind != "" && share == 1 && amount > 0 {
				if place.Devices == nil {
					place.Devices = map[utilization.Kind]int64{}
				}
				place.Devices[kind] += int64(amount)
			}
		}
		nodes[node.Name] = place
	}
	return nodes
}

// addUsage adds the devices that a team uses in the pool.
func (n *hardwareNow) addUsage(name string, team capacity.TeamSnapshot) {
	for _, r := range team.Resources {
		if kind, share := utilization.KindOf(r.Resource); kind != "" && r.Usage > 0 && (n.pool == "" || r.Flavor == n.pool) {
			n.usage[utilization.UsageKey{Name: name, Kind: kind}] += float64(r.Usage) * share
		}
	}
}

// Section returns how busy the hardware of a pool is, now and over a range; of all
// pools if none has that name.
func (h *Pages) Section(ctx context.Context, scope access.Scope, pool string, r timerange.Range) (dashboardviews.HardwareSection, error) {
	if h.Hardware == nil {
		return dashboardviews.HardwareSection{Off: "Hardware utilization is off. Start the console with --prometheus-url, the address of a Prometheus that scrapes dcgm-exporter and node-exporter."}, nil
	}
	n, err := h.hardwareNow(ctx, scope, pool)
	if err != nil {
		return dashboardviews.HardwareSection{}, err
	}
	s := dashboardviews.HardwareSection{Trouble: n.state.Warning, AsOf: n.asOf(), Gauges: n.gauges(), Use: n.use(), UseLead: n.useLead(), CSVURL: urls.With(hardwareCSVURL, nil, "pool", n.pool)}
	h.hardwareIdle(&s, n, scope.All)
	s.Chart = h.hardwareChart(ctx, n, r)
	return s, nil
}

// asOf returns the age of the figures, and how many devices they cover.
func (n hardwareNow) asOf() string {
	if n.state.Reading == nil {
		return ""
	}
	parts := []string{marked("as of "+format.Duration(n.state.Age)+" ago", n.state.Reading.Simulated)}
	for _, kind := range n.kinds() {
		g := n.sums.All.Devices[kind]
		parts = append(parts, fmt.Sprintf("%s of %s %ss have data", format.Thousands(g.Reporting), format.Thousands(g.Total), kind))
	}
	text := strings.Join(parts, ", ")
	if n.sums.UnknownNodeDevices > 0 {
		text += fmt.Sprintf("; %s on unknown nodes not counted", format.Count(n.sums.UnknownNodeDevices, "more device"))
	}
	return text
}

// kinds returns the kinds of device that exist, GPUs first.
func (n hardwareNow) kinds() []utilization.Kind {
	return slices.Sorted(maps.Keys(n.sums.All.Devices))
}

// gauges returns the gauges of a pool. GPUs are left out only if there are other
// devices instead.
func (n hardwareNow) gauges() []dashboardviews.HardwareGauge {
	const GiB = 1 << 30
	all := n.sums.All
	gpus, neuron := all.Devices[utilization.GPU], all.Devices[utilization.Neuron]
	var list []dashboardviews.HardwareGauge
	add := func(id, label, help, unit string, one float64, r utilization.Ratio, missing string) {
		g := dashboardviews.HardwareGauge{ID: "gauge-" + id, Label: label, Help: help, Value: "No data", Known: r.Known(), Share: r.Share(), Detail: missing}
		if r.Known() {
			g.Value, g.Detail = share(r.Share()), format.Joined(fmt.Sprintf("%s of %s %s", format.Average(r.Used/one), format.Average(r.Of/one), unit), missing)
		}
		list = append(list, g)
	}
	withData := func(have, of int, what string) string {
		if have == of {
			return ""
		}
		return fmt.Sprintf("%d of %s", have, format.Count(of, what)) + map[bool]string{true: " has data", false: " have data"}[of == 1]
	}
	if gpus.Total > 0 || neuron.Total == 0 {
		add("gpu", "GPU utilization", "Mean utilization of the GPUs with data. A MIG device counts by its share of a GPU.", "GPUs", 1, gpus.Ratio, withData(int(gpus.Reporting), int(gpus.Total), "GPU"))
		add("gpu-memory", "GPU memory", "Used GPU memory of all GPU memory, for GPUs that report both.", "GiB", GiB, gpus.Memory, "")
	}
	if neuron.Total > 0 {
		add("neuron", "Neuron utilization", "Mean utilization of the cores of Neuron devices.", "devices", 1, neuron.Ratio, withData(int(neuron.Reporting), int(neuron.Total), "device"))
		add("neuron-memory", "Neuron memory", "Neuron memory used by processes of all Neuron memory, for devices that report both.", "GiB", GiB, all.NeuronMemory, "")
	}
	add("cpu", "vCPU utilization", "Share of time in which vCPUs are not idle.", "vCPUs", 1, all.CPU, withData(all.CPUNodes, all.Nodes, "node"))
	add("memory", "Memory utilization", "Memory not available to new processes, of all node memory.", "GiB", GiB, all.Memory, withData(all.MemoryNodes, all.Nodes, "node"))
	return list
}

// useLead describes the table of accelerators.
func (n hardwareNow) useLead() string {
	return marked("accelerators of admitted tasks, and how many of them are busy", n.state.Reading != nil && n.state.Reading.Simulated)
}

// marked marks a text about utilization that was not measured.
func marked(text string, simulated bool) string {
	if simulated {
		return text + " (simulated)"
	}
	return text
}

// share formats a share as a percentage.
func share(v float64) string { return fmt.Sprintf("%.1f %%", v*100) }

// hardwareChart returns the gauges over a range. An error replaces the chart by a
// sentence.
func (h *Pages) hardwareChart(ctx context.Context, n hardwareNow, r timerange.Range) *views.Chart {
	chart := &views.Chart{ID: "hardware-history", Title: "Hardware utilization", Note: r.Words, Unit: "%", Max: 100}
	if r.Buckets <= 0 {
		chart.Empty = "The range is empty. Choose another one."
		return chart
	}
	span := utilization.Range{From: r.From, To: r.To, Step: r.To.Sub(r.From) / time.Duration(r.Buckets)}
	history, err := h.Hardware.History(ctx, span, n.cluster, n.pool)
	var domainError *governance.Error
	switch {
	case errors.As(err, &domainError):
		chart.Empty = domainError.Message
		return chart
	case err != nil:
		chart.Empty = "Hardware history is not available. See the console's log for the reason."
		return chart
	}
	chart.Note = history.Warning
	for _, at := range history.Times {
		chart.Times = append(chart.Times, at.Unix())
	}
	known := false
	for _, line := range []struct {
		label, tone string
		values      utilization.Series
	}{
		{"GPU", "own", history.GPU}, {"GPU memory", "borrowed", history.GPUMemory}, {"Neuron", "ok", history.Neuron},
		{"vCPU", "wait", history.CPU}, {"Memory", "outside", history.Memory},
	} {
		if line.values == nil {
			continue
		}
		s := views.ChartSeries{Label: line.label, Tone: line.tone}
		for _, v := range line.values {
			value := views.ChartValue{Known: v == v} // NaN is no data
			if value.Known {
				value.Value, value.Text = float64(int(v*1000+0.5))/10, fmt.Sprintf("%.1f", v*100)
				known = true
			}
			s.Values = append(s.Values, value)
		}
		chart.Series = append(chart.Series, s)
	}
	if !known {
		chart.Empty = "Prometheus has no data for this range."
	}
	return chart
}

// Pages renders how busy the hardware is: a section of the dashboard, and its CSV
// file.
type Pages struct {
	*console.Console
	Hardware  Utilization // nil without Prometheus
	PodOwners PodOwners
	IdleBelow float64 // utilization, 0 to 1, that an idle accelerator never reached
	idle      idleTasks
	trainings trainings
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(hardwareCSVURL, h.Within(h.hardwareCSV))
}
