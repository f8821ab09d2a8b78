package utilization

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Cluster says where nodes and pods belong.
type Inventory struct {
	Nodes map[string]NodeInfo // by name
	// Pods tells whose a pod is; false for one that nobody knows.
	Pods func(PodName) (PodOwner, bool)
}

// Place is where a node belongs, and what it has nominally.
type NodeInfo struct {
	Pool    string
	Devices map[Kind]int64 // whole ones
}

// Holder is whom a pod belongs to.
type PodOwner struct {
	Team string // as the caller tells teams apart
	Task string // as the caller tells tasks apart; empty for none
	// Held is how many accelerators the task holds in all, MIG devices each as one.
	Accelerators int64
	AdmittedAt   time.Time // when it was admitted
}

// Gauge is the use of devices, and of how many of them there is data.
type Gauge struct {
	Ratio                  // in devices
	Memory           Ratio // bytes
	Reporting, Total int64 // whole devices: with data on utilization, and in all
}

func (g *Gauge) add(d *Device) {
	g.Ratio.Add(d.Busy)
	g.Memory.Add(d.Memory)
}

// Missing is of how many devices there is no data.
func (g Gauge) Missing() int64 { return max(0, g.Total-g.Reporting) }

// Gauges are those of some nodes.
type Gauges struct {
	Devices      map[Kind]Gauge
	CPU          Ratio // vCPUs
	Memory       Ratio // bytes
	NeuronMemory Ratio // bytes
	CPUNodes     int   // with data on vCPUs
	MemoryNodes  int   // with data on memory
	Nodes        int   // in all
}

// Use is what the devices of somebody's pods do.
type Usage struct {
	Ratio           // in devices; a device that several pods share counts for each by an equal part
	Devices float64 // with data or without
}

// UseKey says whose use it is.
type UsageKey struct {
	Name string // a team or a task
	Kind Kind
}

// Sums are a Reading summed up.
type Sums struct {
	All          Gauges
	Pools        map[string]Gauges
	Teams, Tasks map[UsageKey]Usage
	// Unattributed are devices without a pod, or with one that nobody knows.
	Unattributed map[Kind]Usage
	// Strange is how many devices are on nodes that the cluster does not have. They
	// count nowhere.
	UnknownNodeDevices int
}

// Sum sums up what is on the nodes of a pool; of all pools, for an empty one.
func (r *Reading) Sum(c Inventory, pool string) Sums {
	s := Sums{All: newGauges(), Pools: map[string]Gauges{}, Teams: map[UsageKey]Usage{}, Tasks: map[UsageKey]Usage{}, Unattributed: map[Kind]Usage{}}
	byNode := map[string][]*Device{}
	for i := range r.Devices {
		d := &r.Devices[i]
		name := r.resolve(d.Node, c)
		if _, there := c.Nodes[name]; !there {
			s.UnknownNodeDevices++
			continue
		}
		byNode[name] = append(byNode[name], d)
	}
	figures := map[string]Node{}
	for _, n := range r.Nodes {
		name := r.resolve(n.Name, c)
		figures[name] = larger(figures[name], n)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		place := c.Nodes[name]
		if pool != "" && place.Pool != pool {
			continue
		}
		if _, there := s.Pools[place.Pool]; !there {
			s.Pools[place.Pool] = newGauges()
		}
		of := s.Pools[place.Pool]
		for _, g := range []*Gauges{&s.All, &of} {
			g.add(place, byNode[name], figures[name])
		}
		s.Pools[place.Pool] = of
		for _, d := range byNode[name] {
			s.attribute(d, c.Pods)
		}
	}
	return s
}

// resolve is the name that the cluster has for a node.
func (r *Reading) resolve(name string, c Inventory) string {
	if _, there := c.Nodes[name]; there {
		return name
	}
	return cmp.Or(r.Names[name], name)
}

// larger is a node that two exporters tell of.
func larger(a, b Node) Node {
	for _, pair := range []struct {
		into *Ratio
		of   Ratio
	}{{&a.CPU, b.CPU}, {&a.Memory, b.Memory}, {&a.NeuronMemory, b.NeuronMemory}} {
		if pair.of.Known() && (!pair.into.Known() || pair.of.Share() > pair.into.Share()) {
			*pair.into = pair.of
		}
	}
	return a
}

func newGauges() Gauges { return Gauges{Devices: map[Kind]Gauge{}} }

