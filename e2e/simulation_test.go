package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
)

// TestSimulationFails stops and crashes the process that simulates: the page of a
// waiting task says that it could not be verified and shows the instant answer, all
// else works, and the next simulation succeeds.
func TestSimulationFails(t *testing.T) {
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

	hanging := simulation(t)
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

	crashing := simulation(t)
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

// simulation returns the child process of the console that simulates.
func simulation(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // state, parent, …
		command, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(consoleProcess.Process.Pid) || !bytes.Contains(command, []byte("simulate")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatal("the console has no process that simulates")
	return 0
}
