package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The devices of simulated nodes, and NVIDIA's labels with the figures of a GPU.
const (
	gpuResource    = "nvidia.com/gpu"
	gpuModel       = "nvidia.com/gpu.product"
	gpuMemory      = "nvidia.com/gpu.memory" // MiB
	neuronResource = "aws.amazon.com/neurondevice"

	neuronCores  = 2        // of a device
	neuronMemory = 32 << 30 // bytes of a device
)

// exporter serves metrics of simulated nodes as dcgm-exporter, neuron-monitor and
// node-exporter would. How busy a task is follows from its name. The series
// kuota_simulated says that nothing was measured; Kuota marks what it shows of it.
type exporter struct {
	api   client.Reader
	still bool // values of a task never change

	mu    sync.Mutex
	pods  map[string][]types.UID // of each device by node; a pod keeps its devices
	idle  map[string]float64     // by node: seconds that each vCPU was idle
	until time.Time              // of idle
}

// serve listens on loopback until ctx ends.
func (e *exporter) serve(ctx context.Context, port int) error {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return fmt.Errorf("serve simulated metrics: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() { _ = http.Serve(listener, e) }()
	return nil
}

// ServeHTTP implements http.Handler.
func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cached := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}} // by the API server
	var nodes corev1.NodeList
	var pods corev1.PodList
	err := e.api.List(r.Context(), &nodes, cached)
	if err == nil {
		err = e.api.List(r.Context(), &pods, cached)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(e.metrics(nodes.Items, pods.Items, time.Now()))
}

// metrics returns the metrics at a time, which never goes back.
func (e *exporter) metrics(nodes []corev1.Node, pods []corev1.Pod, now time.Time) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pods == nil {
		e.pods, e.idle, e.until = map[string][]types.UID{}, map[string]float64{}, now
	}
	now = now.Truncate(time.Millisecond) // as timestamps of counters are, so that their rates are exact
	passed := now.Sub(e.until).Seconds()
	e.until = now
	on := map[string][]*corev1.Pod{}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			on[pods[i].Spec.NodeName] = append(on[pods[i].Spec.NodeName], &pods[i])
		}
	}
	var b bytes.Buffer
	b.WriteString("kuota_simulated 1\n")
	for i := range nodes {
		n := &nodes[i]
		if n.Annotations[simulatedNode] != simulatedValue || n.Labels[corev1.LabelInstanceTypeStable] == "" {
			continue
		}
		e.gpus(&b, n, e.assign(n, on[n.Name], gpuResource), now)
		e.neurons(&b, n, e.assign(n, on[n.Name], neuronResource), now)
		var cpu, memory float64 // used
		for _, pod := range on[n.Name] {
			share := e.busy(taskOf(pod), 0, now)
			cpu += share * requested(pod, corev1.ResourceCPU)
			memory += share * requested(pod, corev1.ResourceMemory)
		}
		cpus, total := amount(n.Status.Capacity, corev1.ResourceCPU), amount(n.Status.Capacity, corev1.ResourceMemory)
		e.idle[n.Name] += passed * (1 - cpu/max(cpus, 1))
		for i := range int(cpus) {
			fmt.Fprintf(&b, "node_cpu_seconds_total{node=%q,cpu=\"%d\",mode=\"idle\"} %f %d\n", n.Name, i, e.idle[n.Name], now.UnixMilli())
		}
		fmt.Fprintf(&b, "node_memory_MemTotal_bytes{node=%q} %.0f\nnode_memory_MemAvailable_bytes{node=%q} %.0f\n", n.Name, total, n.Name, total-memory)
	}
	return b.Bytes()
}

// assign returns the pod of each device of a node; nil for none.
func (e *exporter) assign(n *corev1.Node, pods []*corev1.Pod, resource corev1.ResourceName) []*corev1.Pod {
	key := n.Name + " " + string(resource)
	devices := make([]*corev1.Pod, int(amount(n.Status.Capacity, resource)))
	missing := map[*corev1.Pod]int{}
	for _, pod := range pods {
		missing[pod] = int(requested(pod, resource))
		for i, uid := range e.pods[key] {
			if i < len(devices) && uid == pod.UID {
				devices[i] = pod
				missing[pod]--
			}
		}
	}
	e.pods[key] = make([]types.UID, len(devices))
	next := 0
	for i := range devices {
		for devices[i] == nil && next < len(pods) {
			if missing[pods[next]] <= 0 {
				next++
				continue
			}
			devices[i] = pods[next]
			missing[pods[next]]--
		}
		if devices[i] != nil {
			e.pods[key][i] = devices[i].UID
		}
	}
	return devices
}

