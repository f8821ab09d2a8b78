package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// signInBrowser signs in on the sample provider's page.
func signInBrowser(t *testing.T, page playwright.Page, name string) {
	t.Helper()
	must(t, page.Locator("#username").Fill(name))
	must(t, page.Locator("#password").Fill("kuota-"+name))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
}

// endSession deletes the session of a browser.
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
	t.Fatal("got no session cookie in the browser, want one")
}

// TestSignInFromLink opens a link while signed out, signs in, reaches the linked page,
// and signs out again.
func TestSignInFromLink(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]playwright.BrowserNewContextOptions{
		"with JavaScript":    {},
		"without JavaScript": {JavaScriptEnabled: playwright.Bool(false)},
	} {
		t.Run(name, func(t *testing.T) {
			page := visitSignedOut(t, options, "status of 401") // of a stream, while the browser is on its way
			open(t, page, "/policies?sort=team")
			must(t, expect.Page(page).ToHaveTitle(regexp.MustCompile("sample provider")))
			signInBrowser(t, page, "admin")
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?sort=team$`)))
			must(t, expect.Locator(page.Locator(".user")).ToContainText("admin@example.com"))
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
			must(t, expect.Page(page).ToHaveURL(regexp.MustCompile("/auth/signed-out")))
			must(t, expect.Locator(page.Locator("h1")).ToHaveText("Signed out"))
			must(t, expect.Locator(page.Locator("nav")).ToHaveCount(0))
			if name == "with JavaScript" {
				accessible(t, page, "signed out")
				screenshot(t, page, "signed-out")
			}
			// The provider's session ended too, so that it asks for the password.
			must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
			must(t, expect.Locator(page.Locator("#username")).ToBeVisible())
		})
	}
}

// TestSessionEndsInBrowser checks that a form keeps its values when the session ends
// before the save, and that an open page reports the end of the session.
func TestSessionEndsInBrowser(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]playwright.BrowserNewContextOptions{
		"with JavaScript":    {},
		"without JavaScript": {JavaScriptEnabled: playwright.Bool(false)},
	} {
		t.Run(name, func(t *testing.T) {
			team := clustertest.Name("resumed")
			deleteTeamAtEnd(t, team)
			page := visitSignedOut(t, options, "status of 401")
			open(t, page, "/policies/allocations/new")
			signInBrowser(t, page, "admin")
			must(t, page.Locator("#team").Fill(team))
			must(t, page.Locator("#"+poolRow(t, page, "ml.g5.2xlarge")+"-accelerators").Fill("1"))
			openMore(t, page)
			must(t, page.Locator("#description").Fill("typed with care"))
			endSession(t, page)
			if name == "with JavaScript" {
				status := page.Locator("#cluster-status")
				must(t, expect.Locator(status).ToContainText("signed out"))
				must(t, expect.Locator(status.GetByRole("link", playwright.LocatorGetByRoleOptions{Name: regexp.MustCompile("^Sign in")})).ToBeVisible())
				accessible(t, page, "signed out while the page is open")
				screenshot(t, page, "signed-out-open")
			}
			save := page.Locator("#allocation-form .btn[value=review]")
			must(t, save.Click())
			must(t, expect.Locator(page.Locator("main")).ToContainText("review them and save again"))
			must(t, expect.Locator(page.Locator("#team")).ToHaveValue(team))
			must(t, expect.Locator(page.Locator("#description")).ToHaveValue("typed with care"))
			if name == "with JavaScript" {
				accessible(t, page, "form resumed")
				screenshot(t, page, "form-resumed")
			}
			review(t, page)
			must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
			must(t, expect.Locator(page.Locator("main")).ToContainText("Allocation "+team+" was created"))
		})
	}
}

// TestPageWithoutTeam checks the page of a user without a team.
func TestPageWithoutTeam(t *testing.T) {
	t.Parallel()
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{}, "status of 403")
	open(t, page, "/tasks")
	signInBrowser(t, page, "nobody")
	must(t, expect.Locator(page.Locator("h1")).ToHaveText("No team yet"))
	must(t, expect.Locator(page.Locator("main")).ToContainText("nobody@example.com"))
	checkAppearance(t, page, "no-team")
}

// TestTwoUsersInOneBrowser leaves a form of one user open while another user signs in
// in the same browser: the form is not saved as the second user, and is not lost.
func TestTwoUsersInOneBrowser(t *testing.T) {
	t.Parallel()
	team := clustertest.Name("mixed")
	deleteTeamAtEnd(t, team)
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{}, "status of 40")
	open(t, page, "/policies/allocations/new")
	signInBrowser(t, page, "admin")
	must(t, page.Locator("#team").Fill(team))
	must(t, page.Locator("#"+poolRow(t, page, "ml.g5.2xlarge")+"-accelerators").Fill("1"))

	other, err := page.Context().NewPage()
	must(t, err)
	open(t, other, "/tasks")
	must(t, other.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
	must(t, other.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
	signInBrowser(t, other, "nobody")
	must(t, expect.Locator(other.Locator("h1")).ToHaveText("No team yet"))

	must(t, page.BringToFront())
	must(t, expect.Locator(page.Locator("#cluster-status")).ToContainText("another user is signed in now"))
	must(t, page.Locator("#allocation-form .btn[value=review]").Click())
	must(t, expect.Locator(page.Locator("main")).ToContainText("admin@example.com opened this form, but nobody@example.com is now signed in"))
	accessible(t, page, "another user")
	screenshot(t, page, "another-user")

	must(t, other.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign out"}).Click())
	must(t, other.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in"}).Click())
	signInBrowser(t, other, "admin")
	must(t, expect.Locator(other.Locator(".user")).ToContainText("admin@example.com"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Send the form again"}).Click())
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Create allocation"}).Click())
	must(t, expect.Locator(page.Locator("main")).ToContainText("Allocation "+team+" was created"))
}

// TestSignInInAnotherTab presses a button after the session has ended. The page runs
// the action once the user has signed in in another tab.
func TestSignInInAnotherTab(t *testing.T) {
	t.Parallel()
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{}, "status of 401")
	open(t, page, "/policies/allocations/new")
	signInBrowser(t, page, "admin")
	must(t, page.Locator("#team").Fill("kept"))
	endSession(t, page)
	must(t, expect.Locator(page.Locator("#cluster-status")).ToContainText("signed out"))
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Add another type"}).Click())
	must(t, expect.Locator(page.Locator("#preview-status")).ToContainText("you are signed out"))
	other, err := page.ExpectPopup(func() error {
		return page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Sign in in another tab"}).Click()
	})
	must(t, err)
	must(t, expect.Locator(other.Locator("h1")).ToHaveText("Signed in"))
	must(t, expect.Locator(page.Locator("#cluster-status")).ToContainText("old"))
	must(t, expect.Locator(page.Locator("input[list=instance-types]")).ToBeVisible())
	must(t, expect.Locator(page.Locator("#team")).ToHaveValue("kept"))
}
