package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestTasksDuringOutage checks that pages show the last known tasks and report the
// outage while the API server is stopped, and that they update afterwards. make verify
// stops it for a minute.
func TestTasksDuringOutage(t *testing.T) {
	c := clustertest.Get(t)
	console(t)
	team := makePoolTeam(t, trainium, "outage-tasks", "accelerators: 0, vCPU: 1")
	c.Kubectl(t, neuronJob(team, "lasting-job", 200), "create", "-f", "-")
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 503")
	list, task := "/tasks?team="+team, "/tasks/hyperpod-ns-"+team+"/job/lasting-job"
	open(t, page, list)
	rows := page.Locator("#tasks-table tbody tr")
	must(t, expect.Locator(rows).ToHaveCount(1))
	markLoaded(t, page)
	status := page.Locator("#cluster-status")

	c.Without(t, func() {
		must(t, expect.Locator(status).ToContainText("does not answer"))
		if os.Getenv("KUOTA_VERIFY") != "" {
			time.Sleep(time.Minute)
		}
		must(t, expect.Locator(rows).ToHaveCount(1))
		for _, path := range []string{list, task, "/tasks.csv?team=" + team} {
			if code, body := fetch(t, user(t, console(t), "admin"), console(t)+path); code != http.StatusOK && code != http.StatusServiceUnavailable || code == http.StatusOK && !strings.Contains(body, "lasting-job") {
				t.Errorf("%s: got status %d, want 503, or 200 with the task", path, code)
			}
		}
	})
	c.Kubectl(t, neuronJob(team, "created", 200), "create", "-f", "-")
	must(t, expect.Locator(rows).ToHaveCount(2))
	must(t, expect.Locator(status).Not().ToContainText("does not answer"))
	notReloaded(t, page)
}
