package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/playwright-community/playwright-go"
)

var (
	atReview = regexp.MustCompile(`/edit/review\?form=`)
	atForm   = regexp.MustCompile(`/edit(\?|$)`)
)

func back(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.GoBack()
	must(t, err)
}

func forward(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.GoForward()
	must(t, err)
}

func reload(t *testing.T, page playwright.Page) {
	t.Helper()
	_, err := page.Reload()
	must(t, err)
}

// TestTypedValuesInHistory checks that back, forward and reload keep the typed values
// before and after a review, and that the browser never asks to resubmit a form.
func TestTypedValuesInHistory(t *testing.T) {
	t.Parallel()
	team := makeTeam(t, "typed", 2)
	for name, tc := range map[string]struct {
		options playwright.BrowserNewContextOptions
		text    string // typed as the description
		script  bool
	}{
		"with JavaScript":    {text: "short", script: true},
		"without JavaScript": {options: playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(false)}, text: "short"},
	} {
		t.Run(name, func(t *testing.T) {
			page := visit(t, tc.options, "status of 422")
			open(t, page, "/policies/allocations/"+team+"/edit")
			openMore(t, page)
			must(t, page.Locator("#weight").Fill("77"))
			must(t, page.Locator("#description").Fill(tc.text))
			must(t, page.Locator("#row-0-accelerators").Fill("1"))
			review(t, page)
			must(t, expect.Page(page).ToHaveURL(atReview))
			must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("77"))

			back(t, page)
			must(t, expect.Page(page).ToHaveURL(atForm))
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("77"))
			must(t, expect.Locator(page.Locator("#row-0-accelerators")).ToHaveValue("1"))
			forward(t, page)
			must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("77"))
			reload(t, page)
			must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("77"))
			must(t, button(page, "Back to the form").Click())
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("77"))
			reload(t, page)
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("77"))

			openMore(t, page)
			must(t, page.Locator("#weight").Fill("1000"))
			must(t, page.Locator("#allocation-form .btn[value=review]").Click())
			must(t, expect.Locator(page.Locator("#form-errors")).ToBeVisible())
			reload(t, page)
			must(t, expect.Locator(page.Locator("#form-errors")).ToBeVisible())
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("1000"))
			back(t, page)
			must(t, expect.Locator(page.Locator("#allocation-form")).ToBeVisible())
			forward(t, page)
			must(t, expect.Locator(page.Locator("#form-errors")).ToBeVisible())
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("1000"))

			must(t, page.Locator("#add-row").Click())
			must(t, expect.Locator(page.Locator("input[list=instance-types]")).ToHaveCount(1))
			reload(t, page)
			must(t, expect.Locator(page.Locator("input[list=instance-types]")).ToHaveCount(1))
			must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("1000"))
		})
	}
}

// TestLongFormInHistory checks that history also keeps a form that is too long for an
// address.
func TestLongFormInHistory(t *testing.T) {
	t.Parallel()
	team := makeTeam(t, "long", 2)
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/"+team+"/edit")
	random := rand.New(rand.NewPCG(1, 2)) // its text must not compress well
	text := func(length int) string {
		letters := make([]byte, length)
		for i := range letters {
			letters[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[random.IntN(64)]
		}
		return string(letters)
	}
	long := text(1000)
	openMore(t, page)
	must(t, page.Locator("#description").Fill(long))
	for i := range 6 {
		must(t, page.Locator("#add-member").Click())
		must(t, page.Locator(fmt.Sprintf("#member-%d-name", i)).Fill("m"+text(250)))
	}
	review(t, page)
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText(long[:40]))
	reload(t, page) // the review has no address, so that reload shows its form
	must(t, expect.Locator(page.Locator("#description")).ToHaveValue(long))
	must(t, expect.Locator(page.Locator("#member-5-name")).ToHaveValue(regexp.MustCompile("^m")))
	back(t, page)
	must(t, expect.Locator(page.Locator("#description")).ToHaveValue(long))
}

// TestLeavingEditedForm checks that the browser asks before the user leaves an edited
// form, also after going back to it, and does not ask after a save, on a review, or
// without a change.
func TestLeavingEditedForm(t *testing.T) {
	t.Parallel()
	team := makeTeam(t, "leaves", 2)
	page := visit(t, playwright.BrowserNewContextOptions{})
	asked := make(chan struct{}, 10)
	page.OnDialog(func(d playwright.Dialog) {
		if d.Type() == "beforeunload" {
			asked <- struct{}{}
		}
		_ = d.Dismiss()
	})
	leave := func(want bool) {
		t.Helper()
		link := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Instances", Exact: playwright.Bool(true)})
		must(t, link.Click(playwright.LocatorClickOptions{NoWaitAfter: playwright.Bool(true)}))
		if want {
			<-asked
			must(t, expect.Locator(page.Locator("#allocation-form")).ToBeVisible())
			return
		}
		must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/instances")))
		if len(asked) != 0 {
			t.Error("got a question of the browser about an unchanged form, want none")
		}
	}
	edit := "/policies/allocations/" + team + "/edit"
	open(t, page, edit)
	leave(false)
	open(t, page, edit)
	openMore(t, page)
	must(t, page.Locator("#weight").Fill("3"))
	leave(true)
	review(t, page)
	back(t, page)
	must(t, expect.Locator(page.Locator("#weight")).ToHaveValue("3"))
	openMore(t, page)
	must(t, page.Locator("#weight").Click())
	leave(true)
	review(t, page)
	must(t, button(page, "Save changes").Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(team+`\?saved=`)))
	if len(asked) != 0 {
		t.Error("got a question of the browser about a saved form, want none")
	}
}

// TestForgedReviewAddress checks that a review address that the console did not create
// shows the saved values.
func TestForgedReviewAddress(t *testing.T) {
	t.Parallel()
	team := makeTeam(t, "sealed", 2)
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/policies/allocations/"+team+"/edit")
	openMore(t, page)
	must(t, page.Locator("#description").Fill("for my eyes"))
	review(t, page)
	address := page.URL()
	open(t, page, address[:len(address)-8]+"AAAAAAAA")
	must(t, expect.Locator(page.Locator("main")).ToContainText("cannot be shown"))
	must(t, expect.Locator(page.Locator("#description")).ToHaveValue(""))
}
