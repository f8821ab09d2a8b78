package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The load for the figures of docs/figures.md.
const (
	teamCount         = 5_000
	taskCount         = 100_000
	teamsInDepartment = 25
	streamCount       = 50
	changesPerSecond  = 50
	changesDuration   = 2 * time.Minute
)

// TestManyTasks measures pages of tasks with 5,000 teams in 200 departments and 100,000 Workloads;
// make bench runs it last, because it stops Kueue and does not start it again.
func TestManyTasks(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	m, empty := newMany(t, teamCount, taskCount)
	began := time.Now()
	m.write()
	t.Logf("%d Workloads written in %s", taskCount, time.Since(began).Round(time.Second))

	began = time.Now()
	for list := new(kueue.WorkloadList); ; { // by page: a whole list takes longer than the API server's limit
		must(t, m.client.List(t.Context(), list, client.Limit(500), client.Continue(list.Continue)))
		if list.Continue == "" {
			break
		}
	}
	fmt.Printf("figure tasks_bare_list %.1f s\n", time.Since(began).Seconds())
	s := manyConsole(t, clustertest.Get(t), "console-many")
	fmt.Printf("figure tasks_cold_start %.1f s\n", s.ready.Seconds())
	m.explanations(s, "tasks_explain_while_history_is_written")
	fmt.Printf("figure tasks_history_written %.0f s\n", m.recorded(s).Seconds())
	m.pages(s)
	m.explanations(s, "tasks_explain")
	fmt.Printf("figure tasks_memory_each %.1f kB\n", float64(memoryOf(t, s.process)-empty)/1000/taskCount)
	fmt.Printf("figure tasks_heap %.0f MB\n", s.metric("go_gc_heap_live_bytes")/1e6)
	m.changes(s)
	fmt.Printf("figure tasks_memory_each_after_changes %.1f kB\n", float64(memoryOf(t, s.process)-empty)/1000/taskCount)
	m.deletions(s)
}

