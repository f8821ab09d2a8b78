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

// network stands between a console and the API server. It can be frozen: then
// it swallows what is sent, as a network does whose cable is cut.
type network struct {
	address string
	target  string
	frozen  atomic.Bool
	mu      sync.Mutex
	open    []net.Conn
}

// listen has the network carry connections from now on, until the test ends.
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
			go n.carry(near, far)
			go n.carry(far, near)
		}
	}()
}

func (n *network) carry(to, from net.Conn) {
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

// A console that starts before its cluster answers pages that say so, and
// heals by itself. When the network swallows a save, the person is told soon,
// with the form, and a retry saves once.
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
	local := http.DefaultClient // without an issuer nobody signs in

	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/tasks": 503, "/policies": 503, "/policies/allocations/new": 503} {
		status, body := fetch(t, local, address+path)
		if status != want || want == 503 && path != "/readyz" && !strings.Contains(body, "cannot be reached yet") {
			t.Errorf("before there is a cluster %s answers %d: %.200s", path, status, body)
		}
	}
	n.listen(t)
	must(t, waitReady(address))
	if status, body := fetch(t, local, address+"/policies"); status != 200 {
		t.Errorf("with a cluster it answers %d: %.200s", status, body)
	}

	team := clustertest.Name("frozen")
	removed(t, team)
	values := filledForm(team)
	n.frozen.Store(true)
	began := time.Now()
	status, page := postTo(t, local, address, values)
	took := time.Since(began)
	if status != http.StatusServiceUnavailable || page.Find("#team").AttrOr("value", "") != team || !strings.Contains(page.Find("#form-errors").Text(), "cannot be reached") {
		t.Errorf("a swallowed save answers %d after %s: %s", status, took, page.Find("#form-errors").Text())
	}
	if took > 12*time.Second {
		t.Errorf("the person is told after %s", took)
	}
	n.frozen.Store(false)
	clustertest.Eventually(t, 30*time.Second, func(context.Context) error {
		if status, page = postTo(t, local, address, values); status != http.StatusSeeOther {
			return fmt.Errorf("the retry answers %d: %s", status, page.Find("#form-errors").Text())
		}
		return nil
	})
	var saved v1alpha1.ComputeAllocation
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: team}, &saved))
	if saved.Generation != 1 {
		t.Errorf("saved as generation %d", saved.Generation)
	}
}
