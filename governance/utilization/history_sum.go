package utilization

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// lines are the sums of the nodes of a pool, by the parts of the question.
type lines map[string][]float64

// sum adds up what the nodes of a pool told.
func (k kept) sum(c Inventory, pool string, names *Reading) lines {
	sums := lines{}
	for _, series := range k.matrix {
		label := func(name model.LabelName) string { return string(series.Metric[name]) }
		place, there := c.Nodes[names.resolve(label(nodeName), c)]
		if !there || pool != "" && place.Pool != pool {
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
			sums[name] = slices.Repeat([]float64{math.NaN()}, k.points)
		}
		for _, sample := range series.Values {
			i, v := int(sample.Timestamp.Time().Sub(k.start)/k.step), float64(sample.Value)*weight
			if i < 0 || i >= k.points || !(v >= 0) || math.IsInf(v, 0) {
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

// at is a sum at one time; NaN for no data.
func (l lines) at(name string, i int) float64 {
	if l[name] == nil {
		return math.NaN()
	}
	return l[name][i]
}

// line is a gauge over time.
func (l lines) line(points int, value func(i int) float64) Series {
	line := make(Series, points)
	for i := range line {
		if line[i] = value(i); !math.IsNaN(line[i]) {
			line[i] = min(max(line[i], 0), 1)
		}
	}
	return line
}

// history makes gauges of the sums. There is a line for GPUs and one for Neuron
// devices where there are any, now or then.
func (k kept) history(l lines, has map[Kind]bool) History {
	h := History{Times: make([]time.Time, k.points)}
	for i := range h.Times {
		h.Times[i] = k.start.Add(time.Duration(i) * k.step)
	}
	if has[GPU] || l["gpu"] != nil {
		h.GPU = l.line(k.points, func(i int) float64 { return l.at("gpu", i) / l.at("gpu count", i) })
		h.GPUMemory = l.line(k.points, func(i int) float64 {
			reserved := l.at(memoryKept, i)
			if math.IsNaN(reserved) {
				reserved = 0
			}
			used := l.at(memoryUsed, i)
			return used / (used + l.at(memoryFree, i) + reserved)
		})
	}
	if has[Neuron] || l["core"] != nil {
		h.Neuron = l.line(k.points, func(i int) float64 {
			cores, busy := l.at("cores", i), l.at("core", i)
			switch {
			case math.IsNaN(cores): // only those that some process uses are known
				cores = l.at("core count", i)
			case math.IsNaN(busy): // no process uses any
				busy = 0
			}
			return busy / cores
		})
	}
	h.CPU = l.line(k.points, func(i int) float64 { return 1 - l.at("idle", i)/l.at("cpus", i) })
	h.Memory = l.line(k.points, func(i int) float64 { return 1 - l.at(nodeFree, i)/l.at(nodeTotal, i) })
	return h
}

// kinds are the kinds of device that a pool has nominally.
func (c Inventory) kinds(pool string) map[Kind]bool {
	has := map[Kind]bool{}
	for _, place := range c.Nodes {
		for kind, n := range place.Devices {
			has[kind] = has[kind] || n > 0 && (pool == "" || place.Pool == pool)
		}
	}
	return has
}
