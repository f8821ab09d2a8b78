package utilization

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Metrics of dcgm-exporter 3 and 4, neuron-monitor and node-exporter.
const (
	gpuBusy      = "DCGM_FI_DEV_GPU_UTIL"          // percent; MIG devices have none
	engineActive = "DCGM_FI_PROF_GR_ENGINE_ACTIVE" // 0-1, of a GPU or MIG device
	memoryUsed   = "DCGM_FI_DEV_FB_USED"           // MiB
	memoryFree   = "DCGM_FI_DEV_FB_FREE"           // MiB
	memoryKept   = "DCGM_FI_DEV_FB_RESERVED"       // MiB, by the driver; optional
	coreBusy     = "neuroncore_utilization_ratio"  // 0-1, of cores that a process uses
	neuronInfo   = "neuron_hardware_info"          // its labels describe the devices
	neuronUsed   = "neuron_runtime_memory_used_bytes"
	cpuSeconds   = "node_cpu_seconds_total"
	nodeFree     = "node_memory_MemAvailable_bytes"
	nodeTotal    = "node_memory_MemTotal_bytes"
	unameInfo    = "node_uname_info" // maps an address to a node name
	simulated    = "kuota_simulated" // exists if exporters simulate what they report
)

// Labels that queries add.
const (
	nodeName  = "kuota_node" // the last of nodeLabels that a series has
	partLabel = "kuota_part" // which part of a query a series belongs to
)

// nodeLabels can contain the name of a node; the last has the highest precedence. An
// instance is usually the address of a node; its port is removed.
var nodeLabels = []string{"instance", "nodename", "kubernetes_node", "Hostname", "node"}

// Labels that identify a device, and the pod that uses it.
const (
	deviceLabels = nodeName + ", UUID, gpu, GPU_I_ID, GPU_I_PROFILE"
	podLabels    = "exported_namespace, namespace, exported_pod, pod"
	neuronLabels = "neuroncore, memory_location, runtime_tag, neuron_device_count, neuroncore_per_device_count, neuron_device_memory_size"
)

// irateOver bounds the distance of two samples of a counter.
const irateOver = "5m"

// queries builds PromQL queries.
type queries struct {
	match     string // such as `cluster="prod"`; empty for none
	nodeLabel string
}

// of returns the series of a metric with the name of their node. It drops negative
// and infinite values and NaN, which are no data.
func (q queries) of(selector string) string { return q.node(q.selector(selector) + " >= 0 < Inf") }

// selector adds q.match to name{…}.
func (q queries) selector(s string) string {
	name, own, _ := strings.Cut(strings.TrimSuffix(s, "}"), "{")
	var all []string
	for _, matchers := range []string{own, q.match} {
		if matchers != "" {
			all = append(all, matchers)
		}
	}
	return name + "{" + strings.Join(all, ", ") + "}"
}

// node adds a label with the name of the node.
func (q queries) node(expression string) string {
	for _, label := range append(nodeLabels, q.nodeLabel) {
		switch label {
		case "":
		case "instance":
			expression = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+?)(:[0-9]+)?")`, expression, nodeName, label)
		default:
			expression = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expression, nodeName, label)
		}
	}
	return expression
}

// part labels the series of one part of a query.
func part(name, expression string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expression, partLabel, name)
}

// now queries the current metrics of devices and nodes. Series of one device from
// several exporters become one: the largest.
func (q queries) now() string {
	names := strings.Join([]string{gpuBusy, engineActive, memoryUsed, memoryFree, memoryKept, coreBusy, neuronInfo, neuronUsed, nodeFree, nodeTotal, simulated}, "|")
	return fmt.Sprintf("max by (__name__, %s, %s, %s) (%s) or max by (__name__, instance, nodename) (%s)",
		deviceLabels, podLabels, neuronLabels, q.of(fmt.Sprintf("{__name__=~%q}", names)), q.selector(unameInfo))
}

// cpu queries the vCPUs of each node, and how many of them are idle.
func (q queries) cpu() string {
	idle := q.node(fmt.Sprintf("irate(%s[%s])", q.selector(cpuSeconds+`{mode="idle"}`), irateOver))
	each := fmt.Sprintf("max by (%s, cpu) (%s)", nodeName, idle)
	return part("idle", fmt.Sprintf("sum by (%s) (clamp_max(%s, 1))", nodeName, each)) + " or " + part("cpus", fmt.Sprintf("count by (%s) (%s)", nodeName, each))
}

// peaks queries the largest utilization over a time, of devices that had the same
// pod, or none, when that time began.
func (q queries) peaks(over time.Duration) string {
	var parts []string
	for _, name := range []string{gpuBusy, engineActive, coreBusy} {
		series, window := q.selector(name), model.Duration(over).String()
		all := q.node(fmt.Sprintf("(max_over_time(%s[%s]) and %s offset %s)", series, window, series, window))
		parts = append(parts, part(name, fmt.Sprintf("max by (%s, %s, neuroncore) (%s)", deviceLabels, podLabels, all)))
	}
	return strings.Join(parts, " or ")
}

// history queries the sums per node that gauges are computed from.
func (q queries) history() string {
	const device, physical = nodeName + ", UUID, gpu", "on (" + nodeName + ", gpu)"
	each := func(by, selector string) string { return fmt.Sprintf("max by (%s) (%s)", by, q.of(selector)) }
	sums := func(name, by, expression string) string {
		return part(name, fmt.Sprintf("sum by (%s) (%s)", by, expression)) + " or " + part(name+" count", fmt.Sprintf("count by (%s) (%s)", by, expression))
	}
	partition := nodeName + ", GPU_I_PROFILE"
	partitioned := each(deviceLabels, engineActive+`{GPU_I_ID!=""}`)
	whole := fmt.Sprintf("((%s / 100) or %s) unless %s (%s)", each(device, gpuBusy+`{GPU_I_ID=""}`), each(device, engineActive+`{GPU_I_ID=""}`), physical, partitioned)
	parts := []string{sums("gpu", nodeName, whole), sums("mig", partition, partitioned), sums("core", nodeName, each(nodeName+", neuroncore", coreBusy)),
		part("cores", fmt.Sprintf("max by (%s, neuron_device_count, neuroncore_per_device_count) (%s)", nodeName, q.of(neuronInfo))), q.cpu()}
	for _, name := range []string{memoryUsed, memoryFree, memoryKept} {
		cut := each(deviceLabels, name+`{GPU_I_ID!=""}`)
		parts = append(parts, part(name, fmt.Sprintf("sum by (%s) (%s or (%s unless %s (%s)))", nodeName, cut, each(device, name+`{GPU_I_ID=""}`), physical, cut)))
	}
	for _, name := range []string{nodeFree, nodeTotal} {
		parts = append(parts, part(name, each(nodeName, name)))
	}
	return strings.Join(parts, " or ")
}
