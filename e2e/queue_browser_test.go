package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestQueuePage watches the tasks of two teams that wait on the page "Next to start":
// the order and the reasons, a task that joins and one that leaves without a reload,
// filters, and the same rows in both files.
func TestQueuePage(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	const instanceType = "ml.trn1.queue"
	trainiumNode(t, instanceType)
	first, second := makePoolTeam(t, instanceType, "queue-a", "accelerators: 8"), makePoolTeam(t, instanceType, "queue-b", "accelerators: 8")
	for _, team := range []string{first, second} {
		c.Apply(t, neuronJob(team, "holder", 8))
		runsSoon(t, team, "holder")
	}
	c.Apply(t, neuronJob(first, "early", 8))
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	ada := user(t, console(t), "ada")
	filter := "?team=" + first + "&team=" + second
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if status, body := fetch(t, ada, console(t)+"/queue"+filter); status != http.StatusOK || !strings.Contains(body, first) {
			return fmt.Errorf("queue: got status %d, want 200 with %s", status, first)
		}
		return nil
	})
	open(t, page, "/queue"+filter)
	rows := page.Locator("#upcoming-table tbody tr")
	must(t, expect.Locator(rows).ToHaveCount(1))
	must(t, expect.Locator(rows.First()).ToContainText("8 Neuron devices short."))
	markLoaded(t, page)

	c.Apply(t, neuronJob(second, "late", 8))
	must(t, expect.Locator(rows).ToHaveCount(2))
	must(t, expect.Locator(rows.Nth(0)).ToContainText("early"))
	must(t, expect.Locator(rows.Nth(1)).ToContainText("late"))
	must(t, expect.Locator(rows.Nth(1)).ToContainText("1st"))
	must(t, expect.Locator(page.Locator("#upcoming-list")).ToContainText("Waiting tasks"))
	must(t, page.Locator("#upcoming-list summary").Click())
	checkAppearance(t, page, "queue")

	testQueueFiles(t, ada, filter, rows)

	c.Kubectl(t, "", "delete", "job", "early", "-n", "hyperpod-ns-"+first)
	must(t, expect.Locator(rows).ToHaveCount(1))
	notReloaded(t, page)
	must(t, rows.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "late"}).Click())
	must(t, expect.Locator(page.Locator(".task-lead")).ToContainText("Pending"))

	open(t, page, "/queue?class=no-such-class")
	must(t, expect.Locator(page.Locator("#upcoming")).ToContainText("No matching tasks"))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Show all"}).First().Click())
	must(t, expect.Locator(rows.First()).ToBeVisible()) // the tasks of other tests can fill the page
	must(t, expect.Locator(page.Locator("#upcoming")).Not().ToContainText("No matching tasks"))
	must(t, expect.Locator(page.Locator("nav [aria-current]")).ToHaveText("Tasks"))
}

// runsSoon waits until Kueue admitted a Job.
func runsSoon(t *testing.T, team, job string) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if out := clustertest.Get(t).Kubectl(t, "", "get", "job", job, "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.spec.suspend}"); out != "false" {
			return fmt.Errorf("job %s of %s: got suspend %q, want false", job, team, out)
		}
		return nil
	})
}

// testQueueFiles checks that both files have the tasks and the reasons of the page.
func testQueueFiles(t *testing.T, client *http.Client, filter string, rows playwright.Locator) {
	t.Helper()
	names, err := rows.Locator("a.name").AllInnerTexts()
	must(t, err)
	reasons, err := rows.Locator(".reason").AllInnerTexts()
	must(t, err)
	_, text := fetch(t, client, console(t)+"/queue.json"+filter)
	var list struct {
		Tasks []struct{ Name, Reason string }
	}
	must(t, json.Unmarshal([]byte(text), &list))
	var jsonNames, jsonReasons []string
	for _, task := range list.Tasks {
		jsonNames, jsonReasons = append(jsonNames, task.Name), append(jsonReasons, task.Reason)
	}
	if !slices.Equal(names, jsonNames) || !slices.Equal(reasons, jsonReasons) {
		t.Errorf("queue.json: got %v with %v, want %v with %v as on the page", jsonNames, jsonReasons, names, reasons)
	}
	_, text = fetch(t, client, console(t)+"/queue.csv"+filter)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 1+len(names) {
		t.Fatalf("queue.csv: got %d lines, want a head and %d tasks: %s", len(lines), len(names), text)
	}
	for i, name := range names {
		if !strings.Contains(lines[i+1], ","+name+",") || !strings.HasSuffix(lines[i+1], ","+reasons[i]) {
			t.Errorf("queue.csv: got %s, want %s with %s", lines[i+1], name, reasons[i])
		}
	}
}
