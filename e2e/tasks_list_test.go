package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// manyTasks gives a team more tasks than stand on one page. None of them can
// ever start.
func manyTasks(t *testing.T, team string) {
	t.Helper()
	var making sync.WaitGroup
	for part := range 4 {
		making.Go(func() {
			var manifests strings.Builder
			for i := part; i < 103; i += 4 {
				fmt.Fprintln(&manifests, neuronJob(team, fmt.Sprintf("sweep-%03d", i), 200)+"\n---")
			}
			if out, err := clustertest.Get(t).TryKubectl(manifests.String(), "create", "-f", "-"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	making.Wait()
}

// A list with more than a page of tasks, as people read it: by mouse, by
// keyboard, on a phone, and without JavaScript.
func TestListOfTasks(t *testing.T) {
	t.Parallel()
	console(t)
	team := shop(t, trainium, "list", "accelerators: 0, vCPU: 1")
	manyTasks(t, team)
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error {
		_, body := fetch(t, person(t, console(t), "admin"), console(t)+"/tasks?status=Pending&team="+team)
		if !strings.Contains(body, "103 tasks found") {
			return fmt.Errorf("there are not all of them")
		}
		return nil
	})

	t.Run("as it is", func(t *testing.T) {
		for name, script := range map[string]bool{"by mouse": true, "without JavaScript": false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				choosesAList(t, visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}), team)
			})
		}
		t.Run("in all looks", func(t *testing.T) {
			t.Parallel()
			looksWell(t, visit(t, playwright.BrowserNewContextOptions{}), team)
		})
	})
	t.Run("by keyboard", func(t *testing.T) { readsByKeyboard(t, visit(t, playwright.BrowserNewContextOptions{}), team) })
}

// looksWell looks at the list and at one of its tasks in light, in dark and on a
// phone, where nothing but tables may be wider than the window.
func looksWell(t *testing.T, page playwright.Page, team string) {
	for _, look := range []struct {
		name   string
		scheme *playwright.ColorScheme
		width  int
	}{{"light", playwright.ColorSchemeLight, 1280}, {"dark", playwright.ColorSchemeDark, 1280}, {"390", playwright.ColorSchemeLight, 390}} {
		must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: look.scheme}))
		must(t, page.SetViewportSize(look.width, 844))
		open(t, page, "/tasks?sort=name&range=1h&team="+team)
		must(t, see.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(100))
		fits(t, page, look.name)
		laidOut(t, page, look.width)
		picture(t, page, "tasks-many-"+look.name)
		open(t, page, "/tasks?sort=name&page=2&range=1h&team="+team)
		must(t, page.Locator(".column-choices summary").Click())
		fits(t, page, look.name)
		accessible(t, page, "tasks-columns-"+look.name)
		must(t, page.Locator(".column-choices input[type=checkbox]").First().Focus())
		must(t, page.Keyboard().Press("Escape"))
		must(t, see.Locator(page.Locator(".column-choices fieldset")).ToBeHidden())
		must(t, see.Locator(page.Locator(".column-choices summary")).ToBeFocused())
		must(t, page.Locator(".list-tabs").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Finished"}).Click())
		must(t, see.Page(page).ToHaveURL(regexp.MustCompile(`tab=finished`)))
		must(t, see.Locator(page.Locator(".list-tabs [aria-current]")).ToContainText("Finished"))
		must(t, see.Locator(page.Locator("#task-list")).ToContainText("No tasks match these filters."))
		open(t, page, "/tasks/hyperpod-ns-"+team+"/job/sweep-000")
		must(t, see.Locator(page.Locator("#task-why")).ToBeVisible())
		fits(t, page, look.name)
		accessible(t, page, "task-of-many-"+look.name)
	}
}

