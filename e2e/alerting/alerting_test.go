package alerting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster/clustertest"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// fires is within what time an alert must fire after its cause has lasted for long enough.
const fires = 30 * time.Second

// lab is a console, and what its receiver of alerts got.
type lab struct {
	*clustertest.Cluster
	*consoles.Replica

	mu   sync.Mutex
	got  map[string]int  // "firing task-idle", how often
	keys map[string]bool // of messages: one that was on its way when the console was killed comes again
}

func (l *lab) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var m struct {
		Alerts []struct{ State, Rule string }
	}
	if json.NewDecoder(request.Body).Decode(&m) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := request.Header.Get("Idempotency-Key")
	if l.keys[key] {
		return
	}
	l.keys[key] = true
	for _, a := range m.Alerts {
		l.got[a.State+" "+a.Rule]++
	}
}

func (l *lab) messages() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.got)
}

// firing returns nil if so many alerts of a rule fire, as the metrics of the console have it.
func (l *lab) firing(rule string, want int) func(context.Context) error {
	line := regexp.MustCompile(`kuota_alerts_firing\{rule="` + rule + `",[^}]*\} (\d+)`)
	return func(ctx context.Context) error {
		body, err := consoles.Get(ctx, http.DefaultClient, "http://"+l.Metrics+"/metrics")
		if err != nil {
			return err
		}
		if m := line.FindStringSubmatch(body); m == nil || m[1] != fmt.Sprint(want) {
			return fmt.Errorf("%s: got %q, want %d", rule, m, want)
		}
		return nil
	}
}

// received returns nil if the receiver got exactly this.
func (l *lab) received(want map[string]int) func(context.Context) error {
	return func(context.Context) error {
		if got := l.messages(); !maps.Equal(got, want) {
			return fmt.Errorf("the receiver got %v, want %v", got, want)
		}
		return nil
	}
}

// TestAlertsOfTheCluster causes seven alerts. Each fires once within 30 seconds, is sent once
// although the console is killed meanwhile, and resolves.
func TestAlertsOfTheCluster(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	l := &lab{Cluster: c, got: map[string]int{}, keys: map[string]bool{}}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	var metrics atomic.Pointer[func() string]
	metrics.Store(new(func() string { return "" }))
	prometheus := consoles.StartPrometheus(t, func() string { return (*metrics.Load())() })
	l.Replica = consoles.New(t, c, "alerting", t.TempDir()+"/history.db", "KUOTA_IDLE_AFTER=1m", "KUOTA_PROMETHEUS_URL="+prometheus.Address)
	l.WaitReady()
	l.WaitLeads(consoles.Patience)

	c.Apply(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"alert-receiver","namespace":"kuota-system"},"stringData":{"url":"`+server.URL+`"}}`)
	c.Apply(t, `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"WorkloadPriorityClass","metadata":{"name":"theirs-priority"},"value":7}`)
	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "workloadpriorityclass", "theirs-priority", "--ignore-not-found")
	})
	policy := func(classes string) string {
		return `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  idleCompute: {strategy: FairShare}
  preemptionLoops: Warn
  priorityClasses: [{name: high, weight: 90}, {name: mid, weight: 50}, {name: low, weight: 10}` + classes + `]
  alerts:
    receivers: [{name: ops, secretName: alert-receiver}]
    rules:
    - {rule: nodes-lost, after: 2s}
    - {rule: policy-differs, after: 2s}
    - {rule: console-stale, after: 5s}
    - {rule: training-slow, after: 2s}
    - {rule: task-preempted, "off": true}
