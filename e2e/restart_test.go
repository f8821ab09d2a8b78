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

// A console that is told to end does so in under two seconds with streams open,
// and who was signed in still is at the one that takes its place.
func TestRestart(t *testing.T) {
	c := clustertest.Get(t)
	console(t) // makes the admin's binding
	started, address, err := startConsole("restarted", signInEnv(c)...)
	must(t, err)
	must(t, waitReady(address))
	admin := newPerson(t, address, "admin")
	response, err := admin.Get(address + "/tasks/events")
	must(t, err)
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: fragment") {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	told := time.Now()
	must(t, started.Process.Signal(syscall.SIGTERM))
	must(t, started.Wait())
	if took := time.Since(told); took > 2*time.Second {
		t.Errorf("ending took %s with a stream open", took)
	}
	successor := replica(t, "successor", signInEnv(c)...)
	must(t, waitReady(successor))
	if status, _ := withCookie(t, successor+"/policies", sessionCookie(t, admin, address)); status != http.StatusOK {
		t.Errorf("after a restart somebody signed in gets %d", status)
	}
}
