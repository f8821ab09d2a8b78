package utilization

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// nodeSums are sums over the nodes of a pool, by the parts of the query.
type nodeSums map[string][]float64

// sum sums up the series of the nodes of a pool.
func (h historyResult) sum(inventory Inventory, pool string, names *Reading) nodeSums {
	sums := nodeSums{}
	for _, series := range h.matrix {
		label := func(name model.LabelName) string { return string(series.Metric[name]) }
		node, ok := inventory.Nodes[names.resolve(label(nodeName), inventory)]
		if !ok || pool != "" && node.Pool != pool {
			continue
		}
		name, weight := label(partLabel), 1.0
		if what, ok := strings.CutPrefix(name, "mig"); ok {
			name, weight = "gpu"+what, migShare(label("GPU_I_PROFILE"))
		}
		if name == "cores" {
			devices, _ := strconv.ParseFloat(label("neuron_device_count"), 64)
			cores, _ := strconv.ParseFloat(label("neuroncore_per_device_count"), 64)
			weight = min(devices, maxDevices) * min(cores, maxDevices)
		}
		if sums[name] == nil {
			sums[name] = slices.Repeat([]float64{math.NaN()}, h.points)
		}
		for _, sample := range series.Values {
			i, v := int(sample.Timestamp.Time().Sub(h.start)/h.step), float64(sample.Value)*weight
			if i < 0 || i >= h.points || !(v >= 0) || math.IsInf(v, 0) {
				continue
			}
			if math.IsNaN(sums[name][i]) {
				sums[name][i] = 0
			}
			sums[name][i] += v
		}
	}
	return sums
}

// at returns the i-th value of a sum; NaN without data.
func (s nodeSums) at(name string, i int) float64 {
	if s[name] == nil {
		return math.NaN()
	}
	return s[name][i]
}

// gauge returns a gauge over time.
func gauge(points int, value func(i int) float64) Series {
	series := make(Series, points)
	for i := range series {
		if series[i] = value(i); !math.IsNaN(series[i]) {
			series[i] = min(max(series[i], 0), 1)
		}
	}
	return series
}

func (h historyResult) times() []time.Time {
	times := make([]time.Time, h.points)
	for i := range times {
		times[i] = h.start.Add(time.Duration(i) * h.step)
	}
	return times
}

// history computes the gauges. GPUs and Neuron devices have one if there are any now
// (has) or were in the range.
func (h historyResult) history(s nodeSums, has map[Kind]bool) History {
	out := History{Times: h.times()}
	if has[GPU] || s["gpu"] != nil {
		out.GPU = gauge(h.points, func(i int) float64 { return s.at("gpu", i) / s.at("gpu count", i) })
		out.GPUMemory = gauge(h.points, func(i int) float64 {
			reserved := s.at(memoryKept, i)
			if math.IsNaN(reserved) {
				reserved = 0
			}
			used := s.at(memoryUsed, i)
			return used / (used + s.at(memoryFree, i) + reserved)
		})
	}
	if has[Neuron] || s["core"] != nil {
		out.Neuron = gauge(h.points, func(i int) float64 {
			cores, busy := s.at("cores", i), s.at("core", i)
			switch {
			case math.IsNaN(cores): // only the cores that a process uses are known
				cores = s.at("core count", i)
			case math.IsNaN(busy): // no process uses a core
				busy = 0
			}
			return busy / cores
		})
	}
	out.CPU = gauge(h.points, func(i int) float64 { return 1 - s.at("idle", i)/s.at("cpus", i) })
	out.Memory = gauge(h.points, func(i int) float64 { return 1 - s.at(nodeFree, i)/s.at(nodeTotal, i) })
	return out
}

// kinds returns the kinds of device that the nodes of a pool have by their type.
func (i Inventory) kinds(pool string) map[Kind]bool {
	has := map[Kind]bool{}
	for _, node := range i.Nodes {
		for kind, n := range node.Devices {
			has[kind] = has[kind] || n > 0 && (pool == "" || node.Pool == pool)
		}
	}
	return has
}
