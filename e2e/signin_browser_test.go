package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// signInBrowser signs in on the provider's page, where it asks.
func signInBrowser(t *testing.T, page playwright.Page, name string) {
	t.Helper()
	must(t, page.Locator("#username").Fill(name))
	must(t, page.Locator("#password").Fill("kuota-"+name))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
}

// endSession deletes the session that a browser holds.
func endSession(t *testing.T, page playwright.Page) {
	t.Helper()
	cookies, err := page.Context().Cookies(console(t))
	must(t, err)
	for _, cookie := range cookies {
		if cookie.Name == "kuota" {
			sum := sha256.Sum256([]byte(cookie.Value))
			clustertest.Get(t).Kubectl(t, "", "delete", "secret", "-n", "kuota-system", "kuota-session-"+hex.EncodeToString(sum[:]))
			return
		}
	}
	t.Fatal("the browser holds no session")
}

// From a link that somebody sent to the page itself, and out again.
func TestSignInStory(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]playwright.BrowserNewContextOptions{
		"with JavaScript":    {},
		"without JavaScript": {JavaScriptEnabled: playwright.Bool(false)},
	} {
		t.Run(name, func(t *testing.T) {
			page := visitAsNobody(t, options)
			open(t, page, "/policies?sort=team")
			must(t, see.Page(page).ToHaveTitle(regexp.MustCompile("sample provider")))
			signInBrowser(t, page, "admin")
			must(t, see.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?sort=team$`)))
			must(t, see.Locator(page.Locator(".user")).ToContainText("admin@example.com"))
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
			must(t, see.Page(page).ToHaveURL(regexp.MustCompile("/auth/signed-out")))
			must(t, see.Locator(page.Locator("h1")).ToHaveText("Signed out"))
			must(t, see.Locator(page.Locator("nav")).ToHaveCount(0))
			if name == "with JavaScript" {
				accessible(t, page, "signed out")
				picture(t, page, "signed-out")
			}
			// Signed out of the provider too: it asks again.
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
			must(t, see.Locator(page.Locator("#username")).ToBeVisible())
		})
	}
}

// A session that ends in the middle of a form loses nothing, and one that ends
// while a page is open is told on it.
func TestSessionEndsInTheBrowser(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]playwright.BrowserNewContextOptions{
		"with JavaScript":    {},
		"without JavaScript": {JavaScriptEnabled: playwright.Bool(false)},
	} {
		t.Run(name, func(t *testing.T) {
			team := clustertest.Name("resumed")
			removed(t, team)
			page := visitAsNobody(t, options, "status of 401")
			open(t, page, "/policies/allocations/new")
			signInBrowser(t, page, "admin")
			must(t, page.Locator("#team").Fill(team))
			must(t, page.Locator("#row-0-type").Fill("ml.g5.2xlarge"))
			must(t, page.Locator("#row-0-accelerators").Fill("1"))
			must(t, page.Locator("#description").Fill("typed with care"))
			endSession(t, page)
			if name == "with JavaScript" {
				status := page.Locator("#cluster-status")
				must(t, see.Locator(status).ToContainText("signed out"))
				must(t, see.Locator(status.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: regexp.MustCompile("^Sign in")})).ToBeVisible())
				accessible(t, page, "signed out while the page is open")
				picture(t, page, "signed-out-open")
			}
			save := page.Locator("#allocation-form .btn-primary")
			must(t, save.Click())
			must(t, see.Locator(page.Locator("main")).ToContainText("review them and save again"))
			must(t, see.Locator(page.Locator("#team")).ToHaveValue(team))
			must(t, see.Locator(page.Locator("#description")).ToHaveValue("typed with care"))
			if name == "with JavaScript" {
				accessible(t, page, "form resumed")
				picture(t, page, "form-resumed")
			}
			review(t, page)
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
			must(t, see.Locator(page.Locator("main")).ToContainText("Allocation "+team+" was created"))
		})
	}
}

// What the people of the sample see, as pictures.
func TestPagesOfPeople(t *testing.T) {
	t.Parallel()
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{}, "status of 403")
	open(t, page, "/tasks")
	signInBrowser(t, page, "nobody")
	must(t, see.Locator(page.Locator("h1")).ToHaveText("No team yet"))
	must(t, see.Locator(page.Locator("main")).ToContainText("nobody@example.com"))
	for _, scheme := range []*playwright.ColorScheme{playwright.ColorSchemeLight, playwright.ColorSchemeDark} {
		must(t, page.EmulateMedia(playwright.PageEmulateMediaOptions{ColorScheme: scheme}))
		accessible(t, page, "no team")
		picture(t, page, "no-team-"+string(*scheme))
	}
	must(t, page.SetViewportSize(390, 800))
	fits(t, page, "no team at 390")
	picture(t, page, "no-team-390")
}

// Two people use one browser, one after the other, and the first left a form
// open: it is not saved for the second, and not lost.
func TestSomebodyElseInTheSameBrowser(t *testing.T) {
	t.Parallel()
	team := clustertest.Name("mixed")
	removed(t, team)
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{}, "status of 40")
	open(t, page, "/policies/allocations/new")
	signInBrowser(t, page, "admin")
	must(t, page.Locator("#team").Fill(team))
	must(t, page.Locator("#row-0-type").Fill("ml.g5.2xlarge"))
	must(t, page.Locator("#row-0-accelerators").Fill("1"))

	other, err := page.Context().NewPage()
	must(t, err)
	open(t, other, "/tasks")
	must(t, other.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
	must(t, other.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
	signInBrowser(t, other, "nobody")
	must(t, see.Locator(other.Locator("h1")).ToHaveText("No team yet"))

	must(t, page.BringToFront())
	must(t, see.Locator(page.Locator("#cluster-status")).ToContainText("another user is signed in now"))
	must(t, page.Locator("#allocation-form .btn-primary").Click())
	must(t, see.Locator(page.Locator("main")).ToContainText("admin@example.com opened this form, but nobody@example.com is now signed in"))
	accessible(t, page, "another user")
	picture(t, page, "somebody-else")

	must(t, other.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
	must(t, other.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
	signInBrowser(t, other, "admin")
	must(t, see.Locator(other.Locator(".user")).ToContainText("admin@example.com"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Send the form again"}).Click())
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
	must(t, see.Locator(page.Locator("main")).ToContainText("Allocation "+team+" was created"))
}

// A button pressed after the session ended is not lost either: the page goes on
// by itself once its reader has signed in elsewhere.
func TestSignInInAnotherTab(t *testing.T) {
	t.Parallel()
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{}, "status of 401")
	open(t, page, "/policies/allocations/new")
	signInBrowser(t, page, "admin")
	must(t, page.Locator("#team").Fill("kept"))
	endSession(t, page)
	must(t, see.Locator(page.Locator("#cluster-status")).ToContainText("signed out"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Add instance type"}).Click())
	must(t, see.Locator(page.Locator("#preview-status")).ToContainText("you are signed out"))
	other, err := page.ExpectPopup(func() error {
		return page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in in another tab"}).Click()
	})
	must(t, err)
	must(t, see.Locator(other.Locator("h1")).ToHaveText("Signed in"))
	must(t, see.Locator(page.Locator("#cluster-status")).ToContainText("old"))
	must(t, see.Locator(page.Locator("#row-1-type")).ToBeVisible())
	must(t, see.Locator(page.Locator("#team")).ToHaveValue("kept"))
}
