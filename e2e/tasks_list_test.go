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
	console(t)
	team := shop(t, "list", "accelerators: 0, vCPU: 1")
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
		picture(t, page, "tasks-many-"+look.name)
		open(t, page, "/tasks?sort=name&page=2&range=1h&team="+team)
		must(t, page.Locator(".column-choices summary").Click())
		fits(t, page, look.name)
		accessible(t, page, "tasks-columns-"+look.name)
		open(t, page, "/tasks/hyperpod-ns-"+team+"/job/sweep-000")
		must(t, see.Locator(page.Locator("#task-why")).ToBeVisible())
		fits(t, page, look.name)
		accessible(t, page, "task-of-many-"+look.name)
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
	is("q=sweep&team="+team, "", 100, 14)
	must(t, page.Locator("#tasks-table thead").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "Name"}).Click())
	is("order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 14)
	press("link", "Next")
	is("order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 14)
	must(t, page.Locator(".column-choices summary").Click())
	for _, name := range []string{"Memory", "Pool"} {
		must(t, page.GetByLabel(name).And(page.Locator("[name=cols]")).Uncheck())
	}
	press("button", "Show these")
	is("hide=memory&hide=pool&order=asc&q=sweep&sort=name&team="+team, "sweep-000", 100, 12)
	press("link", "Next")
	is("hide=memory&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 12)
	_, err = page.Reload()
	must(t, err)
	is("hide=memory&hide=pool&order=asc&page=2&q=sweep&sort=name&team="+team, "sweep-100", 3, 12)
	press("link", "sweep-101")
	must(t, see.Locator(page.Locator("h1")).ToHaveText("sweep-101"))
	must(t, see.Locator(page.Locator("#task-why")).ToContainText("can never have that much"))
	for _, back := range []string{"hide=memory&hide=pool&order=asc&page=2&q=sweep&sort=name&team=", "hide=memory&hide=pool&order=asc&q=sweep&sort=name&team=", "order=asc&page=2&q=sweep&sort=name&team="} {
		_, err = page.GoBack()
		must(t, err)
		first, count, columns := "sweep-000", 100, 14
		if strings.Contains(back, "page=2") {
			first, count = "sweep-100", 3
		}
		if strings.Contains(back, "hide") {
			columns = 12
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
