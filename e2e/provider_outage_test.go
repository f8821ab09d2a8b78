package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestProviderOutage stops the sign-in provider: pages report it, users who are signed
// in can continue, and sign-in recovers without a restart, also in a console that
// started during the outage.
func TestProviderOutage(t *testing.T) {
	c := clustertest.Get(t)
	admin := newUser(t, console(t), "admin")
	c.Control(t, "stop", "provider")
	restarted := false
	t.Cleanup(func() {
		if !restarted {
			c.Control(t, "start", "provider")
		}
	})

	late := replica(t, "late", signInEnv(c)...)
	must(t, waitReady(late))
	page := visitSignedOut(t, playwright.BrowserNewContextOptions{}, "status of 503")
	if status, body := fetch(t, admin, console(t)+"/policies"); status != http.StatusOK || !strings.Contains(body, "admin@example.com") {
		t.Errorf("policies for a signed-in user: got status %d, want 200", status)
	}
	// A console that has read the provider's configuration redirects to it; a console
	// that started without the provider cannot.
	response, document := load(t, noRedirect(http.DefaultClient), late+"/auth/login?return=/tasks")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(document.Text(), "sign-in provider does not answer") {
		t.Errorf("sign-in of a console that started without the provider: got %s, want 503: %s", response.Status, document.Find("main").Text())
	}
	_, err := page.Goto(late + "/tasks")
	must(t, err)
	must(t, expect.Locator(page.Locator("main")).ToContainText("sign-in provider does not answer"))
	accessible(t, page, "provider outage")
	screenshot(t, page, "provider-outage")

	c.Control(t, "start", "provider")
	restarted = true
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if found, err := page.Locator("#username").Count(); err != nil || found == 1 {
			return err
		}
		if err := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Try again"}).Click(); err != nil {
			return err
		}
		return fmt.Errorf("got no sign-in form of the provider, want one")
	})
	signInBrowser(t, page, "admin")
	must(t, expect.Locator(page.Locator(".user")).ToContainText("admin@example.com"))
}

// TestGroupLostAtTheProvider checks that a user who loses a group at the provider loses
// it in the console within five minutes, also on an open page. make verify runs it.
func TestGroupLostAtTheProvider(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	console(t)
	tenant := makeTenant(t, "left", "speech-team")
	susan := newUser(t, console(t), "susan")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if _, body := fetch(t, susan, console(t)+"/tasks"); !strings.Contains(body, tenant.job) {
			return fmt.Errorf("tasks of a member: got no %s, want it", tenant.job)
		}
		return nil
	})
	file := filepath.Join(c.Dir, "signin", "users.yaml")
	before, err := os.ReadFile(file)
	must(t, err)
	t.Cleanup(func() { _ = os.WriteFile(file, before, 0o600) })
	must(t, os.WriteFile(file, []byte(strings.Replace(string(before), "groups: [speech-team]", "groups: [former-speech-team]", 1)), 0o600))
	lost := time.Now()

	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, console(t)+"/tasks/events", nil)
	must(t, err)
	response, err := susan.Do(request)
	must(t, err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan() && !strings.Contains(lines.Text(), "You are no longer a member of any team"); {
	}
	took := time.Since(lost)
	if ctx.Err() != nil || took > 5*time.Minute {
		t.Errorf("event of the lost group: got it after %s, want at most 5m", took)
	}
	fmt.Printf("figure group_lost %.0f s\n", took.Seconds())
	if status, body := fetch(t, susan, console(t)+"/tasks"); status != http.StatusForbidden || strings.Contains(body, tenant.job) {
		t.Errorf("tasks after the loss: got status %d, want 403 without the task", status)
	}
}
