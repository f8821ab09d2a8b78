package utilization

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"

	"github.com/prometheus/common/model"
)

// Ratio is a used amount of a total, in one unit. The zero value means no data, which
// differs from nothing used.
type Ratio struct{ Used, Of float64 }

// Known reports whether there is data.
func (r Ratio) Known() bool { return r.Of > 0 }

// Share returns Used/Of, 0 to 1; 0 without data.
func (r Ratio) Share() float64 {
	if !r.Known() {
		return 0
	}
	return min(max(r.Used/r.Of, 0), 1)
}

// Add adds o if it has data.
func (r *Ratio) Add(o Ratio) {
	if o.Known() {
		r.Used += o.Used
		r.Of += o.Of
	}
}

// PodName names a pod.
type PodName struct{ Namespace, Name string }

// Device is one GPU, one MIG device of it, or one Neuron device.
type Device struct {
	Kind    Kind
	Node    string // as in Prometheus
	Index   string // on the node, such as 0; MIG devices of one GPU share it
	UUID    string // of the GPU; empty if unknown
	MIG     string // instance id; empty for a whole device
	Profile string // of a MIG device, such as 3g.40gb
	Pods    []PodName

	Busy   Ratio // utilization, in devices; a MIG device counts as its share of 7 slices
	Peak   Ratio // largest utilization over Options.IdleAfter; no data unless the pod was the same all the time
	Memory Ratio // bytes; for Neuron devices known per node only
}

// physical identifies the physical device: it is equal for all MIG devices of a GPU.
func (d *Device) physical() string {
	return string(d.Kind) + "\n" + d.Node + "\n" + cmp.Or(d.Index, d.UUID)
}

// Node contains the metrics of one node.
type Node struct {
	Name         string // as in Prometheus
	CPU          Ratio  // vCPUs
	Memory       Ratio  // bytes
	NeuronMemory Ratio  // bytes, of all its Neuron devices
}

// Reading contains the metrics of one poll. It is immutable.
type Reading struct {
	At      time.Time
	Devices []Device // by node and index
	Nodes   []Node   // by name
	// Names maps node addresses, which series can have instead, to node names.
	Names     map[string]string
	Trainings []Training // by pod
	// Simulated reports that no hardware was measured, as in the local cluster.
	Simulated bool
}

// reader converts series to a Reading. Of two series of one metric the larger counts.
type reader struct {
	devices map[string]*Device
	parts   map[*Device]map[string]float64 // metrics by name, in Prometheus' units
	nodes   map[string]*Node
	neuron  map[string]neuronNode
	cores   map[string]map[int]core // by node
	names   map[string]string
	used    map[string]float64 // of Neuron memory, by node

	simulated bool
}

func read(now, cpu, peaks model.Vector) *Reading {
	r := &reader{
		devices: map[string]*Device{}, parts: map[*Device]map[string]float64{}, nodes: map[string]*Node{}, neuron: map[string]neuronNode{},
		cores: map[string]map[int]core{}, names: map[string]string{}, used: map[string]float64{},
	}
	for _, s := range now {
		r.add(s, string(s.Metric[model.MetricNameLabel]), "")
	}
	idle := map[*Node]float64{}
	for _, s := range cpu {
		value, ok := valueOf(s)
		if node := r.node(s); ok && node != nil {
			switch s.Metric[partLabel] {
			case "idle":
				idle[node] = value
			case "cpus":
				node.CPU.Of = value
			}
		}
	}
	for _, n := range r.nodes {
		if free, ok := idle[n]; ok {
			n.CPU.Used = max(0, n.CPU.Of-free)
		} else {
			n.CPU = Ratio{}
		}
	}
	for _, s := range peaks {
		r.add(s, string(s.Metric[partLabel]), "peak")
	}
	return r.reading()
}

// valueOf returns the value of a series; false for no data.
func valueOf(s *model.Sample) (float64, bool) {
	v := float64(s.Value)
	return v, s.Histogram == nil && v >= 0 && !math.IsInf(v, 0) // NaN >= 0 is false
}

func (r *reader) node(s *model.Sample) *Node {
	name := string(s.Metric[nodeName])
	if name == "" {
		return nil
	}
	n := r.nodes[name]
	if n == nil {
		n = &Node{Name: name}
		r.nodes[name] = n
	}
	return n
}

// add adds one series. suffix distinguishes peaks from current values.
func (r *reader) add(s *model.Sample, metric, suffix string) {
	value, ok := valueOf(s)
	label := func(name model.LabelName) string { return string(s.Metric[name]) }
	if metric == simulated {
		r.simulated = true
		return
	}
	if metric == unameInfo {
		host, _, _ := strings.Cut(label("instance"), ":")
		r.names[host] = label("nodename")
		return
	}
	if label(nodeName) == "" || !ok {
		return
	}
	switch metric {
	case gpuBusy, engineActive, memoryUsed, memoryFree, memoryKept:
		d := r.device(s, suffix == "")
		if d == nil || !matchPod(&d.Pods, podOf(s), suffix == "") {
			return
		}
		parts := r.parts[d]
		if was, ok := parts[metric+suffix]; !ok || value > was {
			parts[metric+suffix] = value
		}
	case coreBusy:
		r.addCore(s, value, suffix != "")
	case neuronInfo:
		n := neuronNode{}
		n.devices, _ = strconv.Atoi(label("neuron_device_count"))
		n.cores, _ = strconv.Atoi(label("neuroncore_per_device_count"))
		n.memory, _ = strconv.ParseFloat(label("neuron_device_memory_size"), 64)
		if n.devices > 0 && n.devices <= maxDevices && n.cores > 0 && n.cores <= maxDevices {
			r.neuron[label(nodeName)] = n
		}
	case neuronUsed:
		if label("memory_location") == "neuron_device" {
			r.used[label(nodeName)] += value
		}
	case nodeFree:
		n := r.node(s) // free memory, until reading() knows the total
		n.Memory.Used = max(n.Memory.Used, value)
	case nodeTotal:
		n := r.node(s)
		n.Memory.Of = max(n.Memory.Of, value)
	}
}

