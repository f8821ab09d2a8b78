package teams_test

import (
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestSharesOnTheTeamPage(t *testing.T) {
	d := &handlerstest.Backend{Teams: []string{"vision"}, CapacityBackend: handlerstest.CapacityBackend{Snapshot: handlerstest.SmallCluster()}, Dashboard: "https://grafana.example.com/d/abc?var-team={team}"}
	own := queries.QueueShare{Queue: "vision-localqueue", Weight: 1, Pending: 1200}
	address := handlerstest.Serve(t, d) + "/teams/vision"
	d.QueueShares = []queries.QueueShare{own}
	if _, page := handlerstest.Get(t, address); page.Find("#team-inside").Length() != 0 {
		t.Error("a team without shares has a table of them")
	}
	d.QueueShares = []queries.QueueShare{{Name: "research", Queue: "vision-share-research", Weight: 3}, own}
	_, page := handlerstest.Get(t, address)
	if page.Find(`.page-head a[href="https://grafana.example.com/d/abc?var-team=vision"]`).Length() != 1 {
		t.Error("no link to the dashboard of the team")
	}
	if text := handlerstest.Text(page.Find("#team-inside")); !strings.Contains(text, "Kueue does not count usage now") || !strings.Contains(text, "research vision-share-research 3 – – 75 % 0 0") {
		t.Errorf("before usage counts, the table is %q", text)
	}
	d.QueueShares[0].SampledAt = handlerstest.Noon.Add(-2 * time.Minute)
	d.QueueShares[0].Usage, d.QueueShares[0].Admitted = 4.25, 5
	d.QueueShares[0].Consumed = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4.25"), "memory": resource.MustParse("3Gi")}
	_, page = handlerstest.Get(t, address)
	htmlcheck.Page(t, page)
	text := handlerstest.Text(page.Find("#team-inside"))
	for _, want := range []string{"usage as of", "research vision-share-research 3 4.2 GPUs, 3.0 GiB 100 % 75 % 5 0", "The team's queue vision-localqueue 1 – 0 % 25 % 0 1,200"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table is %q, want %q", text, want)
		}
	}
}
