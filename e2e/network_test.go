package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// network is a TCP proxy between a console and the API server, or between a browser and
// a console. While frozen it forwards nothing and keeps the connections open, like a
// network with an unplugged cable.
type network struct {
	address string
	target  string
	frozen  atomic.Bool
	mu      sync.Mutex
	open    []net.Conn
}

// listen starts the proxy, which runs until the test ends.
func (n *network) listen(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", n.address)
	must(t, err)
	t.Cleanup(func() {
		listener.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, connection := range n.open {
			connection.Close()
		}
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", n.target)
			if err != nil {
				near.Close()
				continue
			}
			n.mu.Lock()
			n.open = append(n.open, near, far)
			n.mu.Unlock()
			go n.forward(near, far)
			go n.forward(far, near)
		}
	}()
}

// forward copies data from one connection to the other.
func (n *network) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		read, err := from.Read(buffer)
		for n.frozen.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:read]); err != nil {
			return
		}
	}
}

// TestUnreachableCluster checks that a console that starts before its cluster reports so
// on its pages, and recovers without a restart. When the network drops a save, the
// console responds with an error and the form within 20 seconds, and a retry saves
// exactly once.
func TestUnreachableCluster(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	n := &network{address: free.Addr().String(), target: strings.TrimPrefix(c.Config.Host, "https://")}
	must(t, free.Close())

	text, err := os.ReadFile(filepath.Join(c.Dir, "kubeconfig"))
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, []byte(strings.ReplaceAll(string(text), n.target, n.address)), 0o600))
	address := replica(t, "unreachable", "KUBECONFIG="+kubeconfig)
	local := http.DefaultClient // no sign-in without an issuer

	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/tasks": 503, "/policies": 503, "/policies/allocations/new": 503} {
		status, body := fetch(t, local, address+path)
		if status != want || want == 503 && path != "/readyz" && !strings.Contains(body, "cannot be reached yet") {
			t.Errorf("%s without a cluster: got status %d, want %d: %.200s", path, status, want, body)
		}
	}
	n.listen(t)
	must(t, waitReady(address))
	if status, body := fetch(t, local, address+"/policies"); status != 200 {
		t.Errorf("/policies with a cluster: got status %d, want 200: %.200s", status, body)
	}

	team := clustertest.Name("frozen")
	deleteTeamAtEnd(t, team)
	values := filledForm(team)
	n.frozen.Store(true)
	began := time.Now()
	status, page := postTo(t, local, address, values)
	took := time.Since(began)
	if status != http.StatusServiceUnavailable || page.Find("#team").AttrOr("value", "") != team || !strings.Contains(page.Find("#form-errors").Text(), "cannot be reached") {
		t.Errorf("dropped save: got status %d after %s, want 503 with the form: %s", status, took, page.Find("#form-errors").Text())
	}
	if took > 20*time.Second {
		t.Errorf("dropped save: got a response after %s, want at most 20s", took)
	}
	n.frozen.Store(false)
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if status, page = postTo(t, local, address, values); status != http.StatusSeeOther {
			return fmt.Errorf("retry: got status %d, want 303: %s", status, page.Find("#form-errors").Text())
		}
		return nil
	})
	var saved v1alpha1.ComputeAllocation
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &saved))
	if saved.Generation != 1 {
		t.Errorf("got generation %d, want 1", saved.Generation)
	}
}
