package utilization

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Metrics that are read, as dcgm-exporter 3 and 4, neuron-monitor and
// node-exporter name them.
const (
	gpuBusy      = "DCGM_FI_DEV_GPU_UTIL"          // per cent; MIG devices have none
	engineActive = "DCGM_FI_PROF_GR_ENGINE_ACTIVE" // 0-1, of the device that it names
	memoryUsed   = "DCGM_FI_DEV_FB_USED"           // MiB
	memoryFree   = "DCGM_FI_DEV_FB_FREE"           // MiB
	memoryKept   = "DCGM_FI_DEV_FB_RESERVED"       // MiB, by the driver; not everywhere
	coreBusy     = "neuroncore_utilization_ratio"  // 0-1, of cores that some process uses
	neuronInfo   = "neuron_hardware_info"          // says in labels which devices there are
	neuronUsed   = "neuron_runtime_memory_used_bytes"
	cpuSeconds   = "node_cpu_seconds_total"
	nodeFree     = "node_memory_MemAvailable_bytes"
	nodeTotal    = "node_memory_MemTotal_bytes"
	unameInfo    = "node_uname_info" // whose name an address is
)

// Labels that questions make.
const (
	nodeName  = "kuota_node" // of nodeLabels, the last that a series has
	partLabel = "kuota_part" // which of several questions a series answers
)

// nodeLabels may have the name of a node, those that are believed first last. An
// instance is a node's address, mostly, and counts without its port.
var nodeLabels = []string{"instance", "nodename", "kubernetes_node", "Hostname", "node"}

// What tells one device from another, and what it belongs to.
const (
	deviceLabels = nodeName + ", UUID, gpu, GPU_I_ID, GPU_I_PROFILE"
	podLabels    = "exported_namespace, namespace, exported_pod, pod"
	neuronLabels = "neuroncore, memory_location, runtime_tag, neuron_device_count, neuroncore_per_device_count, neuron_device_memory_size"
)

// irateOver is how far apart two samples of a counter may be.
const irateOver = "5m"

// ask writes questions in PromQL.
type ask struct {
	match     string // such as `cluster="prod"`; empty for none
	nodeLabel string
}

// of are the series of a metric with the name of their node. What is negative,
// infinite or not a number is no data, and left out.
func (a ask) of(selector string) string { return a.node(a.selector(selector) + " >= 0 < Inf") }

// selector adds the matchers that all series must meet to name{…}.
func (a ask) selector(s string) string {
	name, own, _ := strings.Cut(strings.TrimSuffix(s, "}"), "{")
	var all []string
	for _, matchers := range []string{own, a.match} {
		if matchers != "" {
			all = append(all, matchers)
		}
	}
	return name + "{" + strings.Join(all, ", ") + "}"
}

// node gives series a label with the name of their node.
func (a ask) node(expression string) string {
	for _, label := range append(nodeLabels, a.nodeLabel) {
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

// part marks the answer to one of several questions.
func part(name, expression string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expression, partLabel, name)
}

// now asks for all that devices and nodes say of themselves at this time.
// Series of one device that several exporters tell become one: the largest.
func (a ask) now() string {
	names := strings.Join([]string{gpuBusy, engineActive, memoryUsed, memoryFree, memoryKept, coreBusy, neuronInfo, neuronUsed, nodeFree, nodeTotal}, "|")
	return fmt.Sprintf("max by (__name__, %s, %s, %s) (%s) or max by (__name__, instance, nodename) (%s)",
		deviceLabels, podLabels, neuronLabels, a.of(fmt.Sprintf("{__name__=~%q}", names)), a.selector(unameInfo))
}

// cpu asks for the vCPUs of each node, and how many of them are idle.
func (a ask) cpu() string {
	idle := a.node(fmt.Sprintf("irate(%s[%s])", a.selector(cpuSeconds+`{mode="idle"}`), irateOver))
	each := fmt.Sprintf("max by (%s, cpu) (%s)", nodeName, idle)
	return part("idle", fmt.Sprintf("sum by (%s) (clamp_max(%s, 1))", nodeName, each)) + " or " + part("cpus", fmt.Sprintf("count by (%s) (%s)", nodeName, each))
}

// peaks asks for the largest utilization over a time of the devices that had the
// same pod, or none, when that time began.
func (a ask) peaks(over time.Duration) string {
	var parts []string
	for _, name := range []string{gpuBusy, engineActive, coreBusy} {
		series, window := a.selector(name), model.Duration(over).String()
		all := a.node(fmt.Sprintf("(max_over_time(%s[%s]) and %s offset %s)", series, window, series, window))
		parts = append(parts, part(name, fmt.Sprintf("max by (%s, %s, neuroncore) (%s)", deviceLabels, podLabels, all)))
	}
	return strings.Join(parts, " or ")
}

// history asks for the sums by node that gauges are made of.
func (a ask) history() string {
	const device, physical = nodeName + ", UUID, gpu", "on (" + nodeName + ", gpu)"
	each := func(by, selector string) string { return fmt.Sprintf("max by (%s) (%s)", by, a.of(selector)) }
	sums := func(name, by, expression string) string {
		return part(name, fmt.Sprintf("sum by (%s) (%s)", by, expression)) + " or " + part(name+" count", fmt.Sprintf("count by (%s) (%s)", by, expression))
	}
	partition := nodeName + ", GPU_I_PROFILE"
	partitioned := each(deviceLabels, engineActive+`{GPU_I_ID!=""}`)
	whole := fmt.Sprintf("((%s / 100) or %s) unless %s (%s)", each(device, gpuBusy+`{GPU_I_ID=""}`), each(device, engineActive+`{GPU_I_ID=""}`), physical, partitioned)
	parts := []string{sums("gpu", nodeName, whole), sums("mig", partition, partitioned), sums("core", nodeName, each(nodeName+", neuroncore", coreBusy)),
		part("cores", fmt.Sprintf("max by (%s, neuron_device_count, neuroncore_per_device_count) (%s)", nodeName, a.of(neuronInfo))), a.cpu()}
	for _, name := range []string{memoryUsed, memoryFree, memoryKept} {
		cut := each(deviceLabels, name+`{GPU_I_ID!=""}`)
		parts = append(parts, part(name, fmt.Sprintf("sum by (%s) (%s or (%s unless %s (%s)))", nodeName, cut, each(device, name+`{GPU_I_ID=""}`), physical, cut)))
	}
	for _, name := range []string{nodeFree, nodeTotal} {
		parts = append(parts, part(name, each(nodeName, name)))
	}
	return strings.Join(parts, " or ")
}
