package utilization

import (
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
)

// neuronNode contains the devices of a node, as neuron-monitor reports them.
type neuronNode struct {
	devices, cores int // cores of one device
	memory         float64
}

// core is one NeuronCore.
type core struct {
	busy, peak float64 // negative without data
	pods       []PodName
}

// addCore adds a series of one core.
func (r *reader) addCore(s *model.Sample, value float64, peak bool) {
	i, err := strconv.Atoi(string(s.Metric["neuroncore"]))
	if err != nil || i < 0 || i >= maxDevices || value > 1 {
		return
	}
	node := string(s.Metric[nodeName])
	if r.cores[node] == nil {
		r.cores[node] = map[int]core{}
	}
	c, ok := r.cores[node][i]
	if !ok {
		c = core{busy: -1, peak: -1}
	}
	switch {
	case !matchPod(&c.pods, podOf(s), !peak):
		return
	case peak:
		c.peak = max(c.peak, value)
	default:
		c.busy = max(c.busy, value)
	}
	r.cores[node][i] = c
}

// defaultCores is the number of cores of an Inferentia2 or Trainium device. It is used
// if neuron-monitor does not report the number.
const defaultCores = 2

// toDevices returns the Neuron devices of a node. neuron-monitor reports only cores that
// a process uses; the other cores of known devices are idle.
func (n neuronNode) toDevices(node string, cores map[int]core) (devices []Device) {
	count := n.devices
	for i := range cores {
		count = max(count, i/n.cores+1)
	}
	for i := range count {
		d := Device{Kind: Neuron, Node: node, Index: strconv.Itoa(i)}
		for j := i * n.cores; j < (i+1)*n.cores; j++ {
			c, ok := cores[j]
			if !ok && n.devices == 0 {
				continue
			}
			share := 1 / float64(n.cores)
			if c.busy >= 0 {
				d.Busy.Add(Ratio{c.busy * share, share})
			}
			if ok && c.peak >= 0 {
				d.Peak.Used, d.Peak.Of = max(d.Peak.Used, c.peak), 1
			}
			for _, pod := range c.pods {
				if !slices.Contains(d.Pods, pod) {
					d.Pods = append(d.Pods, pod)
				}
			}
		}
		devices = append(devices, d)
	}
	return devices
}
