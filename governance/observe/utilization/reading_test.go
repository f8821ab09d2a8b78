package utilization

import (
	"fmt"
	"math"
	"testing"
	"time"

	"kuota.dev/kuota/governance/quota/catalog"
)

// Metrics of dcgm-exporter on two nodes: four GPUs, of which one has no value and one an
// invalid value, and one GPU with three MIG devices.
const dcgm = `
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="gpu-1",modelName="H100",namespace="vision",pod="train-0",container="main"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",Hostname="gpu-1",modelName="H100",namespace="vision",pod="train-0",container="main"} 20
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-c",Hostname="gpu-1",modelName="H100"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-d",Hostname="gpu-1",modelName="H100"} NaN
DCGM_FI_DEV_GPU_UTIL{gpu="4",UUID="GPU-e",Hostname="gpu-1",modelName="H100"} +Inf
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",namespace="speech",pod="infer-0"} 99
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",Hostname="gpu-1",namespace="vision",pod="train-0"} 0.11
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-m",Hostname="gpu-2"} 0.9
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",namespace="speech",pod="infer-0"} 0.5
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="2",GPU_I_PROFILE="2g.20gb",namespace="nobody",pod="knows"} 1
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="3",GPU_I_PROFILE="1g.10gb",namespace="speech",pod="infer-1"} 0
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",Hostname="gpu-1",namespace="vision",pod="train-0"} 30000
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",Hostname="gpu-1",namespace="vision",pod="train-0"} 10000
DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-c",Hostname="gpu-1"} 0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",namespace="speech",pod="infer-0"} 20000
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",Hostname="gpu-1",namespace="vision",pod="train-0"} 49000
DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b",Hostname="gpu-1",namespace="vision",pod="train-0"} 70000
DCGM_FI_DEV_FB_FREE{gpu="2",UUID="GPU-c",Hostname="gpu-1"} 80000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-m",Hostname="gpu-2",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",namespace="speech",pod="infer-0"} 20000
# TYPE DCGM_FI_DEV_FB_RESERVED gauge
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",Hostname="gpu-1",namespace="vision",pod="train-0"} 1000
`

// A second exporter, as during a rollout, reports a lower value for one GPU.
const follower = `
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="gpu-1",namespace="vision",pod="train-0"} 70
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-x",Hostname="of-another-cluster"} 100
`

const neuron = `
# TYPE neuroncore_utilization_ratio gauge
neuroncore_utilization_ratio{neuroncore="0",runtime_tag="7",instance_type="trn1.2xlarge",exported_namespace="language",exported_pod="lm-0"} 0.6
neuroncore_utilization_ratio{neuroncore="1",runtime_tag="7",instance_type="trn1.2xlarge",exported_namespace="language",exported_pod="lm-0"} 0.2
# TYPE neuron_hardware_info gauge
neuron_hardware_info{neuron_device_count="2",neuroncore_per_device_count="2",neuron_device_memory_size="1000"} 1
# TYPE neuron_runtime_memory_used_bytes gauge
neuron_runtime_memory_used_bytes{memory_location="host",runtime_tag="7"} 999
neuron_runtime_memory_used_bytes{memory_location="neuron_device",runtime_tag="7"} 300
neuron_runtime_memory_used_bytes{memory_location="neuron_device",runtime_tag="8"} 200
`

const nodeExporter = `
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} @0.9
node_cpu_seconds_total{cpu="1",mode="idle"} @0.3
node_cpu_seconds_total{cpu="0",mode="user"} @0.1
node_cpu_seconds_total{cpu="1",mode="user"} @0.7
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 25e9
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 100e9
# TYPE node_uname_info gauge
node_uname_info{nodename="gpu-1"} 1
kuota_simulated 1
`

const scrapeAll = `
- {job_name: dcgm, metrics_path: /dcgm, static_configs: [{targets: ["EXPORTER"], labels: {namespace: gpu-operator, pod: dcgm-exporter-1}}]}
- {job_name: follower, metrics_path: /follower, honor_labels: true, static_configs: [{targets: ["EXPORTER"]}]}
- {job_name: neuron, metrics_path: /neuron, static_configs: [{targets: ["EXPORTER"], labels: {node: trn-1}}]}
- {job_name: node, metrics_path: /node, static_configs: [{targets: ["EXPORTER"], labels: {instance: "10.0.0.1:9100"}}]}
`

