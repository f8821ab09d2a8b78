package e2e_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDepartment creates a department, moves two teams to it together, reads its sums, moves the
// teams out of it again, and deletes it. It is not parallel: every form and list shows departments while there
// are some.
func TestDepartment(t *testing.T) {
	c := clustertest.Get(t)
	name, first, second := clustertest.Name("research"), clustertest.Name("sense"), clustertest.Name("sense")
	one := int64(1)
	for _, team := range []string{first, second} {
		a := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}}
		a.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &one}}}
		must(t, c.Client.Create(t.Context(), a))
		deleteTeamAtEnd(t, team)
	}
	t.Cleanup(func() {
		_ = c.Client.Delete(context.Background(), &v1alpha1.Department{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	page := visit(t, playwright.BrowserNewContextOptions{})

	// save presses the button, and again in the review where there is one.
	save := func(label string, leadsTo string) {
		t.Helper()
		must(t, page.Locator("#allocation-form .btn-primary").Click())
		must(t, expect.Locator(page.Locator("#review-form").Or(page.Locator("h1:not(:has-text('department')):not(:has-text('Edit'))")).First()).ToBeVisible())
		if asked, _ := page.Locator("#review-form").Count(); asked > 0 {
			must(t, button(page, label).Click())
		}
		must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(leadsTo)))
	}

	open(t, page, "/teams")
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Create department"}).Click())
	must(t, page.Locator("#team").Fill(name))
	row := poolRow(t, page, "ml.p5.48xlarge")
	must(t, page.Locator("#"+row+"-accelerators").Fill("4"))
	must(t, expect.Locator(page.Locator("#effect")).ToContainText("Reserve: 4 of 4 H100"))
	save("Create department", "/departments/"+name)

	department := page.Locator("#department-" + name)
	move := func(team, to string) {
		t.Helper()
		open(t, page, "/policies/allocations/"+team+"/edit")
		_, err := page.Locator("#department").SelectOption(playwright.SelectOptionValues{Values: &[]string{to}})
		must(t, err)
		save("Save changes", "/policies/allocations/"+team+`\?`)
	}
	open(t, page, "/policies?q=sense-")
	for _, team := range []string{first, second} {
		must(t, page.Locator(".row-select[value="+team+"]").Check())
	}
	must(t, button(page, "Move to department").Click())
	_, err := page.Locator("#department").SelectOption(playwright.SelectOptionValues{Values: &[]string{name}})
	must(t, err)
	must(t, button(page, "Review").Click())
	must(t, button(page, "Move 2 teams to department "+name).Click())
	must(t, expect.Locator(page.Locator("#bulk-status")).ToContainText("All 2."))
	open(t, page, "/teams")
	must(t, expect.Locator(department.Locator("td.n")).ToHaveText([]string{"4", "2", "2", "0", "0", "0", "0", "0"}))
	_, err = page.Locator("select#department").SelectOption(playwright.SelectOptionValues{Values: &[]string{name}})
	must(t, err)
	must(t, expect.Locator(page.Locator("#team-"+first)).ToBeVisible())
	must(t, expect.Locator(page.Locator("#team-list tbody tr")).ToHaveCount(2))

	admin := personToken(t, "admin")
	for _, command := range [][]string{{"describe", name, "-o", "yaml"}, {"edit", name, "--pool", "ml.p5.48xlarge", "--gpus", "5", "--dry-run"}} {
		if out, messages, err := kuota(t, console(t), append([]string{"department", command[0], "--token", admin}, command[1:]...)...); err != nil {
			t.Errorf("kuota department %v: %v\n%s%s", command, err, out, messages)
		}
	}

	if out, messages, err := kuota(t, console(t), "allocation", "move", first, "--department", "", "--yes", "--token", admin); err != nil || !strings.Contains(messages, "Done: 1 team.") {
		t.Errorf("kuota allocation move: %v\n%s%s", err, out, messages)
	}
	open(t, page, "/departments/"+name)
	must(t, expect.Locator(page.Locator("#department-below")).ToContainText(second))
	must(t, expect.Locator(page.Locator("#department-below")).Not().ToContainText(first))
	open(t, page, "/departments/"+name+"/delete")
	must(t, expect.Locator(page.Locator("#action-obstacle")).ToContainText("1 team"))

	move(second, "")
	open(t, page, "/departments/"+name+"/delete")
	must(t, page.Locator("#confirm").Fill(name))
	must(t, button(page, "Delete department").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/teams\?deleted=`)))
	open(t, page, "/teams")
	must(t, expect.Locator(department).ToHaveCount(0))
}