// laidOut checks that all usual columns are on the screen, and that each task is a
// card of labeled values on a phone.
func laidOut(t *testing.T, page playwright.Page, width int) {
	t.Helper()
	found, err := page.Evaluate(`() => {
		const frame = document.querySelector("#tasks-table"), row = frame.querySelector("tbody tr");
		const labels = [...row.querySelectorAll("td[data-label]")].filter((cell) => cell.offsetParent !== null);
		return {
			hidden: frame.scrollWidth - frame.clientWidth,
			heads: [...frame.querySelectorAll("thead th")].map((head) => head.innerText.trim().replace(/\s*[↑↓]$/, "")).join(", "),
			card: getComputedStyle(row).display === "grid",
			outside: [...row.children].filter((cell) => cell.getBoundingClientRect().right > innerWidth).length,
			labels: labels.map((cell) => getComputedStyle(cell, "::before").content.replaceAll('"', "")).join(", "),
			reason: row.querySelector(".reason")?.innerText ?? "",
		};
	}`)
	must(t, err)
	got := found.(map[string]any)
	if toInt(got["outside"]) != 0 || toInt(got["hidden"]) > 0 {
		t.Errorf("at %d px a part of the list is off the screen: %v", width, got)
	}
	if want := "Name, Status, Team, Priority class, Place, Accelerators, Pool, Submitted, Waited, Ran, Preempted"; got["heads"] != want {
		t.Errorf("the columns are %v, want %s", got["heads"], want)
	}
	if want := width < 640; got["card"] != want {
		t.Errorf("at %d px a task is a card: %v", width, got["card"])
	} else if labels := got["labels"]; want && labels != "Team, Place, Accelerators, Submitted, Waited, Preempted" {
		t.Errorf("a card shows %v", labels)
	}
	if reason := got["reason"].(string); !strings.HasSuffix(reason, "can never have that much.") {
		t.Errorf("the reason is %q", reason)
	}
}

// choosesAList filters, sorts, turns the page and chooses columns; the address
// keeps it all.
func choosesAList(t *testing.T, page playwright.Page, team string) {
	press := func(role playwright.AriaRole, name string) {
		t.Helper()
		must(t, page.GetByRole(role, playwright.PageGetByRoleOptions{Name: name}).First().Click())
	}
	is := func(query, first string, count, columns int) {
		t.Helper()
		must(t, see.Page(page).ToHaveURL(regexp.MustCompile(regexp.QuoteMeta("/tasks?"+query)+"$")))
		must(t, see.Locator(page.Locator("#tasks-table tbody tr")).ToHaveCount(count))
		if first != "" {
			must(t, see.Locator(page.Locator("#tasks-table tbody th").First()).ToHaveText(first))
		}
		must(t, see.Locator(page.Locator("#tasks-table thead th")).ToHaveCount(columns))
	}
	open(t, page, "/tasks")
	_, err := page.Locator("#team").SelectOption(playwright.SelectOptionValues{Values: &[]string{team}})
	must(t, err)
	must(t, page.Locator("#q").Fill("sweep"))
	press("button", "Filter")
	is("q=sweep&team="+team, "", 100, 11)
	must(t, page.Locator("#tasks-table thead").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Name"}).Click())
	is("order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 11)
	press("link", "Next")
	is("order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 11)
	must(t, page.Locator(".column-choices summary").Click())
	for _, name := range []string{"Position", "Pool"} {
		must(t, page.GetByLabel(name).And(page.Locator("[name=cols]")).Uncheck())
	}
	press("button", "Show these")
	is("hide=place&hide=pool&order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 9)
	press("link", "Next")
	is("hide=place&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 9)
	_, err = page.Reload()
	must(t, err)
	is("hide=place&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 9)
	press("link", "sweep-101")
	must(t, see.Locator(page.Locator("h1")).ToHaveText("sweep-101"))
	must(t, see.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
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
		is(back+team, first, count, columns)
	}
}

// readsByKeyboard goes from the address bar to a task by Tab and Enter, and stays
// where it is while tasks come and go above.
func readsByKeyboard(t *testing.T, page playwright.Page, team string) {
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
			t.Fatalf("after %d tabs the focus is on %q", tabs, focused())
		}
		must(t, page.Keyboard().Press("Tab"))
	}
	where := func() int {
		t.Helper()
		top, err := page.Evaluate(`() => Math.round(document.activeElement.getBoundingClientRect().top)`)
		must(t, err)
		return toInt(top)
	}
	leaveMark(t, page)
	before := where()
	for i, change := range []struct{ do, seen string }{{"delete", "sweep-010"}, {"delete", "sweep-020"}, {"create", "sweep-0105"}, {"create", "sweep-0205"}, {"delete", "sweep-060"}} {
		if change.do == "delete" {
			c.Kubectl(t, "", "delete", "job", change.seen, "-n", "hyperpod-ns-"+team, "--wait=false")
		} else {
			c.Kubectl(t, neuronJob(team, change.seen, 200), "create", "-f", "-")
		}
		row := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: change.seen, Exact: playwright.Bool(true)})
		must(t, see.Locator(row).ToHaveCount(map[string]int{"delete": 0, "create": 1}[change.do]))
		if now := where(); focused() != "sweep-050" || now < before-2 || now > before+2 {
			t.Errorf("after change %d the focus is on %q, %d px from the top, want %d", i, focused(), now, before)
		}
	}
	neverLoaded(t, page)
	must(t, page.Keyboard().Press("Enter"))
	must(t, see.Locator(page.Locator("h1")).ToHaveText("sweep-050"))
	must(t, see.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
}
