package tasks_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const logsPath = "/tasks/team/job/train/logs"

// logsBackend has a task with two pods, of which the first was restarted.
func logsBackend() *handlerstest.Backend {
	pod := func(name string, status corev1.PodStatus) *index.Pod {
		return index.New(time.Now).PodOf(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{NodeName: "node-1", InitContainers: []corev1.Container{{Name: "prepare"}}, Containers: []corev1.Container{{Name: "main"}, {Name: "metrics"}}},
			Status:     status,
		})
	}
	pods := []*index.Pod{
		pod("train-0", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(time.Unix(1700000000, 0))}}}}}),
		pod("train-1", corev1.PodStatus{Phase: corev1.PodRunning}),
	}
	d := &handlerstest.Backend{Items: []queries.Item{{Task: &tasks.Task{UID: "1", Name: "train", Namespace: "team", Kind: "Job", State: tasks.Running, Submitted: time.UnixMilli(1000)}, Team: "vision"}}}
	d.MoreDetail = func(detail *queries.Detail) { detail.Pods = pods }
	d.LogsBackend.PodList = pods
	d.LogsBackend.Lines = logs.Update{Reset: true, Batch: logs.Batch{Skipped: 3, Lines: []logs.Line{{At: "2026-01-02T03:04:05Z", Text: "<b>step</b>  1"}, {Text: "end", Cut: true}}}}
	return d
}

// The page of a task shows why containers failed, and links the logs of its pods.
func TestPodsOfATask(t *testing.T) {
	d := logsBackend()
	d.ExternalLogs = "https://logs.example.com/{namespace}/{task}?pod={pod}&from={from}"
	d.Dashboard = "https://grafana.example.com/d/abc?var-namespace={namespace}&var-task={task}&var-node={node}"
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/tasks/team/job/train")
	htmlcheck.Page(t, page)
	if got := page.Find(".page-head .tools a").AttrOr("href", ""); got != "https://grafana.example.com/d/abc?var-namespace=team&var-task=train&var-node=" {
		t.Errorf("the dashboard is at %q", got)
	}
	text := handlerstest.Text(page.Find("#pods-table tbody tr").First())
	for _, want := range []string{"2 restarts", "Container main needed more memory than it may use, and was killed (OOMKilled)."} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
	for pod, want := range map[string]string{"train-0": logsPath + "?pod=train-0", "train-1": logsPath + "?pod=train-1"} {
		if got := page.Find(`#pods-table a[aria-label="Logs of `+pod+`"]`).AttrOr("href", ""); got != want {
			t.Errorf("logs of %s: got %q, want %q", pod, got, want)
		}
	}
	external := page.Find("#task-pods .section-note a")
	if got, want := external.AttrOr("href", ""), "https://logs.example.com/team/train?pod=train&from=1000"; got != want || external.Text() != "Logs in logs.example.com" {
		t.Errorf("external logs: got %q to %q, want %q", external.Text(), got, want)
	}
}

// A page links neither a log that its reader may not read, nor a log system that there
// is not.
func TestPodsWithoutLogs(t *testing.T) {
	d := logsBackend()
	d.LogsBackend.Denied = true
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks/team/job/train")
	if page.Find("#task-pods a").Length() > 0 {
		t.Errorf("got links %s, want none", page.Find("#task-pods a").Text())
	}
	const want = "You cannot read these logs. You need the right to get pods/log in this namespace."
	if got := handlerstest.Text(page.Find("#task-pods .section-note")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, page = handlerstest.Get(t, address+logsPath)
	htmlcheck.Page(t, page)
	if got := page.Find("#log-note").Text(); got != want || page.Find("#log a, form.filters, .log-line").Length() > 0 || page.Find("body").AttrOr("data-stream", "") != "/events" {
		t.Errorf("got note %q, want only %q", got, want)
	}
}

// A task without pods still links the external log system.
func TestTaskWithoutPods(t *testing.T) {
	d := logsBackend()
	d.MoreDetail, d.ExternalLogs, d.LogsBackend.PodList = nil, "https://logs.example.com/{task}", nil
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/tasks/team/job/train")
	htmlcheck.Page(t, page)
	if got := page.Find("#task-pods a").AttrOr("href", ""); got != "https://logs.example.com/train" {
		t.Errorf("got %q, want the external logs", got)
	}
	_, page = handlerstest.Get(t, address+logsPath)
	htmlcheck.Page(t, page)
	if got, want := page.Find("#log-note").Text(), "The task has no pods now, so there is no log."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := page.Find("#log a").AttrOr("href", ""); got != "https://logs.example.com/train" {
		t.Errorf("got %q, want the external logs", got)
	}
}

func TestLogsPage(t *testing.T) {
	d := logsBackend()
	_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+logsPath+"?uid=1&pod=train-0&container=prepare&timestamps=true&q=a%26b")
	htmlcheck.Page(t, page)
	want := logs.Query{Task: tasks.Address{Namespace: "team", Kind: "job", Name: "train", UID: "1"}, Pod: "train-0", Container: "prepare", Timestamps: true, Contains: "a&b"}
	if diff := cmp.Diff(want, d.LogsBackend.Query); diff != "" {
		t.Errorf("query (-want +got)\n%s", diff)
	}
	var lines []string
	page.Find("#log-lines > div").Each(func(i int, _ *goquery.Selection) {
		lines = append(lines, handlerstest.Text(page.Find("#log-lines > div").Eq(i)))
	})
	if diff := cmp.Diff([]string{"3 lines skipped", "2026-01-02T03:04:05Z <b>step</b> 1", "end The line is cut here. The download has all of it."}, lines); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
	if got := page.Find("#log-lines code").First().Text(); got != "<b>step</b>  1" {
		t.Errorf("got line %q, want its spaces", got)
	}
	const parameters = "?container=prepare&pod=train-0&q=a%26b&timestamps=true&uid=1"
	if got := page.Find("body").AttrOr("data-stream", ""); got != logsPath+"/events"+parameters {
		t.Errorf("got stream %s", got)
	}
	if got := page.Find("#log a[download]").AttrOr("href", ""); got != logsPath+"/download"+parameters {
		t.Errorf("got download %s", got)
	}
	form := handlerstest.ValuesIn(page, "form.filters")
	if got := form.Encode(); got != "container=prepare&pod=train-0&q=a%26b&timestamps=true&uid=1" {
		t.Errorf("got form %s", got)
	}
	var containers []string
	page.Find("#container option").Each(func(i int, _ *goquery.Selection) {
		containers = append(containers, page.Find("#container option").Eq(i).Text())
	})
	if !slices.Equal(containers, []string{"main", "metrics", "prepare (init)"}) {
		t.Errorf("got containers %v", containers)
	}
}

