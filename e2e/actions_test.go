package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestTaskActions stops, resumes, reprioritizes and deletes a task as a team member,
// with and without JavaScript.
func TestTaskActions(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := makeTeam(t, "actions", 2)
	c.Apply(t, memberBinding(team, "vision-team"))
	c.Apply(t, fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "%s-urgent"}, "value": 99}`, team))
	t.Cleanup(func() { _, _ = c.TryKubectl("", "delete", "workloadpriorityclass", team+"-urgent", "--wait=false") })
	for name, javaScript := range map[string]bool{"with JavaScript": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			ada := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(javaScript)}, "422")
			must(t, ada.Context().AddCookies(cookiesOf(t, user(t, console(t), "ada"), console(t))))
			testTaskActions(t, ada, team, javaScript)
		})
	}
}

func testTaskActions(t *testing.T, page playwright.Page, team string, javaScript bool) {
	c := clustertest.Get(t)
	running, pending := clustertest.Name("running"), clustertest.Name("pending")
	pagePath := func(task string) string { return "/tasks/hyperpod-ns-" + team + "/job/" + task }
	// contains waits until the element matches want. Without JavaScript the page does not
	// update, and contains reloads it.
	contains := func(element playwright.Locator, want string) {
		t.Helper()
		if javaScript {
			must(t, expect.Locator(element).ToContainText(regexp.MustCompile(want)))
			return
		}
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
			if _, err := page.Reload(); err != nil {
				return err
			}
			text, err := element.TextContent()
			if err == nil && !regexp.MustCompile(want).MatchString(text) {
				err = fmt.Errorf("got %q, want it to match %q", text, want)
			}
			return err
		})
	}
	state := func(want string) {
		t.Helper()
		contains(page.Locator("#task .tag").First(), want)
	}
	press := func(name string) {
		t.Helper()
		must(t, page.Locator("#task-actions").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: name, Exact: playwright.Bool(true)}).Click())
		must(t, expect.Locator(page.Locator("#action-form")).ToBeVisible())
	}
	effectIs := func(want string) {
		t.Helper()
		must(t, expect.Locator(page.Locator("#action-effect")).ToContainText(want))
	}

	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "job", running, pending, "-n", "hyperpod-ns-"+team, "--ignore-not-found", "--wait=false")
	})
	c.Apply(t, jobManifest(team, running, 2))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member
		if status, _ := fetch(t, user(t, console(t), "ada"), console(t)+pagePath(running)); status != http.StatusOK {
			return fmt.Errorf("page of the task: got status %d, want 200", status)
		}
		return nil
	})
	open(t, page, pagePath(running))
	state("Running")
	c.Apply(t, jobManifest(team, pending, 2))

	press("Stop")
	effectIs("loses its 2 GPUs")
	if javaScript {
		accessible(t, page, "stop")
	}
	must(t, button(page, "Stop").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`\?done=stop$`)))
	must(t, expect.Locator(page.Locator(".notice")).ToContainText(regexp.MustCompile(`^\s*(Stopped|Stop requested)\.`)))
	state("Stopped")
	must(t, expect.Locator(page.Locator(".notice")).ToContainText("Stopped. Its quota is free for other tasks."))

	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // Kueue accepts a changed priority class only on a suspended job
		if out, err := c.TryKubectl("", "get", "job", running, "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.spec.suspend}"); err != nil || out != "true" {
			return fmt.Errorf("suspend of the job: got %q and error %w, want true", out, err)
		}
		return nil
	})
	press("Change class")
	first := page.Locator("#action-form input[name=choice]").First() // of the policy, if a policy exists
	class, err := first.GetAttribute("value")
	must(t, err)
	must(t, first.Check())
	if javaScript {
		accessible(t, page, "class")
	}
	must(t, button(page, "Change class").Click())
	contains(page.Locator("#task"), strings.TrimSuffix(class, "-priority"))

	press("Resume")
	effectIs("joins its queue")
	must(t, button(page, "Resume").Click())
	state("Pending|Running") // either can be observed first

	press("Delete")
	must(t, button(page, "Delete "+running).Click())
	must(t, expect.Locator(page.Locator("#confirm-error")).ToContainText("Type "+running+" exactly."))
	must(t, page.Locator("#confirm").Fill(running))
	must(t, button(page, "Delete "+running).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/tasks\?deleted=task$`)))
	must(t, expect.Locator(page.Locator(".notice")).ToContainText("Task deleted."))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if out, err := c.TryKubectl("", "get", "job", running, "-n", "hyperpod-ns-"+team, "--ignore-not-found", "-o", "name"); err != nil || out != "" {
			return fmt.Errorf("get the deleted job: got %q and error %v, want neither", out, err)
		}
		return nil
	})
}
