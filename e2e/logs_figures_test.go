package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"

	"github.com/playwright-community/playwright-go"
)

// floodSize is how much a container writes while its log is open.
const floodSize = 1_000_000_000

// TestLogFigures measures an open log while its container writes 1 GB at 10 MB/s. make
// bench runs it.
func TestLogFigures(t *testing.T) {
	if os.Getenv("KUOTA_BENCH") == "" {
		t.Skip("measured by make bench")
	}
	console(t)
	path, namespace, node := logTask(t)
	ada := user(t, console(t), "ada")
	pod := logPod(t, ada, path, namespace)
	k := startKubelet(t, node)
	k.write("hello\n")

	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, path) // so that the console has served a page
	idle := resident(t, consoleProcess)
	open(t, page, path+"/logs?pod="+pod)
	last := page.Locator("#log-lines .log-line").Last()
	must(t, expect.Locator(last).ToHaveText("hello"))

	k.set(func() { k.flood = true })
	began := time.Now()
	paused := make(chan any, 1)
	go func() {
		pause, err := page.Evaluate(longestPause, 90_000) // the flood takes 100 s
		if err != nil {
			pause = err
		}
		paused <- pause
	}()
	var largest int64
	var pages []time.Duration
	written := 0
	for sample := time.NewTicker(200 * time.Millisecond); written < floodSize; <-sample.C {
		if largest = max(largest, resident(t, consoleProcess)); len(pages) < int(time.Since(began)/time.Second) {
			asked := time.Now()
			if status, _ := fetch(t, ada, console(t)+path); status != http.StatusOK {
				t.Fatalf("the task's page: got status %d, want 200", status)
			}
			pages = append(pages, time.Since(asked))
		}
		k.set(func() { written = k.flooded })
	}
	took := time.Since(began)
	k.set(func() { k.flood = false })
	k.write("after the flood\n")
	stopped := time.Now()
	must(t, expect.Locator(last).ToHaveText("after the flood"))
	behind := time.Since(stopped)

	fmt.Printf("figure log_rate %.1f MB/s\n", float64(written)/1e6/took.Seconds())
	fmt.Printf("figure log_memory_growth %.1f MB\n", float64(largest-idle)/1e6)
	fmt.Printf("figure log_page_longest_pause %.0f ms\n", number(t, <-paused))
	fmt.Printf("figure log_last_line_after %.1f ms\n", float64(behind.Microseconds())/1000)
	consoles.Figures(t, "log_other_page", pages)
	if growth := largest - idle; growth > 20_000_000 {
		t.Errorf("the console's memory grew by %d bytes, want at most 20 MB", growth)
	}
}

// resident returns the resident memory of a process in bytes.
func resident(t *testing.T, process *exec.Cmd) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Process.Pid))
	must(t, err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	kB, err := strconv.ParseInt(string(found[1]), 10, 64)
	must(t, err)
	return kB << 10
}