// maxDevices bounds numbers of devices and cores per node.
const maxDevices = 1024

// device returns the device of a series; nil for an unknown one unless create is set.
func (r *reader) device(s *model.Sample, create bool) *Device {
	d := Device{
		Kind: GPU, Node: string(s.Metric[nodeName]), Index: string(s.Metric["gpu"]), UUID: string(s.Metric["UUID"]),
		MIG: string(s.Metric["GPU_I_ID"]), Profile: string(s.Metric["GPU_I_PROFILE"]),
	}
	key := cmp.Or(d.UUID, d.Node+"\n"+d.Index) + "\n" + d.MIG
	if r.devices[key] == nil && create {
		r.devices[key] = &d
		r.parts[&d] = map[string]float64{}
	}
	return r.devices[key]
}

// matchPod reports whether a series with a pod counts for a device with these pods. A
// current series adds its pod to them; a peak must belong to one of them.
func matchPod(pods *[]PodName, pod PodName, now bool) bool {
	switch {
	case slices.Contains(*pods, pod), pod.Name == "" && (now || len(*pods) == 0):
		return true
	case now:
		*pods = append(*pods, pod)
	}
	return now
}

// podOf returns the pod of a series. If Prometheus kept the labels of the exporter's
// own pod, the labels of the series have the prefix exported_.
func podOf(s *model.Sample) PodName {
	if name := s.Metric["exported_pod"]; name != "" {
		return PodName{cmp.Or(string(s.Metric["exported_namespace"]), string(s.Metric["namespace"])), string(name)}
	}
	return PodName{string(s.Metric["namespace"]), string(s.Metric["pod"])}
}

// reading returns the Reading of all series that were added.
func (r *reader) reading() *Reading {
	partitioned := map[string]bool{} // GPUs with MIG devices
	for _, d := range r.devices {
		if d.MIG != "" {
			partitioned[d.physical()] = true
		}
	}
	out := &Reading{Names: r.names, Simulated: r.simulated}
	for _, d := range r.devices {
		if d.MIG != "" || !partitioned[d.physical()] {
			d.setFigures(r.parts[d])
			out.Devices = append(out.Devices, *d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.cores)) {
		if _, ok := r.neuron[name]; !ok {
			r.neuron[name] = neuronNode{cores: defaultCores}
		}
	}
	for name, n := range r.neuron {
		out.Devices = append(out.Devices, n.toDevices(name, r.cores[name])...)
		if total := n.memory * float64(n.devices); total > 0 {
			r.node(&model.Sample{Metric: model.Metric{nodeName: model.LabelValue(name)}}).NeuronMemory = Ratio{min(r.used[name], total), total}
		}
	}
	for _, n := range r.nodes {
		if n.Memory.Of < n.Memory.Used || n.Memory.Used == 0 { // one of the two is missing
			n.Memory = Ratio{}
		}
		n.Memory.Used = n.Memory.Of - n.Memory.Used
		out.Nodes = append(out.Nodes, *n)
	}
	slices.SortFunc(out.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Devices, func(a, b Device) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(string(a.Kind), string(b.Kind)), cmp.Compare(len(a.Index), len(b.Index)), strings.Compare(a.Index, b.Index), strings.Compare(a.UUID, b.UUID), strings.Compare(a.MIG, b.MIG))
	})
	for i := range out.Devices {
		sortPods(out.Devices[i].Pods)
	}
	return out
}

func sortPods(pods []PodName) {
	slices.SortFunc(pods, func(a, b PodName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// setFigures computes the figures of a GPU from its metrics.
func (d *Device) setFigures(parts map[string]float64) {
	of := 1.0
	if d.MIG != "" {
		of = migShare(d.Profile)
	}
	utilization := func(suffix string) Ratio {
		// The utilization on a MIG device is that of its GPU.
		if v, ok := parts[gpuBusy+suffix]; ok && v <= 100 && d.MIG == "" {
			return Ratio{v / 100 * of, of}
		}
		if v, ok := parts[engineActive+suffix]; ok && v <= 1 {
			return Ratio{v * of, of}
		}
		return Ratio{}
	}
	d.Busy, d.Peak = utilization(""), utilization("peak")
	used, hasUsed := parts[memoryUsed]
	if free, hasFree := parts[memoryFree]; hasUsed && hasFree {
		d.Memory = Ratio{used * float64(catalog.MiB), (used + free + parts[memoryKept]) * float64(catalog.MiB)}
	}
}