var exporters = map[string]string{"dcgm": dcgm, "follower": follower, "neuron": neuron, "node": nodeExporter}

// sample is the cluster that the exporters are of. quiet has no exporter.
func sample(since time.Time) Inventory {
	pods := map[PodName]PodOwner{
		{"vision", "train-0"}:   {Team: "vision", Task: "train", Accelerators: 2, AdmittedAt: since},
		{"speech", "infer-0"}:   {Team: "speech", Task: "infer", Accelerators: 2, AdmittedAt: since},
		{"speech", "infer-1"}:   {Team: "speech", Task: "infer", Accelerators: 2, AdmittedAt: since},
		{"language", "lm-0"}:    {Team: "language", Task: "lm", Accelerators: 1, AdmittedAt: since},
		{"vision", "elsewhere"}: {Team: "vision", Task: "other", Accelerators: 1, AdmittedAt: since},
	}
	return Inventory{
		Nodes: map[string]NodeInfo{
			"gpu-1": {Pool: "h100", Devices: map[Kind]int64{GPU: 8}}, "gpu-2": {Pool: "a100", Devices: map[Kind]int64{GPU: 1}},
			"trn-1": {Pool: "trn", Devices: map[Kind]int64{Neuron: 2}}, "quiet": {Pool: "h100", Devices: map[Kind]int64{GPU: 8}},
		},
		Pods: func(name PodName) (PodOwner, bool) { h, known := pods[name]; return h, known },
	}
}
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*max(1, math.Abs(b)) }

func wantRatio(t *testing.T, name string, got Ratio, used, of float64) {
	t.Helper()
	if !near(got.Used, used) || !near(got.Of, of) {
		t.Errorf("%s: %v of %v, want %v of %v", name, got.Used, got.Of, used, of)
	}
}

