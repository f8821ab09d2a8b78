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

// While the API server is away, tasks are shown as they were, and the page says
// that they are; afterwards it catches up by itself. make verify has it away for a
// minute.
func TestTasksWithoutTheCluster(t *testing.T) {
	c := clustertest.Get(t)
	console(t)
	team := shop(t, trainium, "away", "accelerators: 0, vCPU: 1")
	c.Kubectl(t, neuronJob(team, "stays", 200), "create", "-f", "-")
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 503")
	list, task := "/tasks?team="+team, "/tasks/hyperpod-ns-"+team+"/job/stays"
	open(t, page, list)
	rows := page.Locator("#tasks-table tbody tr")
	must(t, see.Locator(rows).ToHaveCount(1))
	leaveMark(t, page)
	status := page.Locator("#cluster-status")

	c.Without(t, func() {
		must(t, see.Locator(status).ToContainText("does not answer"))
		if os.Getenv("KUOTA_VERIFY") != "" {
			time.Sleep(time.Minute)
		}
		must(t, see.Locator(rows).ToHaveCount(1))
		for _, path := range []string{list, task, "/tasks.csv?team=" + team} {
			if code, body := fetch(t, person(t, console(t), "admin"), console(t)+path); code != http.StatusOK && code != http.StatusServiceUnavailable || code == http.StatusOK && !strings.Contains(body, "stays") {
				t.Errorf("%s answers %d", path, code)
			}
		}
	})
	c.Kubectl(t, neuronJob(team, "comes", 200), "create", "-f", "-")
	must(t, see.Locator(rows).ToHaveCount(2))
	must(t, see.Locator(status).Not().ToContainText("does not answer"))
	neverLoaded(t, page)
}
