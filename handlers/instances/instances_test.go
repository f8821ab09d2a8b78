package instances_test

import (
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func TestInstances(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}, Dashboard: "https://grafana.example.com/d/abc?var-node={node}"}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/instances")
	htmlcheck.Page(t, page)
	for selector, wants := range map[string][]string{
		"#pools .note":                                   {"2 nodes: 1 ready, 1 pending recovery"},
		"#pool-figures tbody tr:nth-child(1)":            {handlerstest.H100, "H100 · 80 GB", "1 ready", "1 pending recovery", "GPUs", "16 6 2 1 4 3 18 over capacity by 2 9 3"},
		"#pool-figures tbody tr:nth-child(2)":            {"vCPU", "384 0 0 0 0 0 192 0 0"},
		"#nodes-table tbody tr:nth-child(1)":             {"gpu-1 Ready", "8 5 2", "120 of 192", "1,280 of 2,048", "vision, other teams", "GPUs 8 physical, 8 allocatable: 5 bound, 1 outside Kueue, 2 free", "2 d 01 h"},
		"#nodes-table > table > tbody > tr:nth-child(2)": {"gpu-2 Pending recovery KubeletNotReady <b> since", "none"},
	} {
		text := handlerstest.Text(page.Find(selector))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", selector, want, text)
			}
		}
	}
	if idle := page.Find("#pool-figures tbody .meter-idle"); idle.Length() != 2 || idle.First().AttrOr("width", "") != "16.67%" {
		t.Errorf("idle is drawn as %v", idle.Nodes)
	}
	if got := page.Find("#node-gpu-1-more a.btn").AttrOr("href", ""); got != "https://grafana.example.com/d/abc?var-node=gpu-1" {
		t.Errorf("the dashboard of a node is at %q", got)
	}
	if page.Find("#pool-figures tbody tr").Length() != 2 || page.Find(`#nodes-table a[href="/teams/vision"]`).Length() != 1 {
		t.Error("the tables have other rows or links")
	}
}

func TestInstancesQuery(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	address := handlerstest.Serve(t, d)
	for query, want := range map[string]string{
		"": "gpu-1 gpu-2", "?sort=name&order=desc": "gpu-2 gpu-1", "?sort=free&order=desc": "gpu-1 gpu-2", "?sort=free": "gpu-2 gpu-1", "?sort=age": "gpu-2 gpu-1",
		"?state=Pending+recovery": "gpu-2", "?pool=x": "", "?q=VIS": "gpu-1", "?q=GPU-2": "gpu-2", "?sort=nonsense&page=9": "gpu-1 gpu-2",
	} {
		_, page := handlerstest.Get(t, address+"/instances"+query)
		htmlcheck.Page(t, page)
		if got := handlerstest.Text(page.Find("#nodes-table tbody .name")); strings.Join(strings.Fields(got), " ") != want && strings.ReplaceAll(got, "gpu", " gpu") != " "+strings.ReplaceAll(want, " ", " ") {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	if _, page := handlerstest.Get(t, address+"/instances?pool=x"); !strings.Contains(page.Find("#pools").Text(), "No matching pools") {
		t.Errorf("of a pool that does not exist, the page says %q", handlerstest.Text(page.Find("#pools")))
	}
	for range 150 {
		d.CapacityBackend.Snapshot.Nodes = append(d.CapacityBackend.Snapshot.Nodes, capacity.NodeSnapshot{Name: "n" + strings.Repeat("x", len(d.CapacityBackend.Snapshot.Nodes)), Pool: "cpu", State: capacity.Cordoned})
	}
	_, page := handlerstest.Get(t, address+"/instances?pool=cpu&page=2&sort=age&order=desc")
	htmlcheck.Page(t, page)
	if rows := page.Find("#nodes-table > table > tbody > tr").Length(); rows != 50 || !strings.Contains(handlerstest.Text(page.Find(".pager")), "101–150 of 150") {
		t.Errorf("page two has %d rows, %s", rows, handlerstest.Text(page.Find(".pager")))
	}
	if href := page.Find(`.pager [rel="prev"]`).AttrOr("href", ""); href != "/instances?order=desc&pool=cpu&sort=age" {
		t.Errorf("page one is %s", href)
	}
}

func TestInstancesCSV(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}}
	text := handlerstest.Download(t, handlerstest.Serve(t, d)+"/instances.csv?state=Ready")
	if !strings.Contains(text, "gpu-1,"+handlerstest.H100+","+handlerstest.H100+",Ready,") || !strings.Contains(text, `,nvidia.com/gpu,GPUs,8,8,5,1,2,"vision 3, other teams 2"`) || strings.Contains(text, "gpu-2") {
		t.Errorf("the file is %s", text)
	}
}

// The page is live, and reports why it cannot be shown.
func TestInstancesStream(t *testing.T) {
	d := &handlerstest.Backend{CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}, Changed: make(chan struct{}, 1)}
	address := handlerstest.Serve(t, d)
	wait := handlerstest.Events(t, address+"/instances/events?q=gpu-1")
	wait(`id="instances"`)
	wait(`id="cluster-status"`)
	d.CapacityBackend.Failure = &governance.Error{Kind: governance.Unavailable, Message: "The cluster has not answered yet."}
	if response, page := handlerstest.Get(t, address+"/instances"); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(page.Text(), "has not answered yet") {
		t.Errorf("answers %s", response.Status)
	}
}
