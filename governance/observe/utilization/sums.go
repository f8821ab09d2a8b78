package utilization

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Inventory maps nodes to pools and pods to their owners.
type Inventory struct {
	Nodes map[string]NodeInfo // by name
	// Pods returns the owner of a pod; false for an unknown pod.
	Pods func(PodName) (PodOwner, bool)
}

// NodeInfo is the pool of a node, and the devices that its type has.
type NodeInfo struct {
	Pool    string
	Devices map[Kind]int64 // whole devices
}

// PodOwner is the team and the task of a pod.
type PodOwner struct {
	Team string // key of the caller
	Task string // key of the caller; empty for none
	// Accelerators is the usage of the whole task; each MIG device counts as one.
	Accelerators int64
	AdmittedAt   time.Time // of the task
}

// Gauge is the utilization of devices, and how many of them report data.
type Gauge struct {
	Ratio                  // in devices
	Memory           Ratio // bytes
	Reporting, Total int64 // whole devices: with data on utilization, and all
}

func (g *Gauge) add(d *Device) {
	g.Ratio.Add(d.Busy)
	g.Memory.Add(d.Memory)
}

// Missing returns the number of devices without data.
func (g Gauge) Missing() int64 { return max(0, g.Total-g.Reporting) }

// Gauges contains the gauges of a set of nodes.
type Gauges struct {
	Devices      map[Kind]Gauge
	CPU          Ratio // vCPUs
	Memory       Ratio // bytes
	NeuronMemory Ratio // bytes
	CPUNodes     int   // with data on vCPUs
	MemoryNodes  int   // with data on memory
	Nodes        int   // all
}

// Usage is the utilization of the devices of a team or a task.
type Usage struct {
	Ratio           // in devices; a device that several pods share counts in equal parts
	Devices float64 // with and without data
}

// UsageKey identifies a Usage.
type UsageKey struct {
	Name string // a team or a task
	Kind Kind
}

// Sums contains the sums of a Reading.
type Sums struct {
	All          Gauges
	Pools        map[string]Gauges
	Teams, Tasks map[UsageKey]Usage
	// Unattributed is of devices without a pod, or with an unknown one.
	Unattributed map[Kind]Usage
	// UnknownNodeDevices is the number of devices on nodes that are not in the Inventory.
	// They count in no other field.
	UnknownNodeDevices int
}

// Sum returns the sums over the nodes of a pool; of all pools if pool is empty.
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

// resolve returns the name of a node in the Inventory.
func (r *Reading) resolve(name string, c Inventory) string {
	if _, there := c.Nodes[name]; there {
		return name
	}
	return cmp.Or(r.Names[name], name)
}

// larger merges the metrics of one node from two exporters: the larger ones count.
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
	if figures.CPU.Known() {
		g.CPUNodes++
	}
	if figures.Memory.Known() {
		g.MemoryNodes++
	}
	g.Nodes++
}

// attribute counts a device for the owners of its pods.
func (s *Sums) attribute(d *Device, pods func(PodName) (PodOwner, bool)) {
	whole := 1.0
	if d.MIG != "" {
		whole = migShare(d.Profile)
	}
	owners := d.owners(pods)
	if len(owners) == 0 {
		u := s.Unattributed[d.Kind]
		u.Ratio.Add(d.Busy)
		u.Devices += whole
		s.Unattributed[d.Kind] = u
		return
	}
	part := 1 / float64(len(owners))
	for _, h := range owners {
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

// owners returns the owners of its known pods.
func (d *Device) owners(pods func(PodName) (PodOwner, bool)) (found []PodOwner) {
	for _, pod := range d.Pods {
		if h, known := pods(pod); known {
			found = append(found, h)
		}
	}
	return found
}

// IdleTask is a task whose accelerators are idle.
type IdleTask struct {
	PodOwner
	Peak float64 // the largest utilization of any of its devices, 0 to 1
	// Devices counts its devices by pool and Kubernetes resource.
	Devices map[PoolResource]int64
}

// PoolResource is a resource of the nodes of a pool.
type PoolResource struct{ Pool, Resource string }

// Idle returns the tasks that were admitted longer ago than after and whose
// accelerators all stayed below a utilization of below in that time, those with most
// accelerators first. It leaves out tasks with a device without data.
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
		for _, h := range d.owners(c.Pods) {
			if h.Task == "" {
				continue
			}
			t := tasks[h.Task]
			if t == nil {
				t = &sum{IdleTask: IdleTask{PodOwner: h, Devices: map[PoolResource]int64{}}}
				tasks[h.Task] = t
			}
			t.devices++
			t.Devices[PoolResource{place.Pool, d.resource()}]++
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