// Without a pod in the address, the page shows the first one; a log that ended long ago
// is not followed; a log that cannot be read is a sentence.
func TestLogsPageVariants(t *testing.T) {
	d := logsBackend()
	address := handlerstest.Serve(t, d) + logsPath
	_, page := handlerstest.Get(t, address)
	if q := d.LogsBackend.Query; q.Pod != "train-0" || q.Container != "main" {
		t.Errorf("got %+v, want the first container of the first pod", q)
	}
	if got := page.Find("#log h2").Text(); got != "Log of main" {
		t.Errorf("got heading %q", got)
	}
	_, page = handlerstest.Get(t, address+"?previous=true")
	if got := page.Find("body").AttrOr("data-stream", ""); got != "/events" {
		t.Errorf("previous run: got stream %s, want none of the log", got)
	}
	d.LogsBackend.Lines, d.LogsBackend.ReadErr = logs.Update{}, &governance.Error{Kind: governance.Unavailable, Message: "The kubelet does not answer."}
	response, page := handlerstest.Get(t, address+"?pod=gone")
	htmlcheck.Page(t, page)
	if got := page.Find("#log-note").Text(); response.StatusCode != http.StatusOK || got != "The kubelet does not answer." {
		t.Errorf("got %s with note %q", response.Status, got)
	}
	if got := page.Find("body").AttrOr("data-stream", ""); got != logsPath+"/events?pod=gone" {
		t.Errorf("got stream %s, want one that tries again", got)
	}
	d.LogsBackend.PodsErr = &governance.Error{Kind: governance.NotFound, Message: "There is no such task."}
	for _, path := range []string{"", "/events"} {
		if response, _ := handlerstest.Get(t, address+path); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s of an unknown task: got %s, want 404", path, response.Status)
		}
	}
}

// The stream replaces the lines first and then appends, and its reader ends with it.
func TestLogsStream(t *testing.T) {
	d := logsBackend()
	d.LogsBackend.Released = make(chan struct{})
	d.LogsBackend.Updates = []logs.Update{
		{Reset: true, Batch: logs.Batch{Lines: []logs.Line{{Text: "first"}}}},
		{Batch: logs.Batch{Skipped: 1, Lines: []logs.Line{{Text: "second"}}}},
		{Note: "The pod was deleted."},
		{Note: "No permission.", Clear: true},
	}
	var fragments []string
	handlerstest.EventsUntil(t, handlerstest.Serve(t, d)+logsPath+"/events?pod=train-0", func(html string) bool {
		if strings.Contains(html, "log-note") {
			fragments = append(fragments, html)
		}
		return len(fragments) == len(d.LogsBackend.Updates)
	})
	for i, want := range []struct {
		lines  int // -1: the lines are not sent
		append bool
		note   string
	}{{lines: 1}, {lines: 1, append: true}, {lines: -1, note: "The pod was deleted."}, {lines: 0, note: "No permission."}} {
		part := htmlcheck.Parse(t, "<body>"+fragments[i]+"</body>")
		lines := part.Find("#log-lines")
		if _, appends := lines.Attr("data-append"); lines.Length() != min(want.lines+1, 1) || lines.Find(".log-line").Length() != max(want.lines, 0) || appends != want.append || part.Find("#log-note").Text() != want.note {
			t.Errorf("update %d: got %s, want %+v", i, fragments[i], want)
		}
	}
	select {
	case <-d.LogsBackend.Released:
	case <-time.After(time.Minute):
		t.Error("the log is followed after the browser disconnected")
	}
}

func TestLogsDownload(t *testing.T) {
	d := logsBackend()
	d.LogsBackend.Content = "\x1b[1ma\x00\n"
	response, err := http.Get(handlerstest.Serve(t, d) + logsPath + "/download?pod=train-0&container=main&previous=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || string(text) != d.LogsBackend.Content {
		t.Errorf("got %q, %v, want the log as it is", text, err)
	}
	if got := response.Header.Get("Content-Disposition"); got != "attachment; filename=train-0-main.log" || response.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %s of type %s", got, response.Header.Get("Content-Type"))
	}
	if q := d.LogsBackend.Query; q.Pod != "train-0" || q.Container != "main" || !q.Previous {
		t.Errorf("got %+v", q)
	}
}