// gpus writes what dcgm-exporter reports of the GPUs of a node.
func (e *exporter) gpus(b *bytes.Buffer, n *corev1.Node, devices []*corev1.Pod, now time.Time) {
	total, _ := strconv.Atoi(n.Labels[gpuMemory])
	for i, pod := range devices {
		labels := fmt.Sprintf(`gpu="%d",UUID="GPU-%s-%d",device="nvidia%d",modelName=%q,Hostname=%q`, i, n.Name, i, i, n.Labels[gpuModel], n.Name)
		busy, used := 0.0, 0
		if pod != nil {
			labels += fmt.Sprintf(`,container=%q,namespace=%q,pod=%q`, pod.Spec.Containers[0].Name, pod.Namespace, pod.Name)
			busy = e.busy(taskOf(pod), i, now)
			used = int((0.3 + busy/2) * float64(total)) // an idle process keeps its model there
		}
		fmt.Fprintf(b, "DCGM_FI_DEV_GPU_UTIL{%s} %.0f\n", labels, busy*100)
		if total > 0 {
			fmt.Fprintf(b, "DCGM_FI_DEV_FB_USED{%s} %d\nDCGM_FI_DEV_FB_FREE{%s} %d\n", labels, used, labels, total-used)
		}
	}
}

// neurons writes what neuron-monitor reports of the Neuron devices of a node: only of
// cores that a process uses.
func (e *exporter) neurons(b *bytes.Buffer, n *corev1.Node, devices []*corev1.Pod, now time.Time) {
	if len(devices) == 0 {
		return
	}
	var used float64
	for i, pod := range devices {
		if pod == nil {
			continue
		}
		busy := e.busy(taskOf(pod), i, now)
		used += (0.3 + busy/2) * neuronMemory
		for core := range neuronCores {
			fmt.Fprintf(b, "neuroncore_utilization_ratio{node=%q,neuroncore=\"%d\",namespace=%q,pod=%q} %.2f\n", n.Name, i*neuronCores+core, pod.Namespace, pod.Name, busy)
		}
	}
	fmt.Fprintf(b, "neuron_hardware_info{node=%q,neuron_device_count=\"%d\",neuroncore_per_device_count=\"%d\",neuron_device_memory_size=\"%d\"} 1\n", n.Name, len(devices), neuronCores, neuronMemory)
	fmt.Fprintf(b, "neuron_runtime_memory_used_bytes{node=%q,memory_location=\"neuron_device\"} %.0f\n", n.Name, used)
}

// busy returns how busy a task keeps one of its devices, 0 to 1: one task in five is
// idle, one half busy.
func (e *exporter) busy(task string, device int, now time.Time) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(task))
	sum := h.Sum32()
	low, high := 80, 95
	switch sum % 5 {
	case 2:
		low, high = 0, 3
	case 1:
		low, high = 40, 60
	}
	percent := float64(low + (int(sum>>8&0xff)+7*device)%(high-low+1))
	if !e.still {
		percent += 3 * math.Sin(float64(now.Unix())/30+float64(sum&0xff)+float64(device))
	}
	return min(max(percent, float64(low)), float64(high)) / 100
}

// round is what load adds to the name of a Job from the second round on.
var round = regexp.MustCompile(`-[0-9]+$`)

// taskOf returns the name of the task of a pod, the same in every round.
func taskOf(pod *corev1.Pod) string {
	name := pod.Name
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name = owner.Name
	}
	return round.ReplaceAllString(name, "")
}

func requested(pod *corev1.Pod, resource corev1.ResourceName) (sum float64) {
	for i := range pod.Spec.Containers {
		sum += amount(pod.Spec.Containers[i].Resources.Requests, resource)
	}
	return sum
}

func amount(list corev1.ResourceList, resource corev1.ResourceName) float64 {
	quantity := list[resource]
	return quantity.AsApproximateFloat64()
}