// add adds a node.
func (g *Gauges) add(place NodeInfo, devices []*Device, figures Node) {
	seen, have := map[Kind]map[string]bool{}, map[Kind]map[string]bool{}
	for kind := range place.Devices {
		seen[kind], have[kind] = map[string]bool{}, map[string]bool{}
	}
	for _, d := range devices {
		if seen[d.Kind] == nil {
			seen[d.Kind], have[d.Kind] = map[string]bool{}, map[string]bool{}
		}
		seen[d.Kind][d.physical()] = true
		if d.Busy.Known() {
			have[d.Kind][d.physical()] = true
		}
		of := g.Devices[d.Kind]
		of.add(d)
		g.Devices[d.Kind] = of
	}
	for kind := range seen {
		of := g.Devices[kind]
		of.Reporting += int64(len(have[kind]))
		if of.Total += max(place.Devices[kind], int64(len(seen[kind]))); of.Total > 0 {
			g.Devices[kind] = of
		}
	}
	g.CPU.Add(figures.CPU)
	g.Memory.Add(figures.Memory)
	g.NeuronMemory.Add(figures.NeuronMemory)
	g.CPUNodes += b2i(figures.CPU.Known())
	g.MemoryNodes += b2i(figures.Memory.Known())
	g.Nodes++
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// attribute counts a device for whom it belongs to.
func (s *Sums) attribute(d *Device, pods func(PodName) (PodOwner, bool)) {
	whole := 1.0
	if d.MIG != "" {
		whole = migShare(d.Profile)
	}
	holders := d.holders(pods)
	if len(holders) == 0 {
		u := s.Unattributed[d.Kind]
		u.Ratio.Add(d.Busy)
		u.Devices += whole
		s.Unattributed[d.Kind] = u
		return
	}
	part := 1 / float64(len(holders))
	for _, h := range holders {
		for _, of := range []struct {
			into map[UsageKey]Usage
			name string
		}{{s.Teams, h.Team}, {s.Tasks, h.Task}} {
			u := of.into[UsageKey{of.name, d.Kind}]
			u.Ratio.Add(Ratio{d.Busy.Used * part, d.Busy.Of * part})
			u.Devices += whole * part
			of.into[UsageKey{of.name, d.Kind}] = u
		}
	}
}

// holders are those of its pods that somebody knows.
func (d *Device) holders(pods func(PodName) (PodOwner, bool)) (found []PodOwner) {
	for _, pod := range d.Pods {
		if h, known := pods(pod); known {
			found = append(found, h)
		}
	}
	return found
}

// Idle is a task that holds accelerators and does nothing with them.
type IdleTask struct {
	PodOwner
	Peak float64 // the largest utilization of any of its devices, 0 to 1
}

// Idle are the tasks that were admitted longer ago than after, and of whose
// accelerators none reached a utilization of below in that time; those that hold
// most come first. A task with a device of which that is not known is none of them.
func (r *Reading) Idle(c Inventory, pool string, after time.Duration, below float64) []IdleTask {
	type sum struct {
		IdleTask
		devices int64
		busy    bool
	}
	tasks := map[string]*sum{}
	for i := range r.Devices {
		d := &r.Devices[i]
		place, there := c.Nodes[r.resolve(d.Node, c)]
		for _, h := range d.holders(c.Pods) {
			if h.Task == "" {
				continue
			}
			t := tasks[h.Task]
			if t == nil {
				t = &sum{IdleTask: IdleTask{PodOwner: h}}
				tasks[h.Task] = t
			}
			t.devices++
			t.Peak = max(t.Peak, d.Peak.Share())
			t.busy = t.busy || !d.Peak.Known() || d.Peak.Share() >= below || !there || pool != "" && place.Pool != pool
		}
	}
	var found []IdleTask
	for _, t := range tasks {
		if !t.busy && t.Accelerators > 0 && t.devices >= t.Accelerators && !t.AdmittedAt.IsZero() && r.At.Sub(t.AdmittedAt) >= after {
			found = append(found, t.IdleTask)
		}
	}
	slices.SortFunc(found, func(a, b IdleTask) int {
		return cmp.Or(cmp.Compare(b.Accelerators, a.Accelerators), a.AdmittedAt.Compare(b.AdmittedAt), strings.Compare(a.Task, b.Task))
	})
	return found
}
