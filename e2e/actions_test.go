package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// What a scientist does to tasks of their own: stop, have it go on, move it up,
// delete it. All of it works with and without JavaScript.
func TestActOnTasks(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeTeam(t, "acts", 2)
	c.Apply(t, memberBinding(team, "vision-team"))
	c.Apply(t, fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "%s-urgent"}, "value": 99}`, team))
	t.Cleanup(func() { _, _ = c.TryKubectl("", "delete", "workloadpriorityclass", team+"-urgent", "--wait=false") })
	for name, scripts := range map[string]bool{"with JavaScript": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			ada := visitAsNobody(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(scripts)}, "422")
			must(t, ada.Context().AddCookies(cookiesOf(t, person(t, console(t), "ada"), console(t))))
			actOnTasks(t, ada, team, scripts)
		})
	}
}

func actOnTasks(t *testing.T, page playwright.Page, team string, scripts bool) {
	c := clustertest.Get(t)
	runs, waits := clustertest.Name("runs"), clustertest.Name("waits")
	at := func(task string) string { return "/tasks/hyperpod-ns-" + team + "/job/" + task }
	// shows waits for a text, which comes by itself where the page is live.
	shows := func(where playwright.Locator, want string) {
		t.Helper()
		if scripts {
			must(t, see.Locator(where).ToContainText(regexp.MustCompile(want)))
			return
		}
		clustertest.Eventually(t, 20*time.Second, func(context.Context) error {
			if _, err := page.Reload(); err != nil {
				return err
			}
			text, err := where.TextContent()
			if err == nil && !regexp.MustCompile(want).MatchString(text) {
				err = fmt.Errorf("it says %s, want %s", text, want)
			}
			return err
		})
	}
	state := func(want string) {
		t.Helper()
		shows(page.Locator("#task .tag").First(), want)
	}
	press := func(name string) {
		t.Helper()
		must(t, page.Locator("#task-actions").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: name, Exact: playwright.Bool(true)}).Click())
		must(t, see.Locator(page.Locator("#action-form")).ToBeVisible())
	}
	says := func(want string) {
		t.Helper()
		must(t, see.Locator(page.Locator("#action-effect")).ToContainText(want))
	}

	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "job", runs, waits, "-n", "hyperpod-ns-"+team, "--ignore-not-found", "--wait=false")
	})
	c.Apply(t, jobManifest(team, runs, 2))
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error { // until RBAC lets the member in
		if status, _ := fetch(t, person(t, console(t), "ada"), console(t)+at(runs)); status != http.StatusOK {
			return fmt.Errorf("the task's page answers %d", status)
		}
		return nil
	})
	open(t, page, at(runs))
	state("Running")
	c.Apply(t, jobManifest(team, waits, 2))

	press("Stop")
	says("loses its 2 GPUs")
	if scripts {
		accessible(t, page, "stop")
	}
	must(t, button(page, "Stop").Click())
	must(t, see.Page(page).ToHaveURL(regexp.MustCompile(`\?done=stop$`)))
	must(t, see.Locator(page.Locator(".notice")).ToContainText(regexp.MustCompile(`^\s*(Stopped|Stop requested)\.`)))
	state("Stopped")
	must(t, see.Locator(page.Locator(".notice")).ToContainText("Stopped. Its quota is free for other tasks."))

	clustertest.Eventually(t, 20*time.Second, func(context.Context) error { // Kueue takes a class of a suspended job only
		if out, err := c.TryKubectl("", "get", "job", runs, "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.spec.suspend}"); err != nil || out != "true" {
			return fmt.Errorf("the job is suspended: %s, %w", out, err)
		}
		return nil
	})
	press("Change class")
	highest := page.Locator("#action-form input[name=choice]").First() // the policy's, where there is one
	class, err := highest.GetAttribute("value")
	must(t, err)
	must(t, highest.Check())
	if scripts {
		accessible(t, page, "class")
	}
	must(t, button(page, "Change class").Click())
	shows(page.Locator("#task"), strings.TrimSuffix(class, "-priority"))

	press("Resume")
	says("joins its queue")
	must(t, button(page, "Resume").Click())
	state("Pending|Running") // whichever comes first

	press("Delete")
	must(t, button(page, "Delete "+runs).Click())
	must(t, see.Locator(page.Locator("#confirm-error")).ToContainText("Type "+runs+" exactly."))
	must(t, page.Locator("#confirm").Fill(runs))
	must(t, button(page, "Delete "+runs).Click())
	must(t, see.Page(page).ToHaveURL(regexp.MustCompile(`/tasks\?deleted=task$`)))
	must(t, see.Locator(page.Locator(".notice")).ToContainText("Task deleted."))
	clustertest.Eventually(t, 20*time.Second, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "job", runs, "-n", "hyperpod-ns-"+team, "--ignore-not-found", "-o", "name"); err != nil || out != "" {
			return fmt.Errorf("there is still %s (%v)", out, err)
		}
		return nil
	})
}
