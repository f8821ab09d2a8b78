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

// A scientist fills in the form of their team's page, sees what would become of
// the task, submits it, and lands on its page; with JavaScript and without.
func TestSubmit(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	team := clustertest.Name("submit")
	removed(t, team)
	scientist := person(t, console(t), "ada")
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: `+team+`}
spec:
  quota: [{instanceType: ml.p5.48xlarge, accelerators: 4}]
  sharing: {strategy: DontLend}
  members: [{kind: Group, name: vision-team}]
`)
	kueueHasIt(t, c, team)
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error { // until RBAC lets the member in
		status, body := fetch(t, scientist, console(t)+"/teams/"+team)
		if status != http.StatusOK || !strings.Contains(body, `id="submit-form"`) || !strings.Contains(body, "ml.p5.48xlarge") {
			return fmt.Errorf("the team's page answers %d", status)
		}
		return nil
	})

	for name, script := range map[string]bool{"with-script": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			page := visitAsNobody(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(script)}, "status of 422")
			must(t, page.Context().AddCookies(cookiesOf(t, scientist, console(t))))
			open(t, page, "/teams/"+team)
			look := func(verdict string) {
				t.Helper()
				if !script {
					must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check"}).Click())
				}
				must(t, see.Locator(page.Locator("#verdict")).ToContainText(verdict))
			}
			submit := func() {
				t.Helper()
				must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Submit"}).Click())
			}
			must(t, page.Locator("#name").Fill(name))
			must(t, page.Locator("#accelerators").Fill("9"))
			look("no node of ml.p5.48xlarge is that large")
			must(t, page.Locator("#accelerators").Fill("5"))
			look("can never have that much")
			must(t, page.Locator("#accelerators").Fill("1"))
			look("It would be admitted now.")
			placeholder(t, page, "memory", "256")
			must(t, see.Locator(page.Locator("#manifest-job")).ToContainText("name: "+name))

			submit() // without an image
			must(t, see.Locator(page.Locator("#image-error")).ToContainText("image"))
			must(t, see.Locator(page.Locator("#name")).ToHaveValue(name))
			if script {
				fits(t, page, "team-wrong")
				accessible(t, page, "team-wrong")
				must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: playwright.ColorSchemeDark}))
				must(t, page.SetViewportSize(390, 844))
				fits(t, page, "team-wrong-390")
				accessible(t, page, "team-wrong-390")
			}
			must(t, page.Locator("#image").Fill("example.com/train:1"))
			submit()
			must(t, see.Page(page).ToHaveURL(regexp.MustCompile("/tasks/hyperpod-ns-"+team+"/job/"+name+"$")))
			must(t, see.Locator(page.Locator("h1")).ToHaveText(name))
			must(t, see.Locator(page.Locator("#task")).ToContainText("1 GPU"))
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: team}).Click())
			must(t, see.Locator(page.Locator("#submit-form")).ToBeVisible())
		})
	}
	if got := strings.Fields(c.Kubectl(t, "", "get", "jobs", "-n", "hyperpod-ns-"+team, "-o", "name")); len(got) != 2 {
		t.Errorf("there are the jobs %v", got)
	}

	admin := visit(t, playwright.BrowserNewContextOptions{})
	open(t, admin, "/teams/"+team) // who sees it and may make no jobs
	must(t, see.Locator(admin.Locator("#manifest-job")).ToContainText("hyperpod-ns-"+team+"-localqueue"))
	must(t, see.Locator(admin.Locator("#submit-form")).ToHaveCount(0))
	accessible(t, admin, "team")
}
