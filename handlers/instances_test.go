package handlers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/capacity"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/usage"
	"kuota.dev/kuota/views/htmlcheck"
)

const h100 = "ml.p5.48xlarge"

// aCluster has two nodes of one pool; what others hold there is not named.
func aCluster() capacity.Snapshot {
	size := func(n int64) quota.Resources {
		return quota.Resources{catalog.GPU: n, catalog.CPU: n * 24_000, catalog.Memory: n * 256 * catalog.GiB, catalog.Network: n * 4}
	}
	now := time.Now()
	cell := usage.PoolUsage{Physical: 16, OwnBound: 6, BorrowedBound: 2, Outside: 1, Unhealthy: 4, Idle: 3, Nominal: 18, Usage: 9, Unbound: 1, Borrowed: 2, LargestFree: 3}
	return capacity.Snapshot{
		At: now,
		Nodes: []capacity.NodeSnapshot{
			{Name: "gpu-1", Pool: h100, Type: h100, State: capacity.Ready, Created: now.Add(-49 * time.Hour), Physical: size(8), Allocatable: size(8), Bound: size(5), Outside: quota.Resources{catalog.GPU: 1}, Free: size(2), Pods: 7,
				Teams: map[string]quota.Resources{"vision": size(3), "": size(2)}},
			{Name: "gpu-2", Pool: h100, Type: h100, State: capacity.Recovering, Since: now.Add(-time.Hour), Message: "KubeletNotReady <b>", Created: now.Add(-time.Hour), Physical: size(8)},
		},
		Pools: []capacity.PoolSnapshot{{Name: h100, Types: []string{h100}, Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "H100", AcceleratorMemory: 80,
			Resources: []capacity.PoolResource{{Resource: catalog.GPU, PoolUsage: cell}, {Resource: catalog.CPU, PoolUsage: usage.PoolUsage{Physical: 384_000, Nominal: 192_000}}, {Resource: catalog.Network}}}},
		Teams: []capacity.TeamSnapshot{{Name: "vision", Namespace: "hyperpod-ns-vision", Running: 2, Waiting: 12, Resources: []capacity.TeamResource{
			{Flavor: h100, Resource: catalog.GPU, TeamUsage: usage.TeamUsage{Nominal: 15, Usage: 8, Own: 8, LentToCohort: 2, Unbound: 1}},
			{Flavor: h100, Resource: catalog.CPU, TeamUsage: usage.TeamUsage{Usage: 4_000, Borrowed: 4_000}},
		}}},
	}
}

func TestInstances(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: aCluster()}}
	address := serve(t, d)
	_, page := get(t, address+"/instances")
	htmlcheck.Page(t, page)
	for selector, wants := range map[string][]string{
		"#pools .note":                                   {"2 nodes: 1 ready, 1 pending recovery"},
		"#pool-figures tbody tr:nth-child(1)":            {h100, "H100 · 80 GB", "1 ready", "1 pending recovery", "GPUs", "16 6 2 1 4 3 18 oversubscribed by 2 9 3"},
		"#pool-figures tbody tr:nth-child(2)":            {"vCPU", "384 0 0 0 0 0 192 0 0"},
		"#nodes-table tbody tr:nth-child(1)":             {"gpu-1 Ready", "8 5 2", "120 of 192", "1,280 of 2,048", "vision, other teams", "GPUs 8 physical, 8 allocatable: 5 bound, 1 outside Kueue, 2 free", "2 d 01 h"},
		"#nodes-table > table > tbody > tr:nth-child(2)": {"gpu-2 Pending recovery KubeletNotReady <b> since", "none"},
	} {
		text := said(page.Find(selector))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: %s", selector, want, text)
			}
		}
	}
	if idle := page.Find("#pool-figures tbody .meter-idle"); idle.Length() != 2 || idle.First().AttrOr("width", "") != "16.67%" {
		t.Errorf("idle is drawn as %v", idle.Nodes)
	}
	if page.Find("#pool-figures tbody tr").Length() != 2 || page.Find(`#nodes-table a[href="/teams/vision"]`).Length() != 1 {
		t.Error("the tables have other rows or links")
	}
}

func TestInstancesQuery(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: aCluster()}}
	address := serve(t, d)
	for query, want := range map[string]string{
		"": "gpu-1 gpu-2", "?sort=name&order=desc": "gpu-2 gpu-1", "?sort=free&order=desc": "gpu-1 gpu-2", "?sort=free": "gpu-2 gpu-1", "?sort=age": "gpu-2 gpu-1",
		"?state=Pending+recovery": "gpu-2", "?pool=x": "", "?q=VIS": "gpu-1", "?q=GPU-2": "gpu-2", "?sort=nonsense&page=9": "gpu-1 gpu-2",
	} {
		_, page := get(t, address+"/instances"+query)
		htmlcheck.Page(t, page)
		if got := said(page.Find("#nodes-table tbody .name")); strings.Join(strings.Fields(got), " ") != want && strings.ReplaceAll(got, "gpu", " gpu") != " "+strings.ReplaceAll(want, " ", " ") {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	for range 150 {
		d.capacity.snapshot.Nodes = append(d.capacity.snapshot.Nodes, capacity.NodeSnapshot{Name: "n" + strings.Repeat("x", len(d.capacity.snapshot.Nodes)), Pool: "cpu", State: capacity.Cordoned})
	}
	_, page := get(t, address+"/instances?pool=cpu&page=2&sort=age&order=desc")
	htmlcheck.Page(t, page)
	if rows := page.Find("#nodes-table > table > tbody > tr").Length(); rows != 50 || !strings.Contains(said(page.Find(".pager")), "101–150 of 150") {
		t.Errorf("page two has %d rows, %s", rows, said(page.Find(".pager")))
	}
	if href := page.Find(`.pager [rel="prev"]`).AttrOr("href", ""); href != "/instances?order=desc&pool=cpu&sort=age" {
		t.Errorf("page one is %s", href)
	}
}

func TestInstancesCSV(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: aCluster()}}
	text := file(t, serve(t, d)+"/instances.csv?state=Ready")
	if !strings.Contains(text, "gpu-1,"+h100+","+h100+",Ready,") || !strings.Contains(text, `,nvidia.com/gpu,GPUs,8,8,5,1,2,"vision 3, other teams 2"`) || strings.Contains(text, "gpu-2") {
		t.Errorf("the file is %s", text)
	}
}

// The page is kept live, and says why it cannot be shown.
func TestInstancesStream(t *testing.T) {
	d := &domain{capacity: capacityDomain{snapshot: aCluster()}, changed: make(chan struct{}, 1)}
	address := serve(t, d)
	wait := events(t, address+"/instances/events?q=gpu-1")
	wait(`id="instances"`)
	wait(`id="cluster-status"`)
	d.capacity.failure = &governance.Error{Kind: governance.Unavailable, Message: "The cluster has not answered yet."}
	if response, page := get(t, address+"/instances"); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(page.Text(), "has not answered yet") {
		t.Errorf("answers %s", response.Status)
	}
}

// file is what an address answers with.
func file(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/csv") {
		t.Fatalf("%s answers %s: %s, %v", address, response.Status, text, err)
	}
	return string(text)
}
