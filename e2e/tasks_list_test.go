package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// manyTasks creates more tasks in a team than fit on one page. None of them can ever be
// admitted.
func manyTasks(t *testing.T, team string) {
	t.Helper()
	var creating sync.WaitGroup
	for part := range 4 {
		creating.Go(func() {
			var manifests strings.Builder
			for i := part; i < 103; i += 4 {
				fmt.Fprintln(&manifests, neuronJob(team, fmt.Sprintf("sweep-%03d", i), 200)+"\n---")
			}
			if out, err := clustertest.Get(t).TryKubectl(manifests.String(), "create", "-f", "-"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	creating.Wait()
}

// TestTaskList reads a list with more than one page of tasks by mouse, by keyboard, in
// a narrow window, and without JavaScript.
func TestTaskList(t *testing.T) {
	t.Parallel()
	console(t)
	team := makePoolTeam(t, trainium, "list", "accelerators: 0, vCPU: 1")
	manyTasks(t, team)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		_, body := fetch(t, user(t, console(t), "admin"), console(t)+"/tasks?status=Pending&team="+team)
		if !strings.Contains(body, "103 tasks found") {
			return fmt.Errorf("got no count of 103 tasks, want it")
		}
		return nil
	})

	t.Run("unchanged list", func(t *testing.T) {
		for name, script := range map[string]bool{"by mouse": true, "without JavaScript": false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testListControls(t, visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}), team)
			})
		}
		t.Run("appearance", func(t *testing.T) {
			t.Parallel()
			testListAppearance(t, visit(t, playwright.BrowserNewContextOptions{}), team)
		})
	})
	t.Run("by keyboard", func(t *testing.T) { testKeyboard(t, visit(t, playwright.BrowserNewContextOptions{}), team) })
}

// testListAppearance checks the list and one of its tasks in light, dark and narrow
// windows.
func testListAppearance(t *testing.T, page playwright.Page, team string) {
	open(t, page, "/tasks?sort=name&range=1h&team="+team)
	must(t, expect.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(100))
	eachAppearance(t, page, func(appearance string, width int) {
		fits(t, page, appearance)
		checkLayout(t, page, width)
		screenshot(t, page, "tasks-many-"+appearance)
	})
	open(t, page, "/tasks?sort=name&page=2&range=1h&team="+team)
	eachAppearance(t, page, func(appearance string, _ int) {
		must(t, page.Locator(".column-choices summary").Click())
		fits(t, page, appearance)
		accessible(t, page, "tasks-columns-"+appearance)
		must(t, page.Locator(".column-choices input[type=checkbox]").First().Focus())
		must(t, page.Keyboard().Press("Escape"))
		must(t, expect.Locator(page.Locator(".column-choices fieldset")).ToBeHidden())
		must(t, expect.Locator(page.Locator(".column-choices summary")).ToBeFocused())
		must(t, page.Locator(".list-tabs").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Finished"}).Click())
		must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`tab=finished`)))
		must(t, expect.Locator(page.Locator("#task-list .list-tabs [aria-current]")).ToContainText("Finished"))
		must(t, expect.Locator(page.Locator("#task-list")).ToContainText("No tasks match these filters."))
		_, err := page.GoBack()
		must(t, err)
	})
	open(t, page, "/tasks/hyperpod-ns-"+team+"/job/sweep-000")
	must(t, expect.Locator(page.Locator("#task-why")).ToBeVisible())
	eachAppearance(t, page, func(appearance string, _ int) {
		fits(t, page, appearance)
		accessible(t, page, "task-of-many-"+appearance)
	})
}

// checkLayout checks that all default columns are visible, and that each task is a card
// of labeled values in a narrow window.
func checkLayout(t *testing.T, page playwright.Page, width int) {
	t.Helper()
	found, err := page.Evaluate(`() => {
		const frame = document.querySelector("#tasks-table"), row = frame.querySelector("tbody tr");
		const labels = [...row.querySelectorAll('td[data-label]:not([data-label=""])')].filter((cell) => cell.offsetParent !== null);
		return {
			heads: [...frame.querySelectorAll("thead th")].map((head) => head.innerText.trim().replace(/\s*[↑↓]$/, "")).join(", "),
			card: getComputedStyle(row).display === "grid",
			labels: labels.map((cell) => getComputedStyle(cell, "::before").content.replaceAll('"', "")).join(", "),
			reason: row.querySelector(".reason")?.innerText ?? "",
		};
	}`)
	must(t, err)
	got := found.(map[string]any)
	if want := "Name, Status, Team, Priority class, Position, Accelerators, Pool, Submitted, Waited, Ran, Preempted"; got["heads"] != want {
		t.Errorf("columns: got %v, want %s", got["heads"], want)
	}
	if want := width < 640; got["card"] != want {
		t.Errorf("at %d px: got a card %v, want %t", width, got["card"], want)
	} else if labels, wantLabels := got["labels"], "Team, Position, Accelerators, Submitted, Waited, Preempted"; want && labels != wantLabels {
		t.Errorf("labels of a card: got %v, want %s", labels, wantLabels)
	}
	if reason := got["reason"].(string); !strings.HasSuffix(reason, "can never have that much.") {
		t.Errorf("reason: got %q, want the suffix \"can never have that much.\"", reason)
	}
}

