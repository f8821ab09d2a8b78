package e2e_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
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
	// It is not deleted: forms that tests beside this one have opened can have it selected.
	c.Apply(t, fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "%s-urgent"}, "value": 99}`, team))
	for name, javaScript := range map[string]bool{"with JavaScript": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			ada := visitSignedOut(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(javaScript)}, "422")
			must(t, ada.Context().AddCookies(cookiesOf(t, user(t, console(t), "ada"), console(t))))
			testTaskActions(t, ada, team, javaScript)
		})
	}
	checkActivity(t, team)
	checkPages(t, map[string]string{"activity": "/activity?team=" + team}, map[string]string{"activity": "#activity-table"})
}

// checkActivity checks that each action of testTaskActions is activity of ada once for
// each task, that ada sees it, and that a member of another team does not.
func checkActivity(t *testing.T, team string) {
	t.Helper()
	address := console(t) + "/activity.csv?team=" + team
	deleter := "" // unknown
	if receiver != nil {
		deleter = "kubernetes-admin"
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until the database has it
		status, body := fetch(t, user(t, console(t), "ada"), address)
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if status != http.StatusOK || err != nil {
			return fmt.Errorf("activity: status %d, %w", status, err)
		}
		times := map[string]int{}
		for _, row := range rows[1:] { // without the allocation: time, person, source, address, action, outcome, kind, namespace, name, uid, …
			if row[6] == "ComputeAllocation" {
				continue
			}
			times[strings.Join([]string{row[1], row[2], row[4], row[5], row[6], row[9]}, " ")]++
		}
		// Four actions of ada on each of two tasks, and what kubectl does to four.
		want := map[string]int{"ada@example.com console": 8, "kubernetes-admin outside submit": 4, deleter + " outside delete": 2}
		got := map[string]int{}
		for action, n := range times {
			if !strings.Contains(action, " succeeded Job ") || n != 1 {
				return fmt.Errorf("activity: got %d × %s, want once", n, action)
			}
			for start := range want {
				if strings.HasPrefix(action, start) {
					got[start]++
				}
			}
		}
		if len(times) != 14 || !maps.Equal(got, want) {
			return fmt.Errorf("activity: got %v of %d actions, want %v: %v", got, len(times), want, times)
		}
		return nil
	})
	if _, body := fetch(t, user(t, console(t), "grace"), address); strings.Contains(body, "ada") {
		t.Errorf("a member of another team sees the activity of %s", team)
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
	press("Change priority class")
	first := page.Locator("#action-form input[name=choice]").First() // of the policy, if a policy exists
	class, err := first.GetAttribute("value")
	must(t, err)
	must(t, first.Check())
	if javaScript {
		accessible(t, page, "class")
	}
	must(t, button(page, "Change priority class").Click())
	contains(page.Locator("#task"), strings.TrimSuffix(class, "-priority"))

	press("Resume")
	effectIs("joins its queue")
	must(t, button(page, "Resume").Click())
	state("Running") // then its buttons move no more

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
