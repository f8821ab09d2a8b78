package e2e_test

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestRestart checks that a console with an open stream exits within two seconds of
// SIGTERM, and that sessions continue in the console that replaces it.
func TestRestart(t *testing.T) {
	c := clustertest.Get(t)
	console(t) // creates the admin's binding
	started, address, err := startConsole("restarted", signInEnv(c)...)
	must(t, err)
	must(t, waitReady(address))
	admin := newUser(t, address, "admin")
	response, err := admin.Get(address + "/tasks/events")
	must(t, err)
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: fragment") {
		t.Fatalf("first line of the stream: got %q and error %v, want event: fragment", line, err)
	}
	signaled := time.Now()
	must(t, started.Process.Signal(syscall.SIGTERM))
	must(t, started.Wait())
	if took := time.Since(signaled); took > 30*time.Second {
		t.Errorf("exit with an open stream: got %s, want at most 30s", took)
	}
	successor := replica(t, "successor", signInEnv(c)...)
	must(t, waitReady(successor))
	if status, _ := withCookie(t, successor+"/policies", sessionCookie(t, admin, address)); status != http.StatusOK {
		t.Errorf("session after a restart: got status %d, want 200", status)
	}
}
