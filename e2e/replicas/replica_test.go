package replicas_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// replica is one process of the console.
type replica struct {
	t       *testing.T
	name    string
	env     []string
	command *exec.Cmd
	address string // of its pages
	metrics string // of its metrics, host:port
}

// newReplica starts a replica that signs users in at the cluster's provider and
// records in a database. It stops with the test.
func newReplica(t *testing.T, c *clustertest.Cluster, name, database string) *replica {
	t.Helper()
	file := func(name string) string { return filepath.Join(c.Dir, "signin", name) }
	issuer, err := os.ReadFile(file("issuer"))
	must(t, err)
	r := &replica{t: t, name: name, metrics: freeAddress(t), env: append(os.Environ(),
		"KUOTA_LISTEN="+freeAddress(t), "KUOTA_HISTORY="+database, "KUOTA_KUBECONFIG="+filepath.Join(c.Dir, "kubeconfigs", "kuota"),
		"KUOTA_OIDC_ISSUER="+strings.TrimSpace(string(issuer)), "KUOTA_OIDC_CLIENT_ID=kuota", "KUOTA_OIDC_CLIENT_SECRET_FILE="+file("client-secret"),
		"KUOTA_SESSION_KEYS_FILE="+file("session-keys"), "KUOTA_OIDC_USERNAME_CLAIM=email", "KUOTA_OIDC_GROUPS_CLAIM=groups",
	)}
	r.env = append(r.env, "KUOTA_METRICS_ADDRESS="+r.metrics)
	r.start()
	t.Cleanup(func() {
		r.signal(syscall.SIGCONT)
		if t.Failed() {
			r.end(syscall.SIGQUIT) // its log has the goroutines
			return
		}
		r.signal(syscall.SIGTERM)
		_ = r.command.Wait()
	})
	return r
}

// freeAddress returns a loopback address that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// start starts the process, and waits until it listens.
func (r *replica) start() {
	r.t.Helper()
	r.command = exec.Command(filepath.Join(clustertest.Root(), ".local", "bin", "kuota"))
	r.command.Env = r.env
	r.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lines, err := r.command.StderrPipe()
	must(r.t, err)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is bound to the thread that starts the process
		started <- r.command.Start()
		select {}
	}()
	must(r.t, <-started)
	log, err := os.OpenFile(filepath.Join(artefacts(r.t), "replica-"+r.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(r.t, err)
	listening := make(chan string, 1)
	go func() {
		defer log.Close()
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			fmt.Fprintln(log, scanner.Text())
			var line struct{ Msg, Address string }
			if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- line.Address
			}
		}
	}()
	select {
	case r.address = <-listening:
	case <-time.After(patience):
		r.t.Fatalf("replica %s does not listen; see its log in e2e/artefacts", r.name)
	}
}

func artefacts(t *testing.T) string {
	dir := filepath.Join(clustertest.Root(), "e2e", "artefacts")
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

func (r *replica) signal(s syscall.Signal) { _ = r.command.Process.Signal(s) }

// end ends the process by a signal and waits for it.
func (r *replica) end(s syscall.Signal) {
	r.signal(s)
	_ = r.command.Wait()
}

// waitReady waits until the replica serves.
func (r *replica) waitReady() {
	r.t.Helper()
	clustertest.Eventually(r.t, patience, func(ctx context.Context) error {
		return get(ctx, r.address+"/readyz", func(string) error { return nil })
	})
}

// leads returns nil if the metrics of the replica report that it leads.
func (r *replica) leads(ctx context.Context) error {
	return get(ctx, "http://"+r.metrics+"/metrics", func(body string) error {
		if !strings.Contains(body, "\nkuota_leader 1\n") {
			return fmt.Errorf("replica %s does not lead", r.name)
		}
		return nil
	})
}

// waitLeads waits until the replica leads, and returns how long that took.
func (r *replica) waitLeads(limit time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	clustertest.Eventually(r.t, limit, r.leads)
	return time.Since(began)
}

func get(ctx context.Context, address string, check func(body string) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return check(string(body))
}
