package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWindowInTheBrowser adds a window that is open already, and finds it on each page that
// shows quota, and in Activity.
func TestWindowInTheBrowser(t *testing.T) {
	c := clustertest.Get(t)
	noPolicy(t)
	team := makeTeam(t, "windowed", 8)
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/"+team+"/edit")
	openMore(t, page)
	press(t, page, "Add window")
	must(t, expect.Locator(page.Locator("#window-0-name")).ToBeFocused())
	fill := func(id, text string) {
		t.Helper()
		must(t, page.Locator("#"+id).Fill(text))
	}
	fill("window-0-name", "Fair week")
	fill("window-0-days", "Mon-Freitag")
	fill("window-0-zone", "Berlin")
	must(t, expect.Locator(page.Locator("#window-0-name-error")).ToContainText("lower-case letters"))
	must(t, expect.Locator(page.Locator("#window-0-days-error")).ToContainText("Mon–Fri"))
	checkAppearance(t, page, "windows-errors")
	fill("window-0-name", "fair")
	fill("window-0-days", "")
	fill("window-0-zone", "")
	now := time.Now().UTC()
	fill("window-0-from", now.Add(-time.Minute).Format("2006-01-02 15:04"))
	fill("window-0-to", now.Add(time.Hour).Format("2006-01-02 15:04"))
	fill("window-0-quota", "ml.p5.48xlarge 4")
	_, err := page.Locator("#window-0-sharing").SelectOption(playwright.SelectOptionValues{Values: playwright.StringSlice("DontLend")})
	must(t, err)
	fill("budget-amount", "100")
	fill("budget-hold", "100")
	must(t, expect.Locator(page.Locator("#windows-section .error, #budget-section .error")).ToHaveCount(0))
	checkAppearance(t, page, "windows")
	review(t, page)
	must(t, expect.Locator(page.Locator("#review-calendar")).ToContainText("fair ends"))
	checkAppearance(t, page, "windows-review")
	must(t, button(page, "Save changes").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(team+`\?saved=`)))
	active := regexp.MustCompile("Window fair until .* UTC: ml.p5.48xlarge 4 accelerators, neither lends nor borrows")
	must(t, expect.Locator(page.Locator("#detail-status")).ToContainText(active))
	must(t, expect.Locator(page.Locator("#detail-quota")).ToContainText("4 accelerators"))
	must(t, expect.Locator(page.Locator("#detail-settings")).ToContainText("100 accelerator hours each month (UTC): hold at 100 %"))
	checkAppearance(t, page, "windows-allocation")
	for _, address := range []string{"/teams/" + team, "/policies?team=" + team, "/teams?q=" + team} {
		open(t, page, address)
		must(t, expect.Locator(page.Locator("main")).ToContainText("Window fair until"))
	}
	checkAppearance(t, page, "windows-teams")
	open(t, page, "/activity?team="+team)
	must(t, expect.Locator(page.Locator("main")).ToContainText("Window opened"))
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"windows":null}}`)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if _, body := fetch(t, user(t, console(t), "admin"), console(t)+"/activity?team="+team); !strings.Contains(body, "Window closed") {
			return fmt.Errorf("activity has no closed window")
		}
		return nil
	})
}

// TestBudget spends a budget on the real Kueue: each step fires an alert, hold evicts
// nothing, and drain ends what runs, with an overshoot of less than a minute.
func TestBudget(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	console(t)
	noPolicy(t)
	const instanceType, devices = "ml.trn1.budget", 8
	c.Apply(t, `{"apiVersion":"kuota.dev/v1alpha1","kind":"ClusterPolicy","metadata":{"name":"default"},"spec":{"prices":{"currency":"EUR","hourly":[{"pool":"`+instanceType+`","resource":"aws.amazon.com/neurondevice","from":"2026-01-01","own":"3600"}]}}}`)
	trainiumNode(t, instanceType)
	team := makePoolTeam(t, instanceType, "budget", "accelerators: 8")
	c.Apply(t, neuronJob(team, "spends", devices))
	runsSoon(t, team, "spends")
	// A device costs 1 EUR a second: half of the budget is used after 15 seconds, all after 30.
	c.Kubectl(t, "", "patch", "computeallocation", team, "--type=merge", "-p", `{"spec":{"budget":{"money":"240","period":"Month","steps":[
		{"percent":1,"action":"Notify"},{"percent":40,"action":"Hold"},{"percent":100,"action":"Drain"}]}}}`)
	budget := func(ctx context.Context) (*v1alpha1.BudgetStatus, error) {
		var a v1alpha1.ComputeAllocation
		err := c.Client.Get(ctx, client.ObjectKey{Name: team}, &a)
		return a.Status.Budget, err
	}
	reaches := func(action v1alpha1.BudgetAction) {
		t.Helper()
		clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
			s, err := budget(ctx)
			if err == nil && (s == nil || s.Action != action) {
				err = fmt.Errorf("the budget is %+v, want %s", s, action)
			}
			return err
		})
	}
	running := func() string {
		return c.Kubectl(t, "", "get", "job", "spends", "-n", "hyperpod-ns-"+team, "-o", "jsonpath={.spec.suspend} {.status.active}")
	}
	reaches(v1alpha1.BudgetHold)
	if got := running(); got != "false 1" {
		t.Errorf("at hold the job is %q, want that it runs", got)
	}
	c.Apply(t, neuronJob(team, "waits", 1))
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if _, body := fetch(t, user(t, console(t), "admin"), console(t)+"/tasks/hyperpod-ns-"+team+"/job/waits/why.json"); !strings.Contains(body, "The team has used its budget, so no task is admitted until") {
			return fmt.Errorf("the explanation does not name the budget: %s", body)
		}
		return nil
	})
	reaches(v1alpha1.BudgetDrain)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if got := running(); !strings.HasPrefix(got, "true") || strings.HasSuffix(got, "1") {
			return fmt.Errorf("at drain the job is %q, want that it is stopped", got)
		}
		return nil
	})
	// The report has all once the last second in which the pods ran is in it.
	spent, over := 0.0, 0.0
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) (err error) {
		before := spent
		if spent, err = spentBy(t, team); err != nil {
			return err
		}
		if over = (spent - 240) / devices; over < 0 || spent != before {
			return fmt.Errorf("the report has %.0f EUR, and had %.0f", spent, before)
		}
		return nil
	})
	t.Logf("spent %.0f EUR of 240: the overshoot is %.1f s of all devices", spent, over)
	if over > 60 {
		t.Errorf("the overshoot is %.1f s of all devices, want at most 60", over)
	}
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		_, alerts := fetch(t, user(t, console(t), "admin"), console(t)+"/alerts.json")
		for _, part := range []string{"1 % of its budget", "40 % of its budget", "100 % of its budget"} {
			if n := strings.Count(alerts, "Team "+team+" has used "+part); n != 1 {
				return fmt.Errorf("%d alerts say %q, want one", n, part)
			}
		}
		return nil
	})
}

// spentBy returns the money of all lines of a team's usage report.
func spentBy(t *testing.T, team string) (money float64, err error) {
	t.Helper()
	status, body := fetch(t, user(t, console(t), "admin"), console(t)+"/usage.json?team="+team)
	var report []struct {
		Lines []struct{ Cost json.Number }
	}
	if err := json.Unmarshal([]byte(body), &report); status != http.StatusOK || err != nil {
		return 0, fmt.Errorf("%d, %w: %s", status, err, body)
	}
	for _, p := range report {
		for _, l := range p.Lines {
			cost, _ := l.Cost.Float64() // none without a price
			money += cost
		}
	}
	return money, nil
}