// newMany creates teams on a cluster where nothing but the API server and the test acts
// on Workloads. It returns the resident memory of a console there, too, in bytes.
func newMany(t *testing.T, teams, tasks int) (m *many, empty int64) {
	t.Helper()
	c := clustertest.Get(t)
	console(t)
	c.Control(t, "stop", "kueue")
	c.Control(t, "stop", "kube-controller-manager")
	for _, kind := range []string{"mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
		c.Kubectl(t, "", "delete", kind, "--all")
	}
	// Without Kueue's conversion webhook the API server could not fill its caches of old
	// versions, and would retry all the time.
	for _, kind := range []string{"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"} {
		c.Kubectl(t, "", "patch", "customresourcedefinition", kind+".kueue.x-k8s.io", "--type=json", "-p", `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}},{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	}
	prefix := c.CreateTeams(t, teams, teams/teamsInDepartment)
	c.AwaitTeams(t, prefix, teams, func(a *v1alpha1.ComputeAllocation) bool { return len(a.Status.Quota) > 0 })
	m = &many{t: t, prefix: prefix, teams: teams, tasks: tasks, client: manyClient(t, c)}
	m.activate()
	c.AwaitTeams(t, prefix, teams, func(a *v1alpha1.ComputeAllocation) bool {
		return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
	})
	// Any other console would process the same changes next to the measured one.
	must(t, consoleProcess.Process.Signal(syscall.SIGTERM))
	emptyConsole := manyConsole(t, c, "console-empty").process
	empty = memoryOf(t, emptyConsole)
	must(t, emptyConsole.Process.Signal(syscall.SIGTERM))
	return m, empty
}

// activate sets the condition Active of all queues, as Kueue would, which takes minutes for
// thousands of queues in departments.
func (m *many) activate() {
	active := metav1.Condition{Type: kueue.ClusterQueueActive, Status: metav1.ConditionTrue, Reason: "Ready", Message: "Can admit new workloads"}
	var queues kueue.ClusterQueueList
	var locals kueue.LocalQueueList
	must(m.t, errors.Join(m.client.List(m.t.Context(), &queues), m.client.List(m.t.Context(), &locals)))
	var all errgroup.Group
	all.SetLimit(16)
	for i := range queues.Items {
		active.ObservedGeneration = queues.Items[i].Generation
		meta.SetStatusCondition(&queues.Items[i].Status.Conditions, active)
		all.Go(func() error { return m.client.Status().Update(m.t.Context(), &queues.Items[i]) })
	}
	for i := range locals.Items {
		active.ObservedGeneration = locals.Items[i].Generation
		meta.SetStatusCondition(&locals.Items[i].Status.Conditions, active)
		all.Go(func() error { return m.client.Status().Update(m.t.Context(), &locals.Items[i]) })
	}
	must(m.t, all.Wait())
}

// manyServer is the console that is measured.
type manyServer struct {
	address string
	metrics string // address
	process *exec.Cmd
	admin   *http.Client
	began   time.Time
	ready   time.Duration // time from its start to ready
}

// manyConsole starts a console and waits until it is ready.
func manyConsole(t *testing.T, c *clustertest.Cluster, name string) manyServer {
	t.Helper()
	began := time.Now()
	metrics := freeAddress(t)
	started, address, err := startConsole(name, append(signInEnv(c), "KUOTA_METRICS_ADDRESS="+metrics)...)
	must(t, err)
	t.Cleanup(func() {
		_ = started.Process.Signal(syscall.SIGTERM)
		_ = started.Wait()
	})
	clustertest.Eventually(t, 3*time.Minute, func(context.Context) error {
		response, err := http.Get(address + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: got %s, want 200", response.Status)
		}
		return nil
	})
	s := manyServer{address: address, metrics: metrics, process: started, began: began, ready: time.Since(began)}
	s.admin = newUser(t, address, "admin")
	return s
}

// memoryOf returns the resident memory of a process in bytes: the minimum over a minute,
// which gives the Go runtime time to return unused memory.
func memoryOf(t *testing.T, process *exec.Cmd) int64 {
	t.Helper()
	lowest := int64(1) << 62
	for range 12 {
		lowest = min(lowest, resident(t, process))
		time.Sleep(5 * time.Second)
	}
	t.Logf("%d MB resident", lowest>>20)
	return lowest
}

// manyClient returns a client without rate limit.
func manyClient(t *testing.T, c *clustertest.Cluster) client.WithWatch {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	unlimited, err := client.NewWithWatch(config, client.Options{Scheme: cluster.Scheme})
	must(t, err)
	return unlimited
}

// many creates, changes and deletes the Workloads of TestManyTasks and TestLongQueue.
type many struct {
	t            *testing.T
	prefix       string // of the names of teams
	teams, tasks int
	waiting      bool // all tasks wait
	client       client.WithWatch
	live         []*kueue.Workload // the Workloads on the first page
}

// write creates all Workloads: all but the last hundred in etcd, as the API server would, because
// it takes ten minutes for each hundred thousand. The last hundred are pending and
// created later, so that they are on the first page.
func (m *many) write() {
	if earlier := m.tasks - 100; earlier > 0 {
		m.store(earlier)
	}
	time.Sleep(1100 * time.Millisecond) // a later creation second sorts them onto the first page
	for i := m.tasks - 100; i < m.tasks; i++ {
		w, err := m.create(i)
		must(m.t, err)
		m.live = append(m.live, w)
	}
}

// store writes the first Workloads to etcd with what the API server adds to one that it creates, but
// managedFields, and waits until the API server has all. With managedFields 200,000 of them need more
// than 10 GiB in the API server.
func (m *many) store(count int) {
	ctx := m.t.Context()
	first, err := m.create(0)
	must(m.t, err)
	etcd := etcdOf(m.t, clustertest.Get(m.t))
	const registry = "/registry/kueue.x-k8s.io/workloads/"
	found, err := etcd.Get(ctx, registry+first.Namespace+"/"+first.Name)
	must(m.t, err)
	var stored kueue.Workload
	must(m.t, json.Unmarshal(found.Kvs[0].Value, &stored))
	const inTransaction = 100
	var writing errgroup.Group
	writing.SetLimit(8)
	for from := 1; from < count; from += inTransaction {
		writing.Go(func() error {
			var puts []clientv3.Op
			for i := from; i < min(from+inTransaction, count); i++ {
				w := m.workload(i)
				w.TypeMeta, w.UID, w.Generation = stored.TypeMeta, uuid.NewUUID(), 1
				w.CreationTimestamp = metav1.Now()
				text, err := json.Marshal(w)
				if err != nil {
					return err
				}
				puts = append(puts, clientv3.OpPut(registry+w.Namespace+"/"+w.Name, string(text)))
			}
			_, err := etcd.Txn(ctx).Then(puts...).Commit()
			return err
		})
	}
	must(m.t, writing.Wait())
	last, err := etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithCountOnly())
	must(m.t, err)
	if int(last.Count) != count {
		m.t.Fatalf("etcd has %d Workloads, want %d", last.Count, count)
	}
	now := &client.ListOptions{Namespace: first.Namespace, Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatInt(last.Header.Revision, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}}
	clustertest.Eventually(m.t, 10*time.Minute, func(ctx context.Context) error { // until the API server's cache has them
		return m.client.List(ctx, &kueue.WorkloadList{}, now)
	})
}

// etcdOf returns a client of the cluster's etcd. Its port is the second after that of the API server.
func etcdOf(t *testing.T, c *clustertest.Cluster) *clientv3.Client {
	t.Helper()
	pki := func(file string) string { return filepath.Join(c.Dir, "pki", file) }
	info := transport.TLSInfo{CertFile: pki("etcd-client.crt"), KeyFile: pki("etcd-client.key"), TrustedCAFile: pki("etcd-ca.crt")}
	config, err := info.ClientConfig()
	must(t, err)
	host, err := url.Parse(c.Config.Host)
	must(t, err)
	port, err := strconv.Atoi(host.Port())
	must(t, err)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://127.0.0.1:" + strconv.Itoa(port+2)}, TLS: config, DialTimeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}

// create creates the i-th Workload with its status.
func (m *many) create(i int) (*kueue.Workload, error) {
	w := m.workload(i)
	status := w.Status
	if err := m.client.Create(m.t.Context(), w); err != nil {
		return nil, err
	}
	w.Status = status
	return w, m.client.Status().Update(m.t.Context(), w)
}

// workload returns the i-th Workload.
func (m *many) workload(i int) *kueue.Workload {
	kind := i % 5
	if m.waiting || i >= m.tasks-100 {
		kind = 3
	}
	name := fmt.Sprintf("train-%05d", i)
	queue := fmt.Sprintf("hyperpod-ns-%s-%d", m.prefix, i%m.teams)
	priority := int32(i % 3 * 10)
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Name: "job-" + name, Namespace: queue, Labels: map[string]string{"kueue.x-k8s.io/job-uid": name, "app": name},
		Annotations:     map[string]string{"example.com/config": strings.Repeat("x", 200)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID("uid-" + name), Controller: new(true)}},
	}}
	w.Spec = kueue.WorkloadSpec{
		QueueName: kueue.LocalQueueName(queue + "-localqueue"), Priority: &priority,
		PriorityClassRef: &kueue.PriorityClassRef{Group: "kueue.x-k8s.io", Kind: "WorkloadPriorityClass", Name: fmt.Sprintf("class-%d-priority", i%3)},
		PodSets:          []kueue.PodSet{{Name: "main", Count: int32(1 + i%4), Template: manyTemplate(i)}},
	}
	w.Status = manyStatus(kind, queue, int32(1+i%4))
	return w
}

func manyTemplate(i int) corev1.PodTemplateSpec {
	var env []corev1.EnvVar
	for j := range 12 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", j), Value: fmt.Sprintf("value %d of task %d", j, i)})
	}
	requests := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "nvidia.com/gpu": resource.MustParse("1")}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		NodeSelector:  map[string]string{"example.com/disk": "fast"},
		Containers: []corev1.Container{{
			Name: "train", Image: "example.com/train:1", Command: []string{"python", "train.py", "--run", strconv.Itoa(i)}, Env: env,
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
		}},
	}}
}

// manyStatus returns the status of a running (0, 1), pending (2, 3) or finished (4) task.
func manyStatus(kind int, queue string, pods int32) kueue.WorkloadStatus {
	now := metav1.Now()
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	if kind >= 2 && kind < 4 {
		return kueue.WorkloadStatus{Conditions: []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: "False", Reason: "WaitingForQuota", LastTransitionTime: at(time.Hour),
			Message: "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor ml.g5.2xlarge, 1 more needed"}}}
	}
	amount := func(each string) resource.Quantity {
		q := resource.MustParse(each)
		q.Mul(int64(pods))
		return q
	}
	s := kueue.WorkloadStatus{
		Admission: &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue + "-clusterqueue"), PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Count: &pods,
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "ml.g5.2xlarge", "memory": "ml.g5.2xlarge", "nvidia.com/gpu": "ml.g5.2xlarge"},
			ResourceUsage: corev1.ResourceList{"cpu": amount("8"), "memory": amount("32Gi"), "nvidia.com/gpu": amount("1")},
		}}},
		Conditions: []metav1.Condition{
			{Type: kueue.WorkloadQuotaReserved, Status: "True", Reason: "QuotaReserved", Message: "Quota reserved in ClusterQueue " + queue, LastTransitionTime: at(40 * time.Minute)},
			{Type: kueue.WorkloadAdmitted, Status: "True", Reason: "Admitted", Message: "The workload is admitted", LastTransitionTime: at(40 * time.Minute)},
		},
	}
	if kind == 4 {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: "True", Reason: "Succeeded", Message: "Job finished successfully", LastTransitionTime: at(10 * time.Minute)})
	}
	return s
}

// get reads a page with compression, like a browser does, and returns the time and the
// compressed size in bytes.
func (s manyServer) get(t *testing.T, path string) (took time.Duration, size int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address+path, nil)
	must(t, err)
	request.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	response, err := s.admin.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, want 200", path, response.Status)
	}
	return time.Since(began), len(body)
}

// pages measures the first page of tasks, filtered and sorted lists, and other pages.
func (m *many) pages(s manyServer) {
	var first, other []time.Duration
	size := 0
	for range 100 {
		took, bytes := s.get(m.t, "/tasks")
		first, size = append(first, took), bytes
	}
	consoles.Figures(m.t, "tasks_first_page", first)
	fmt.Printf("figure tasks_first_page_size %.1f kB\n", float64(size)/1000)
	addresses := []string{
		"/tasks?status=Pending", "/tasks?class=class-1-priority&status=Running", "/tasks?q=train-4", "/tasks?team=" + m.prefix + "-7", "/tasks?kind=Job&pool=ml.g5.2xlarge",
		"/tasks?sort=name", "/tasks?sort=waited&order=desc", "/tasks?sort=ran&order=desc", "/tasks?sort=accelerators&order=desc", "/tasks?sort=class", "/tasks?sort=team", "/tasks?sort=status", "/tasks?sort=place",
		"/tasks?page=500", "/tasks?page=250&sort=memory", "/tasks?q=train-1&sort=waited&page=3",
	}
	for range 10 {
		for _, address := range addresses {
			took, _ := s.get(m.t, address)
			other = append(other, took)
		}
	}
	consoles.Figures(m.t, "tasks_filter_sort_page", other)
	for name, addresses := range map[string][]string{
		"dashboard": {"/", "/?range=1h", "/?pool=ml.g5.2xlarge", "/?tq=" + m.prefix + "-7"},
		"teams":     {"/teams", "/teams?sort=held&order=desc", "/teams?page=9", "/teams/" + m.prefix + "-7"},
		"instances": {"/instances", "/instances?sort=free"},
	} {
		var all []time.Duration
		for range 25 {
			for _, address := range addresses {
				took, _ := s.get(m.t, address)
				all = append(all, took)
			}
		}
		consoles.Figures(m.t, name+"_page", all)
	}
}

// metric returns a metric of the console without labels; 0 if it has none.
func (s manyServer) metric(name string) float64 {
	response, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	_, value, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	n, _ := strconv.ParseFloat(value, 64)
	return n
}

// recorded waits until the console has recorded all tasks in its history, and returns
// the time since the console's start.
func (m *many) recorded(s manyServer) time.Duration {
	quiet := 0
	clustertest.Eventually(m.t, 10*time.Minute, func(context.Context) error {
		response, err := http.Get("http://" + s.metrics + "/metrics")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		if quiet++; !strings.Contains(string(text), "\nkuota_history_waiting 0\n") {
			quiet = 0
		}
		time.Sleep(500 * time.Millisecond)
		if quiet < 10 {
			return fmt.Errorf("got waiting history rows, want none for 5s")
		}
		return nil
	})
	return time.Since(s.began)
}

// explanations measures the pages of pending tasks, which explain why they are pending.
func (m *many) explanations(s manyServer, name string) {
	var all []time.Duration
	for range 100 {
		i := rand.IntN(m.tasks/5)*5 + 2 // a pending task
		took, _ := s.get(m.t, fmt.Sprintf("/tasks/hyperpod-ns-%s-%d/job/train-%05d", m.prefix, i%m.teams, i))
		all = append(all, took)
	}
	consoles.Figures(m.t, name, all)
}

// A mark is a preemption count, which the list of tasks shows, that encodes when it was
// written: markBase plus the milliseconds since markEpoch.
const markBase = 1_000_000_000

var (
	mark      = regexp.MustCompile(`1,\d{3},\d{3},\d{3}`)
	markEpoch = time.Now()
)

// late returns how long ago a mark was written.
func late(mark int64) time.Duration {
	return time.Since(markEpoch.Add(time.Duration(mark-markBase) * time.Millisecond))
}

// changes changes tasks of the first page while streams are open, and measures the time
// from before each write until a watch, a stream and the browser have it.
func (m *many) changes(s manyServer) {
	ctx, stop := context.WithCancel(m.t.Context())
	defer stop()
	before := m.watches()
	var streams sync.WaitGroup
	var streamed, watched []time.Duration
	for i := range streamCount {
		streams.Go(func() {
			if i > 0 {
				s.stream(ctx, nil)
				return
			}
			s.stream(ctx, func(line string) { streamed = append(streamed, marks(line)...) })
		})
	}
	m.watch(ctx, func(late time.Duration) { watched = append(watched, late) })

	b, err := browser()
	must(m.t, err)
	page, err := b.NewPage(playwright.BrowserNewPageOptions{BaseURL: playwright.String(s.address)})
	must(m.t, err)
	defer page.Close()
	must(m.t, page.Context().AddCookies(cookiesOf(m.t, s.admin, s.address)))
	_, err = page.Goto("/tasks")
	must(m.t, err)
	_, err = page.Evaluate(`(epoch) => {
		window.late = [];
		const seen = new Set();
		new MutationObserver(() => {
			const now = Date.now();
			for (const found of document.querySelector("#tasks").textContent.matchAll(/1,\d{3},\d{3},\d{3}/g)) {
				if (!seen.has(found[0])) { seen.add(found[0]); window.late.push(now - epoch - (Number(found[0].replaceAll(",", "")) - 1e9)); }
			}
		}).observe(document.body, {subtree: true, childList: true, characterData: true});
	}`, int(markEpoch.UnixMilli())) // playwright passes an int64 as undefined
	must(m.t, err)

	var writing sync.WaitGroup
	tick := time.NewTicker(time.Second / changesPerSecond)
	defer tick.Stop()
	began, wrote := time.Now(), 0
	for i := 0; time.Since(began) < changesDuration; i++ {
		<-tick.C
		wrote++
		writing.Go(func() { m.change(i) })
	}
	writing.Wait()
	time.Sleep(2 * time.Second)
	if now := m.watches(); now > before+1 { // one more is the watch of this test
		m.t.Errorf("watches of Workloads with %d pages: got %d, want at most %d", streamCount+1, now, before+1)
	}
	times, err := page.Evaluate(`() => window.late`)
	must(m.t, err)
	stop()
	streams.Wait()
	var shown []time.Duration
	for _, late := range times.([]any) {
		shown = append(shown, time.Duration(toInt(late))*time.Millisecond)
	}
	m.t.Logf("%d changes in %s: %d seen by the watch, %d streamed, %d shown", wrote, time.Since(began).Round(time.Second), len(watched), len(streamed), len(shown))
	consoles.Figures(m.t, "tasks_change_to_watch", watched)
	consoles.Figures(m.t, "tasks_change_to_stream", streamed)
	consoles.Figures(m.t, "tasks_change_to_dom", shown)
}

// change writes a mark to the i-th task of the first page.
func (m *many) change(i int) {
	w := m.live[i%len(m.live)]
	body := fmt.Sprintf(`{"status":{"schedulingStats":{"evictions":[{"reason":"Preempted","underlyingCause":"","count":%d}]}}}`, markBase+time.Since(markEpoch).Milliseconds())
	if err := m.client.Status().Patch(m.t.Context(), &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace}}, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		m.t.Error(err)
	}
}

// watches returns the number of watches of Workloads that the API server serves.
func (m *many) watches() int {
	out := clustertest.Get(m.t).Kubectl(m.t, "", "get", "--raw", "/metrics")
	n := 0
	for _, found := range regexp.MustCompile(`(?m)^apiserver_longrunning_requests\{.*resource="workloads".*verb="WATCH".*\} (\d+)$`).FindAllStringSubmatch(out, -1) {
		count, err := strconv.Atoi(found[1])
		must(m.t, err)
		n += count
	}
	if n == 0 {
		m.t.Error("metrics of the API server: got no watch of Workloads, want at least 1")
	}
	return n
}

// deletions deletes ten thousand tasks at once, and measures the time until the list has
// the right count.
func (m *many) deletions(s manyServer) {
	deletions := 10_000
	last := 100 + deletions*m.teams/m.tasks
	var deleting sync.WaitGroup
	began := time.Now()
	for worker := range 8 {
		deleting.Go(func() {
			for i := 100 + worker; i < last; i += 8 { // these teams have no task on the first page
				if err := m.client.DeleteAllOf(m.t.Context(), &kueue.Workload{}, client.InNamespace(fmt.Sprintf("hyperpod-ns-%s-%d", m.prefix, i))); err != nil {
					m.t.Error(err)
				}
			}
		})
	}
	deleting.Wait()
	deleted := time.Now()
	counts := regexp.MustCompile(`class="count">([\d,]+)<`) // of active and of finished tasks
	clustertest.Eventually(m.t, time.Minute, func(context.Context) error {
		sum := 0
		_, body := fetch(m.t, s.admin, s.address+"/tasks")
		for _, found := range counts.FindAllStringSubmatch(body, -1) {
			n, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
			must(m.t, err)
			sum += n
		}
		if want := m.tasks - deletions; sum != want {
			return fmt.Errorf("list: got %d tasks, want %d", sum, want)
		}
		return nil
	})
	fmt.Printf("figure tasks_ten_thousand_deleted %.1f s\nfigure tasks_list_right_after_that %.1f s\n", deleted.Sub(began).Seconds(), time.Since(deleted).Seconds())
}

// marks returns the delay of each mark in text.
func marks(text string) (all []time.Duration) {
	for _, found := range mark.FindAllString(text, -1) {
		written, _ := strconv.ParseInt(strings.ReplaceAll(found, ",", ""), 10, 64)
		all = append(all, late(written))
	}
	return all
}

// stream reads the events of the list like an open page does, until ctx is done. It calls
// each once per mark, unless each is nil.
func (s manyServer) stream(ctx context.Context, each func(line string)) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/tasks/events", nil)
	if err != nil {
		return
	}
	request.Header.Set("X-Requested-With", "fetch")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := s.admin.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if each == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		return
	}
	seen := map[string]bool{}
	reader := bufio.NewReaderSize(response.Body, 1<<20)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		for _, found := range mark.FindAllString(line, -1) {
			if !seen[found] {
				seen[found] = true
				each(found)
			}
		}
	}
}

// watch calls each with the delay of every mark that a watch of the API server delivers.
func (m *many) watch(ctx context.Context, each func(late time.Duration)) {
	events, err := m.client.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(m.live[0].Namespace))
	must(m.t, err)
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if w, ok := event.Object.(*kueue.Workload); ok {
				if stats := w.Status.SchedulingStats; stats != nil && len(stats.Evictions) > 0 && stats.Evictions[0].Count > markBase {
					each(late(int64(stats.Evictions[0].Count)))
				}
			}
		}
	}()
}