`
	}
	c.Apply(t, policy(""))
	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "clusterpolicy", "default", "--ignore-not-found", "--wait=false")
	})
	c.Kubectl(t, "", "wait", "--for=condition=Ready", "clusterpolicy/default", "--timeout=120s")
	idle, loops := clustertest.Name("lab.idle"), clustertest.Name("lab.loops")
	for _, node := range []string{idle, loops + "-1", loops + "-2"} {
		instanceType := strings.TrimSuffix(strings.TrimSuffix(node, "-1"), "-2")
		c.Node(t, node, map[string]string{corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: node, corev1.LabelOSStable: "linux"},
			clustertest.Resources(map[corev1.ResourceName]string{"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}))
	}
	lazy, a, b := l.team(t, idle, "lazy", ""), l.team(t, loops, "a", "fairShareWeight: 30"), l.team(t, loops, "b", "fairShareWeight: 20")
	want := map[string]int{}

	// A task that does nothing. It is a training that writes no checkpoint and has done ten times as
	// many samples a second.
	l.submit(t, lazy, "idle", "mid", 4)
	var node string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		node = c.Kubectl(t, "", "get", "pods", "-n", "hyperpod-ns-"+lazy, "-o", "jsonpath={.items[0].spec.nodeName}{' '}{.items[0].metadata.name}")
		if name, _, _ := strings.Cut(node, " "); name == "" {
			return fmt.Errorf("no pod runs")
		}
		return nil
	})
	node, pod, _ := strings.Cut(node, " ")
	var lines strings.Builder
	for gpu := range 4 {
		fmt.Fprintf(&lines, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=\"GPU-%[1]d\",Hostname=%q,exported_namespace=%q,exported_pod=%q} 1\n", gpu, node, "hyperpod-ns-"+lazy, pod)
	}
	idleSince := time.Now()
	labels := fmt.Sprintf("exported_namespace=%q,exported_pod=%q", "hyperpod-ns-"+lazy, pod)
	fmt.Fprintf(&lines, "kuota_training_step{%s} 7\nkuota_training_last_checkpoint_timestamp_seconds{%[1]s} %d\n", labels, idleSince.Add(-3*time.Hour).Unix())
	series := fmt.Sprintf("kuota_training_samples_total{%s,world_size=\"4\"}", labels)
	metrics.Store(new(func() string {
		return fmt.Sprintf("%s%s %d\n", lines.String(), series, time.Since(idleSince).Milliseconds()/100)
	}))
	var earlier strings.Builder
	for seconds := 2 * 3600; seconds > 660; seconds -= 30 {
		fmt.Fprintf(&earlier, "%s %d %d\n", series, (2*3600-seconds)*100, idleSince.Unix()-int64(seconds))
	}
	prometheus.Backfill(t, "# TYPE kuota_training_samples counter\n"+earlier.String()+"# EOF\n")

	clustertest.Eventually(t, fires, l.firing("no-checkpoint", 1))
	t.Logf("no-checkpoint fired after %s", time.Since(idleSince).Round(time.Second))
	want["firing no-checkpoint"]++

	// A loop of preemptions.
	for _, task := range []struct {
		team, name, class string
		gpus              int
	}{{a, "a-high", "high", 4}, {b, "b-low", "low", 4}, {a, "a-mid", "mid", 8}, {b, "b-mid", "mid", 8}} {
		l.submit(t, task.team, task.name, task.class, task.gpus)
		time.Sleep(time.Second)
	}
	clustertest.Eventually(t, 60*time.Second, l.firing("preemption-loop", 1))
	want["firing preemption-loop"]++

	// A policy that Kueue does not follow.
	caused := time.Now()
	c.Apply(t, policy(", {name: theirs, weight: 80}"))
	clustertest.Eventually(t, fires, l.firing("policy-differs", 1))
	t.Logf("policy-differs fired after %s", time.Since(caused).Round(time.Second))
	want["firing policy-differs"]++

	clustertest.Eventually(t, 2*time.Minute, l.firing("task-idle", 1))
	t.Logf("task-idle fired %s after the task was idle for a minute", (time.Since(idleSince) - time.Minute).Round(time.Second))
	want["firing task-idle"]++

	clustertest.Eventually(t, time.Minute+fires, l.firing("training-slow", 1))
	t.Logf("training-slow fired %s after Prometheus had what was before, a minute at most", time.Since(idleSince).Round(time.Second))
	want["firing training-slow"]++

	// A node whose kubelet is gone. The test renews the leases of the others while KWOK is stopped.
	caused = time.Now()
	c.Control(t, "stop", "kwok")
	renewing, renewed := context.WithCancel(t.Context())
	defer renewed()
	go l.renew(renewing, idle)
	started := false
	t.Cleanup(func() {
		if !started {
			c.Control(t, "start", "kwok")
		}
	})
	c.Kubectl(t, "", "patch", "node", idle, "--subresource=status", "--type=strategic", "-p", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"lost"}]}}`)
	clustertest.Eventually(t, fires, l.firing("nodes-lost", 1))
	t.Logf("nodes-lost fired after %s", time.Since(caused).Round(time.Second))
	want["firing nodes-lost"]++

	// All are sent once, also by the next process.
	clustertest.Eventually(t, 60*time.Second, l.received(want))
	l.End(syscall.SIGKILL)
	l.Start()
	l.WaitReady()
	l.WaitLeads(consoles.Patience)
	for _, rule := range []string{"policy-differs", "nodes-lost", "task-idle", "no-checkpoint", "training-slow"} {
		clustertest.Eventually(t, consoles.Patience, l.firing(rule, 1))
	}

	// Their causes end.
	c.Kubectl(t, "", "delete", "job", "a-high", "a-mid", "-n", "hyperpod-ns-"+a)
	c.Kubectl(t, "", "delete", "job", "b-low", "b-mid", "-n", "hyperpod-ns-"+b)
	c.Kubectl(t, "", "delete", "job", "idle", "-n", "hyperpod-ns-"+lazy)
	c.Apply(t, policy(""))
	c.Control(t, "start", "kwok")
	started = true
	back := time.Now()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error { // otherwise the node is lost again
		var lease coordinationv1.Lease
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: idle}, &lease); err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(back) {
			return fmt.Errorf("the lease of %s is not renewed", idle)
		}
		return nil
	})
	renewed()
	c.Kubectl(t, "", "patch", "node", idle, "--subresource=status", "--type=strategic", "-p", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"back"}]}}`)
	for _, rule := range []string{"preemption-loop", "policy-differs", "nodes-lost", "task-idle", "no-checkpoint", "training-slow"} {
		want["resolved "+rule]++
		clustertest.Eventually(t, 3*time.Minute, l.firing(rule, 0))
	}
	clustertest.Eventually(t, 2*time.Minute, l.received(want))

	// An API server that is away.
	caused = time.Now()
	c.Control(t, "stop", "kube-apiserver")
	clustertest.Eventually(t, 5*time.Second+fires, l.firing("console-stale", 1))
	t.Logf("console-stale fired after %s", time.Since(caused).Round(time.Second))
	want["firing console-stale"]++
	clustertest.Eventually(t, fires, l.received(want))
	t.Logf("the receiver had it after %s", time.Since(caused).Round(time.Second))
	time.Sleep(20 * time.Second) // the replica does not lead any more
	if err := l.firing("console-stale", 1)(t.Context()); err != nil {
		t.Error(err)
	}
	c.Control(t, "start", "kube-apiserver")
	clustertest.Eventually(t, consoles.Patience, l.firing("console-stale", 0))
	want["resolved console-stale"]++
	clustertest.Eventually(t, 2*time.Minute, func(context.Context) error {
		got := l.messages()
		maps.DeleteFunc(got, func(key string, _ int) bool { return !strings.HasSuffix(key, "console-stale") && want[key] == 0 }) // such as policy-differs while Kueue starts
		if !maps.Equal(got, want) {
			return fmt.Errorf("the receiver got %v, want %v", got, want)
		}
		return nil
	})
}

// renew renews the leases of all nodes but one every few seconds until ctx ends.
func (l *lab) renew(ctx context.Context, lost string) {
	for ; ctx.Err() == nil; _ = governance.Sleep(ctx, 5*time.Second) {
		var leases coordinationv1.LeaseList
		if l.Client.List(ctx, &leases, client.InNamespace(corev1.NamespaceNodeLease)) != nil {
			continue // the controller manager waits for longer than one round
		}
		for i := range leases.Items {
			if lease := &leases.Items[i]; lease.Name != lost {
				lease.Spec.RenewTime = new(metav1.NowMicro())
				_ = l.Client.Update(ctx, lease)
			}
		}
	}
}

// team creates a team with a quota of eight GPUs of a type of nodes.
func (l *lab) team(t *testing.T, instanceType, prefix, more string) string {
	t.Helper()
	name := clustertest.Name(prefix)
	l.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+name+`}
spec:
  quota: [{instanceType: `+instanceType+`, accelerators: 8}]
  sharing: {borrowLimitPercent: 50}
  preemption: {withinTeam: LowerPriority}
  `+more+`
`)
	t.Cleanup(func() { _, _ = l.TryKubectl("", "delete", "computeallocation", name, "--wait=false") })
	l.Kubectl(t, "", "wait", "--for=condition=Ready", "computeallocation/"+name, "--timeout=180s")
	return name
}

func (l *lab) submit(t *testing.T, team, name, class string, gpus int) {
	t.Helper()
	l.Kubectl(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: hyperpod-ns-%s, labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-%[2]s-localqueue, kueue.x-k8s.io/priority-class: %s-priority}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: train, image: "example.com/train:1", resources: {limits: {nvidia.com/gpu: %d}}}]}
`, name, team, class, gpus), "create", "-f", "-")
}