// testListControls filters and sorts the list, changes the page and the columns, and
// checks that the address has each choice.
func testListControls(t *testing.T, page playwright.Page, team string) {
	press := func(role playwright.AriaRole, name string) {
		t.Helper()
		must(t, page.GetByRole(role, playwright.PageGetByRoleOptions{Name: name}).First().Click())
	}
	listIs := func(query, first string, count, columns int) {
		t.Helper()
		must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(regexp.QuoteMeta("/tasks?"+query)+"$")))
		must(t, expect.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(count))
		if first != "" {
			must(t, expect.Locator(page.Locator("#tasks-table tbody th").First()).ToHaveText(first))
		}
		must(t, expect.Locator(page.Locator("#tasks-table thead th")).ToHaveCount(columns))
	}
	open(t, page, "/tasks")
	scripts, err := page.Locator("html.js").Count()
	must(t, err)
	_, err = page.Locator("#team").SelectOption(playwright.SelectOptionValues{Values: &[]string{team}})
	must(t, err)
	if scripts > 0 { // a choice filters at once
		must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("team="+team)))
		must(t, expect.Locator(page.Locator("#team")).ToBeFocused())
	}
	must(t, page.Locator("#q").Fill("sweep"))
	if scripts > 0 {
		must(t, page.Locator("#q").Press("Enter"))
	} else {
		press("button", "Filter")
	}
	listIs("q=sweep&team="+team, "", 100, 11)
	must(t, page.Locator("#tasks-table thead").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Name"}).Click())
	listIs("order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 11)
	press("link", "Next")
	listIs("order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 11)
	must(t, page.Locator(".column-choices summary").Click())
	for _, name := range []string{"Position", "Pool"} {
		must(t, page.GetByLabel(name).And(page.Locator("[name=cols]")).Uncheck())
	}
	press("button", "Show these")
	listIs("hide=place&hide=pool&order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 9)
	press("link", "Next")
	listIs("hide=place&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 9)
	_, err = page.Reload()
	must(t, err)
	listIs("hide=place&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 9)
	press("link", "sweep-101")
	must(t, expect.Locator(page.Locator("h1")).ToHaveText("sweep-101"))
	must(t, expect.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
	for _, back := range []string{"hide=place&hide=pool&order=asc&page=2&q=sweep&sort=name&team=", "hide=place&hide=pool&order=asc&q=sweep&sort=name&team=", "order=asc&page=2&q=sweep&sort=name&team="} {
		_, err = page.GoBack()
		must(t, err)
		first, count, columns := "sweep-000", 100, 11
		if strings.Contains(back, "page=2") {
			first, count = "sweep-100", 3
		}
		if strings.Contains(back, "hide") {
			columns = 9
		}
		listIs(back+team, first, count, columns)
	}
}

// testKeyboard reaches a task with Tab and opens it with Enter. The focus stays on the
// task, and the task stays in place, while tasks above are created and deleted.
func testKeyboard(t *testing.T, page playwright.Page, team string) {
	c := clustertest.Get(t)
	open(t, page, "/tasks?sort=name&order=asc&team="+team)
	focused := func() string {
		t.Helper()
		text, err := page.Evaluate(`() => document.activeElement.closest("#tasks-table th") ? document.activeElement.textContent : ""`)
		must(t, err)
		return text.(string)
	}
	for tabs := 0; focused() != "sweep-050"; tabs++ {
		if tabs > 250 {
			t.Fatalf("focus after %d tabs: got %q, want sweep-050", tabs, focused())
		}
		must(t, page.Keyboard().Press("Tab"))
	}
	top := func() int {
		t.Helper()
		must(t, drawn(page)) // the browser scrolls with what is above when it draws
		y, err := page.Evaluate(`() => Math.round(document.activeElement.getBoundingClientRect().top)`)
		must(t, err)
		return toInt(y)
	}
	markLoaded(t, page)
	before := top()
	for i, change := range []struct{ do, task string }{{"delete", "sweep-010"}, {"delete", "sweep-020"}, {"create", "sweep-0105"}, {"create", "sweep-0205"}, {"delete", "sweep-060"}} {
		if change.do == "delete" {
			c.Kubectl(t, "", "delete", "job", change.task, "-n", "hyperpod-ns-"+team, "--wait=false")
		} else {
			c.Kubectl(t, neuronJob(team, change.task, 200), "create", "-f", "-")
		}
		row := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: change.task, Exact: playwright.Bool(true)})
		must(t, expect.Locator(row).ToHaveCount(map[string]int{"delete": 0, "create": 1}[change.do]))
		if now := top(); focused() != "sweep-050" || now < before-2 || now > before+2 {
			t.Errorf("change %d: got the focus on %q at %d px, want sweep-050 at %d px", i, focused(), now, before)
		}
	}
	notReloaded(t, page)
	must(t, page.Keyboard().Press("Enter"))
	must(t, expect.Locator(page.Locator("h1")).ToHaveText("sweep-050"))
	must(t, expect.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
}
