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

// The sign-in provider goes away: pages say so, who is signed in goes on, and
// it heals without a restart, for a console that started meanwhile too.
func TestProviderAway(t *testing.T) {
	c := clustertest.Get(t)
	admin := newPerson(t, console(t), "admin")
	c.Control(t, "stop", "provider")
	back := false
	t.Cleanup(func() {
		if !back {
			c.Control(t, "start", "provider")
		}
	})

	late := replica(t, "late", signInEnv(c)...)
	must(t, waitReady(late))
	page := visitAsNobody(t, playwright.BrowserNewContextOptions{}, "status of 503")
	if status, body := fetch(t, admin, console(t)+"/policies"); status != http.StatusOK || !strings.Contains(body, "admin@example.com") {
		t.Errorf("somebody signed in gets %d", status)
	}
	// A console that knows the provider sends people to it; one that has never
	// heard of it cannot.
	response, document := load(t, noRedirect(http.DefaultClient), late+"/auth/login?return=/tasks")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(document.Text(), "sign-in provider does not answer") {
		t.Errorf("a console that started without the provider answers %s: %s", response.Status, document.Find("main").Text())
	}
	_, err := page.Goto(late + "/tasks")
	must(t, err)
	must(t, see.Locator(page.Locator("main")).ToContainText("sign-in provider does not answer"))
	accessible(t, page, "provider away")
	picture(t, page, "provider-away")

	c.Control(t, "start", "provider")
	back = true
	clustertest.Eventually(t, 10*time.Second, func(context.Context) error {
		if found, err := page.Locator("#username").Count(); err != nil || found == 1 {
			return err
		}
		if err := page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Try again"}).Click(); err != nil {
			return err
		}
		return fmt.Errorf("it does not lead to the provider yet")
	})
	signInBrowser(t, page, "admin")
	must(t, see.Locator(page.Locator(".user")).ToContainText("admin@example.com"))
}

// A group that somebody loses at the provider is lost here within five minutes,
// on a page that is open all the while. make verify runs it.
func TestGroupLostAtTheProvider(t *testing.T) {
	if os.Getenv("KUOTA_VERIFY") == "" {
		t.Skip("run by make verify")
	}
	c := clustertest.Get(t)
	console(t)
	tenant := makeTenant(t, "left", "speech-team")
	susan := newPerson(t, console(t), "susan")
	clustertest.Eventually(t, 15*time.Second, func(context.Context) error {
		if _, body := fetch(t, susan, console(t)+"/tasks"); !strings.Contains(body, tenant.job) {
			return fmt.Errorf("a member does not see their task")
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
		t.Errorf("the page is told after %s", took)
	}
	fmt.Printf("figure group_lost %.0f s\n", took.Seconds())
	if status, body := fetch(t, susan, console(t)+"/tasks"); status != http.StatusForbidden || strings.Contains(body, tenant.job) {
		t.Errorf("afterwards the page answers %d", status)
	}
}