// With a real Prometheus, each value of a Reading is one of an exporter, and the sums
// add them up.
func TestReading(t *testing.T) {
	l := newLab(t, exporters, scrapeAll)
	s, err := New(Options{URL: l.url, IdleAfter: 2 * time.Second})
	must(t, err)
	r := until(t, s, func(r *Reading) error {
		if len(r.Devices) != 9 || len(r.Nodes) != 2 || r.Devices[0].Peak.Of == 0 && r.Devices[1].Peak.Of == 0 {
			return fmt.Errorf("%d devices, %d nodes: %+v", len(r.Devices), len(r.Nodes), r)
		}
		for _, n := range r.Nodes {
			if n.Name == "10.0.0.1" && (!n.CPU.Known() || !n.Memory.Known()) {
				return fmt.Errorf("node: %+v", n)
			}
		}
		return nil
	})
	if !r.Simulated {
		t.Error("the mark of simulated exporters is not read")
	}
	byKey := map[string]Device{}
	for _, d := range r.Devices {
		byKey[d.Node+"/"+d.Index+"/"+d.MIG] = d
	}
	const MiB = float64(catalog.MiB)
	for key, want := range map[string]struct {
		busy, memory Ratio
		pod          PodName
	}{
		"gpu-1/0/":              {Ratio{0.8, 1}, Ratio{30000 * MiB, 80000 * MiB}, PodName{"vision", "train-0"}}, // the larger of two exporters
		"gpu-1/1/":              {Ratio{0.2, 1}, Ratio{10000 * MiB, 80000 * MiB}, PodName{"vision", "train-0"}},
		"gpu-1/2/":              {Ratio{0, 1}, Ratio{0, 80000 * MiB}, PodName{"gpu-operator", "dcgm-exporter-1"}}, // Prometheus' own label
		"gpu-2/0/1":             {Ratio{0.5 * 3 / 7, 3.0 / 7}, Ratio{20000 * MiB, 40000 * MiB}, PodName{"speech", "infer-0"}},
		"gpu-2/0/2":             {Ratio{2.0 / 7, 2.0 / 7}, Ratio{}, PodName{"nobody", "knows"}},
		"gpu-2/0/3":             {Ratio{0, 1.0 / 7}, Ratio{}, PodName{"speech", "infer-1"}},
		"of-another-cluster/0/": {Ratio{1, 1}, Ratio{}, PodName{}},
		"trn-1/0/":              {Ratio{0.4, 1}, Ratio{}, PodName{"language", "lm-0"}},
		"trn-1/1/":              {Ratio{0, 1}, Ratio{}, PodName{}}, // known, and used by no process
	} {
		d, ok := byKey[key]
		if !ok {
			t.Errorf("no device %s in %v", key, byKey)
			continue
		}
		wantRatio(t, key+" busy", d.Busy, want.busy.Used, want.busy.Of)
		wantRatio(t, key+" memory", d.Memory, want.memory.Used, want.memory.Of)
		if want.pod.Name != "" && (len(d.Pods) != 1 || d.Pods[0] != want.pod) || want.pod.Name == "" && len(d.Pods) != 0 {
			t.Errorf("pods of %s are %v, want %v", key, d.Pods, want.pod)
		}
	}

	sums := r.Sum(sample(time.Time{}), "")
	if sums.UnknownNodeDevices != 1 {
		t.Errorf("%d devices on unknown nodes, want 1", sums.UnknownNodeDevices)
	}
	gpus, cores := sums.All.Devices[GPU], sums.All.Devices[Neuron]
	wantRatio(t, "GPUs", gpus.Ratio, 0.8+0.2+1.5/7+2.0/7, 3+6.0/7)
	if gpus.Reporting != 4 || gpus.Total != 17 || gpus.Missing() != 13 || cores.Reporting != 2 || cores.Total != 2 {
		t.Errorf("GPUs %+v, Neuron devices %+v", gpus, cores)
	}
	wantRatio(t, "GPU memory", gpus.Memory, 60000*MiB, 280000*MiB)
	wantRatio(t, "Neuron", cores.Ratio, 0.4, 2)
	wantRatio(t, "Neuron memory", sums.All.NeuronMemory, 500, 2000)
	wantRatio(t, "memory", sums.All.Memory, 75e9, 100e9)
	if cpu := sums.All.CPU; cpu.Of != 2 || math.Abs(cpu.Used-0.8) > 0.01 || sums.All.CPUNodes != 1 || sums.All.Nodes != 4 {
		t.Errorf("vCPUs %+v of %d of %d nodes", cpu, sums.All.CPUNodes, sums.All.Nodes)
	}
	wantRatio(t, "vision", sums.Teams[UsageKey{"vision", GPU}].Ratio, 1, 2)
	wantRatio(t, "speech", sums.Teams[UsageKey{"speech", GPU}].Ratio, 1.5/7, 4.0/7)
	wantRatio(t, "lm", sums.Tasks[UsageKey{"lm", Neuron}].Ratio, 0.4, 1)
	wantRatio(t, "unattributed", sums.Unattributed[GPU].Ratio, 2.0/7, 1+2.0/7)
	wantRatio(t, "h100", sums.Pools["h100"].Devices[GPU].Ratio, 1, 3)
	if only := r.Sum(sample(time.Time{}), "a100"); only.All.Devices[GPU].Reporting != 1 || len(only.Pools) != 1 || len(only.Teams) != 1 {
		t.Errorf("a100: %+v", only)
	}

	// The history from the same Prometheus.
	c := sample(time.Time{})
	span := Range{From: time.Now().Add(-15 * time.Second).Truncate(time.Second), Step: time.Second}
	var h History
	for last := time.Now().Add(20 * time.Second); len(h.Times) == 0 || math.IsNaN(h.CPU[len(h.CPU)-1]); {
		span.To = time.Now() // a range that is not cached
		if h, err = s.History(t.Context(), span, c, ""); err != nil || time.Now().After(last) {
			t.Fatal(h, err)
		}
	}
	last := len(h.Times) - 1
	for name, pair := range map[string][2]float64{
		"GPU": {h.GPU[last], gpus.Share()}, "GPU memory": {h.GPUMemory[last], gpus.Memory.Share()}, "Neuron": {h.Neuron[last], cores.Share()},
		"vCPU": {h.CPU[last], 0.4}, "memory": {h.Memory[last], 0.75},
	} {
		if !(math.Abs(pair[0]-pair[1]) < 0.01) {
			t.Errorf("history of %s ends with %v, want %v", name, pair[0], pair[1])
		}
	}
	if !math.IsNaN(h.GPU[0]) {
		t.Errorf("value before the first sample is %v, want NaN", h.GPU[0])
	}
	if one, err := s.History(t.Context(), span, c, "trn"); err != nil || one.GPU != nil || len(one.Neuron) != len(one.Times) {
		t.Errorf("trn: %+v, %v", one, err)
	}
}
