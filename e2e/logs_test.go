package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// logsInstanceType is the instance type of the node of TestLogs.
const logsInstanceType = "ml.trn2.3xlarge"

// kubelet serves the log of a container to the API server, as the kubelet of a node
// does. KWOK's nodes have none.
type kubelet struct {
	mu      sync.Mutex
	content []byte // of the log
	flood   bool   // while it is followed, floodRate is written beside content
	flooded int    // bytes
	ended   bool   // the container
}

// floodRate is how fast a container writes, in bytes each floodTick.
const (
	floodRate = 100 << 10
	floodTick = 10 * time.Millisecond
)

// startKubelet serves a log until the test ends, as the kubelet of a node.
func startKubelet(t *testing.T, node string) *kubelet {
	t.Helper()
	k := &kubelet{}
	server := httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(server.CloseClientConnections)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: host}, {Type: corev1.NodeInternalIP, Address: host}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
	}})
	must(t, err)
	must(t, clustertest.Get(t).Client.Status().Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, status)))
	return k
}

func (k *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("previous") == "true" {
		fmt.Fprintln(w, "of the run before")
		return
	}
	block := []byte(strings.Repeat(strings.Repeat("0123456789 ", 9)+"\n", floodRate/100))
	tick := time.NewTicker(floodTick)
	defer tick.Stop()
	for sent := 0; ; {
		k.mu.Lock()
		next, flood, ended := k.content[sent:], k.flood, k.ended
		k.mu.Unlock()
		sent += len(next)
		if flood && r.URL.Query().Get("follow") == "true" {
			next = append(next[:len(next):len(next)], block...)
			k.set(func() { k.flooded += len(block) })
		}
		if _, err := w.Write(next); err != nil || r.URL.Query().Get("follow") != "true" || ended {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// set changes what the kubelet serves.
func (k *kubelet) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *kubelet) write(text string) {
	k.set(func() { k.content = append(k.content, text...) })
}

// longestPause returns the longest time, in milliseconds, for which the page does not
// run its event loop within a duration in milliseconds.
const longestPause = `async (duration) => {
	let longest = 0;
	for (let last = performance.now(), end = last + duration; last < end;) {
		await new Promise((done) => setTimeout(done));
		const now = performance.now();
		longest = Math.max(longest, now - last);
		last = now;
	}
	return longest;
}`

// logTask submits a task of one pod to a node of its own, and returns the path of its
// page, its namespace and the node.
func logTask(t *testing.T) (path, namespace, node string) {
	t.Helper()
	node = clustertest.Name("logs")
	clustertest.Get(t).Node(t, node, map[string]string{corev1.LabelInstanceTypeStable: logsInstanceType, corev1.LabelHostname: node}, clustertest.Resources(map[corev1.ResourceName]string{
		neuron: "1", "cpu": "11", "memory": "120Gi", "vpc.amazonaws.com/efa": "1", "pods": "10",
	}))
	team := makePoolTeam(t, logsInstanceType, "logs", "accelerators: 1")
	clustertest.Get(t).Apply(t, neuronJob(team, "talks", 1))
	namespace = "hyperpod-ns-" + team
	return "/tasks/" + namespace + "/job/talks", namespace, node
}

// logPod returns the running pod of a task, once its page links to the pod's log.
func logPod(t *testing.T, ada *http.Client, path, namespace string) (pod string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		pod, _ = clustertest.Get(t).TryKubectl("", "get", "pods", "-n", namespace, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}")
		if status, body := fetch(t, ada, console(t)+path); pod == "" || status != http.StatusOK || !strings.Contains(body, "Logs of "+pod) {
			return fmt.Errorf("pods %q, page with status %d, want a link to the log of a running pod", pod, status)
		}
		return nil
	})
	return pod
}

