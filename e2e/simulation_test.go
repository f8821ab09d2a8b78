package e2e_test

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestSimulationFails stops and crashes the process that simulates: the page of a
// waiting task says that it could not be verified and shows the instant answer, all
// else works, and the next simulation succeeds.
func TestSimulationFails(t *testing.T) {
	clustertest.OnlyVerify(t)
	c := clustertest.Get(t)
	console(t)
	team := makePoolTeam(t, trainium, "simulated", "accelerators: 2, vCPU: 8")
	c.Kubectl(t, neuronJob(team, "waits", 4), "create", "-f", "-")
	page := visit(t, playwright.BrowserNewContextOptions{})
	open(t, page, "/tasks/hyperpod-ns-"+team+"/job/waits")
	checked, changes := page.Locator("#checked"), page.Locator("#task-changes li")
	patient := playwright.LocatorAssertionsToHaveAttributeOptions{Timeout: playwright.Float(60_000)}
	verified := func() {
		t.Helper()
		must(t, expect.Locator(checked).ToHaveAttribute("data-state", "verified", patient))
		must(t, expect.Locator(changes.First()).ToHaveAttribute("data-verified", "true"))
	}
	verified()
	jobs := 0
	change := func() { // what is shown is computed again when something changed
		time.Sleep(3 * time.Second)
		jobs++
		c.Kubectl(t, neuronJob(team, "other-"+strconv.Itoa(jobs), 4), "create", "-f", "-")
	}

	hanging := consoles.Simulation(t, consoleProcess.Process.Pid)
	if err := syscall.Kill(hanging, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	change()
	must(t, expect.Locator(checked).ToHaveAttribute("data-state", "failed", patient))
	must(t, expect.Locator(checked).ToContainText("This could not be verified with Kueue's scheduler: the simulation took too long."))
	must(t, expect.Locator(changes.First()).ToHaveAttribute("data-verified", "false"))
	if code, _ := fetch(t, user(t, console(t), "admin"), console(t)+"/tasks?team="+team); code != http.StatusOK {
		t.Errorf("the list of tasks answers %d", code)
	}
	change()
	verified()

	crashing := consoles.Simulation(t, consoleProcess.Process.Pid)
	if crashing == hanging {
		t.Error("the process that hung still simulates")
	}
	if err := syscall.Kill(crashing, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	at, err := checked.GetAttribute("data-at")
	must(t, err)
	change()
	must(t, expect.Locator(checked).Not().ToHaveAttribute("data-at", at, patient))
	verified()
}
