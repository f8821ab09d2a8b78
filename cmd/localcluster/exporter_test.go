package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testPod is a running pod of a Job on node p5-0.
func testPod(job, uid string, gpus int64, created time.Time) corev1.Pod {
	requests := corev1.ResourceList{gpuResource: *resource.NewQuantity(gpus, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("12")}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: job + "-" + uid, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "p5-0", Containers: []corev1.Container{{Name: "train", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// devicesOf returns the indexes of the GPUs that metrics assign to each pod, and the
// utilization of each GPU.
func devicesOf(metrics []byte) (pods map[string]string, busy map[string]float64) {
	pods, busy = map[string]string{}, map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^DCGM_FI_DEV_GPU_UTIL\{gpu="(\d)".*?(?:pod="(.*)")?\} (\d+)$`).FindAllStringSubmatch(string(metrics), -1) {
		pods[m[2]] += m[1]
		var value float64
		_, _ = fmt.Sscan(m[3], &value)
		busy[m[1]] = value
	}
	return pods, busy
}

// A pod keeps its GPUs while others come and go, and how busy they are follows from the
// name of its task.
func TestExporter(t *testing.T) {
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	p5 := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "p5-0", Annotations: map[string]string{simulatedNode: simulatedValue}, Labels: map[string]string{corev1.LabelInstanceTypeStable: "ml.p5.48xlarge", gpuMemory: "81920"}},
		Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{gpuResource: resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("48")}},
	}
	realNode := *p5.DeepCopy()
	realNode.Name, realNode.Annotations = "real-node", nil
	nodes := []corev1.Node{p5, realNode}
	e := &exporter{still: true}
	idle, half, busy := testPod("asr-train", "a", 2, begin), testPod("llm-eval", "b", 2, begin.Add(time.Second)), testPod("resnet-pretrain-3", "c", 3, begin.Add(2*time.Second))
	pending := testPod("waits", "d", 1, begin)
	pending.Status.Phase = corev1.PodPending

	text := e.metrics(nodes, []corev1.Pod{busy, half, idle, pending}, begin)
	pods, first := devicesOf(text)
	if want := map[string]string{"asr-train-a": "01", "llm-eval-b": "23", "resnet-pretrain-3-c": "456", "": "7"}; fmt.Sprint(pods) != fmt.Sprint(want) {
		t.Errorf("pods have the GPUs %v, want %v", pods, want)
	}
	for gpu, bounds := range map[string][2]float64{"0": {0, 3}, "1": {0, 3}, "2": {40, 60}, "4": {80, 95}, "6": {80, 95}, "7": {0, 0}} {
		if first[gpu] < bounds[0] || first[gpu] > bounds[1] {
			t.Errorf("GPU %s is %v %% busy, want %v", gpu, first[gpu], bounds)
		}
	}
	if strings.Contains(string(text), "real-node") || !strings.Contains(string(text), "kuota_simulated 1\n") {
		t.Errorf("got %s", text)
	}

	// The first task ends, and one of another round starts.
	more := testPod("resnet-pretrain-4", "e", 3, begin.Add(time.Minute))
	for _, still := range []bool{true, false} {
		e.still = still
		text = e.metrics(nodes, []corev1.Pod{half, busy, more}, begin.Add(time.Minute))
		pods, later := devicesOf(text)
		if want := map[string]string{"llm-eval-b": "23", "resnet-pretrain-3-c": "456", "resnet-pretrain-4-e": "017"}; fmt.Sprint(pods) != fmt.Sprint(want) {
			t.Errorf("pods have the GPUs %v, want %v", pods, want)
		}
		changed := false
		for gpu := range first {
			if still && gpu >= "2" && gpu < "7" && first[gpu] != later[gpu] {
				t.Errorf("GPU %s was %v %% busy and is %v %%, though values are still", gpu, first[gpu], later[gpu])
			}
			changed = changed || gpu >= "2" && gpu < "7" && first[gpu] != later[gpu]
		}
		if changed == still {
			t.Errorf("still %t: values changed %t", still, changed)
		}
	}
	idled := regexp.MustCompile(`node_cpu_seconds_total\{node="p5-0",cpu="0",mode="idle"\} ([0-9.]+)`).FindSubmatch(text)
	var seconds float64
	if idled != nil {
		_, _ = fmt.Sscan(string(idled[1]), &seconds)
	}
	if seconds <= 0 || seconds >= 60 {
		t.Errorf("vCPUs idled for %v s of a minute in which three quarters of them were requested", seconds)
	}
}