// TestLogs reads the log of a task in the browser: from the page of the task, live, while
// the container writes 10 MB/s, with a search, and until the pod is deleted. Others read
// nothing of it.
func TestLogs(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	path, namespace, node := logTask(t)
	ada := user(t, console(t), "ada")
	pod := logPod(t, ada, path, namespace)
	// A node without a kubelet.
	if status, body := fetch(t, ada, console(t)+path+"/logs"); status != http.StatusOK || !strings.Contains(body, "The API server cannot reach the kubelet of node "+node+", which has the log.") {
		t.Errorf("log of a node without a kubelet: got status %d, want 200 with a sentence: %s", status, body)
	}

	k := startKubelet(t, node)
	k.write("hello\nprogress 10%\rprogress 100%\n\x1b[31mred\x1b[0m <b>bold</b>\n" + strings.Repeat("long ", 2000) + "\n")
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, path)
	must(t, page.Locator("#task-actions").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Logs"}).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/logs\?pod=`+pod)))
	markLoaded(t, page)
	lines, note := page.Locator("#log-lines"), page.Locator("#log-note")
	must(t, expect.Locator(lines).ToContainText("hello"))
	must(t, expect.Locator(lines).ToContainText("red <b>bold</b>"))
	must(t, expect.Locator(lines).ToContainText("The line is cut here."))
	must(t, expect.Locator(lines).Not().ToContainText("progress 10%"))
	must(t, expect.Locator(note).ToBeEmpty())
	k.write("the next line\n")
	must(t, expect.Locator(lines.Locator(".log-line").Last()).ToHaveText("the next line"))
	checkAppearance(t, page, "logs")

	k.set(func() { k.flood = true })
	must(t, expect.Locator(lines.Locator(".log-skipped").First()).ToContainText("lines skipped"))
	if clustertest.Verify { // otherwise the machine is busy with other tests
		pause, err := page.Evaluate(longestPause, 3000)
		must(t, err)
		t.Logf("while 10 MB/s are written: longest pause of the page %.0f ms", number(t, pause))
		if got := number(t, pause); got > 250 {
			t.Errorf("while 10 MB/s are written: got a pause of %.0f ms, want at most 250 ms", got)
		}
	}
	k.set(func() { k.flood = false })
	count, err := lines.Evaluate("(e) => e.childElementCount", nil)
	must(t, err)
	if got := number(t, count); got > 2000 {
		t.Errorf("got %.0f lines on the page, want at most 2000", got)
	}
	k.write("after the flood\n")
	must(t, expect.Locator(lines.Locator(".log-line").Last()).ToHaveText("after the flood"))
	end, err := lines.Evaluate("(e) => e.scrollHeight - e.scrollTop - e.clientHeight", nil)
	must(t, err)
	if got := number(t, end); got > 8 {
		t.Errorf("the page is %.0f px above the end of the log, want it at the end", got)
	}
	notReloaded(t, page)

	must(t, page.Locator("#q").Fill("FLOOD"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Show"}).Click())
	must(t, expect.Locator(lines.Locator(".log-line")).ToHaveCount(1))
	must(t, expect.Locator(lines).ToContainText("after the flood"))
	k.write("another flood\nsomething else\n")
	must(t, expect.Locator(lines.Locator(".log-line")).ToHaveCount(2))

	testLogFiles(t, k, path, pod)

	// The pod is deleted with its task.
	markLoaded(t, page)
	c.Kubectl(t, "", "delete", "job", "talks", "--cascade=foreground", "-n", namespace)
	k.write("last flood\n")
	k.set(func() { k.ended = true })
	must(t, expect.Locator(note).ToHaveText("The pod was deleted. These are its last lines."))
	must(t, expect.Locator(lines.Locator(".log-line").Last()).ToHaveText("last flood"))
	notReloaded(t, page)
	screenshot(t, page, "logs-deleted")
}

// testLogFiles checks who can download a log: nobody but a member. TestTeamsAreIsolated
// checks members of other teams.
func testLogFiles(t *testing.T, k *kubelet, path, pod string) {
	t.Helper()
	download := console(t) + path + "/logs/download?pod=" + pod
	k.mu.Lock()
	content := bytes.Clone(k.content)
	k.mu.Unlock()
	if status, body := fetch(t, user(t, console(t), "ada"), download); status != http.StatusOK || body != string(content) {
		t.Errorf("download by a member: got status %d and %d bytes, want the %d of the log as they are", status, len(body), len(content))
	}
	if status, body := fetch(t, user(t, console(t), "ada"), download+"&previous=true"); status != http.StatusOK || body != "of the run before\n" {
		t.Errorf("download of the previous run: got status %d and %q", status, body)
	}
	for name, want := range map[string]int{"nobody": http.StatusForbidden, "admin": http.StatusForbidden} {
		for _, address := range []string{download, console(t) + path + "/logs?pod=" + pod} {
			status, body := fetch(t, user(t, console(t), name), address)
			if strings.Contains(body, "hello") || strings.Contains(body, "after the flood") {
				t.Errorf("%s as %s: got the log", address, name)
			}
			if address == download && status != want {
				t.Errorf("%s as %s: got status %d, want %d", address, name, status, want)
			}
		}
	}
	if _, body := fetch(t, user(t, console(t), "admin"), console(t)+path+"/logs"); !strings.Contains(body, "You need the right to get pods/log in this namespace.") {
		t.Errorf("page of an admin: got no sentence about the permission: %s", body)
	}
}

// number returns a number that a page returned.
func number(t *testing.T, value any) float64 {
	t.Helper()
	switch n := value.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	t.Fatalf("got %v (%T), want a number", value, value)
	return 0
}
