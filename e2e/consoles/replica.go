package consoles

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

// Patience is how long a test waits for what has no bound of its own.
const Patience = time.Minute

// Replica is one process of the console. Its methods are for one goroutine; Name,
// Address and Metrics do not change.
type Replica struct {
	Name    string
	Address string // of its pages, such as http://127.0.0.1:40001
	Metrics string // of its metrics, host:port

	t       testing.TB
	env     []string
	command *exec.Cmd
}

// New starts a replica that signs users in at the cluster's provider and records in a
// database. env, name=value, is added to its environment. It stops with the test.
func New(t testing.TB, c *clustertest.Cluster, name, database string, env ...string) *Replica {
	t.Helper()
	file := func(name string) string { return filepath.Join(c.Dir, "signin", name) }
	issuer, err := os.ReadFile(file("issuer"))
	must(t, err)
	listen := FreeAddress(t)
	r := &Replica{t: t, Name: name, Address: "http://" + listen, Metrics: FreeAddress(t), env: append(os.Environ(),
		"KUOTA_LISTEN="+listen, "KUOTA_HISTORY="+database, "KUOTA_KUBECONFIG="+filepath.Join(c.Dir, "kubeconfigs", "kuota"),
		"KUOTA_OIDC_ISSUER="+strings.TrimSpace(string(issuer)), "KUOTA_OIDC_CLIENT_ID=kuota", "KUOTA_OIDC_CLIENT_SECRET_FILE="+file("client-secret"),
		"KUOTA_SESSION_KEYS_FILE="+file("session-keys"), "KUOTA_OIDC_USERNAME_CLAIM=email", "KUOTA_OIDC_GROUPS_CLAIM=groups",
	)}
	r.env = append(append(r.env, "KUOTA_METRICS_ADDRESS="+r.Metrics), env...)
	r.Start()
	t.Cleanup(func() {
		r.Signal(syscall.SIGCONT)
		if t.Failed() {
			r.End(syscall.SIGQUIT) // its log has the goroutines
			return
		}
		r.End(syscall.SIGTERM)
	})
	return r
}

// FreeAddress returns a loopback address that no process listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// Start starts the process after its end, and waits until it listens.
func (r *Replica) Start() {
	r.t.Helper()
	r.command = exec.Command(filepath.Join(clustertest.Root(), ".local", "bin", "kuota"), "serve")
	r.command.Env = r.env
	lines, err := r.command.StderrPipe()
	must(r.t, err)
	must(r.t, StartChild(r.command, syscall.SIGKILL))
	log, err := os.OpenFile(filepath.Join(artefacts(r.t), "replica-"+r.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
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
	case got := <-listening:
		if got != r.Address {
			r.t.Fatalf("replica %s listens at %s, want %s", r.Name, got, r.Address)
		}
	case <-time.After(Patience):
		r.t.Fatalf("replica %s does not listen; see its log in e2e/artefacts", r.Name)
	}
}

// StartChild starts a program that gets a signal when this process ends in any way.
func StartChild(command *exec.Cmd, atEnd syscall.Signal) error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: atEnd}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is bound to the thread that starts the process
		started <- command.Start()
		select {}
	}()
	return <-started
}

func artefacts(t testing.TB) string {
	dir := filepath.Join(clustertest.Root(), "e2e", "artefacts")
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// PID returns the number of the process.
func (r *Replica) PID() int { return r.command.Process.Pid }

// Signal sends a signal to the process.
func (r *Replica) Signal(s syscall.Signal) { _ = r.command.Process.Signal(s) }

// End ends the process by a signal and waits for it.
func (r *Replica) End(s syscall.Signal) {
	r.Signal(s)
	_ = r.command.Wait()
}

// WaitEnd waits until the process ends by itself.
func (r *Replica) WaitEnd(limit time.Duration) {
	r.t.Helper()
	late := time.AfterFunc(limit, func() { r.Signal(syscall.SIGKILL) })
	_ = r.command.Wait()
	if !late.Stop() {
		r.t.Fatalf("replica %s did not end within %s", r.Name, limit)
	}
}

// WaitReady waits until the replica serves.
func (r *Replica) WaitReady() {
	r.t.Helper()
	clustertest.Eventually(r.t, Patience, func(ctx context.Context) error {
		_, err := Get(ctx, http.DefaultClient, r.Address+"/readyz")
		return err
	})
}

// Leads returns nil if the metrics of the replica report that it leads.
func (r *Replica) Leads(ctx context.Context) error {
	body, err := Get(ctx, http.DefaultClient, "http://"+r.Metrics+"/metrics")
	if err == nil && !strings.Contains(body, "\nkuota_leader 1\n") {
		err = fmt.Errorf("replica %s does not lead", r.Name)
	}
	return err
}

// WaitLeads waits until the replica leads, and returns how long that took.
func (r *Replica) WaitLeads(limit time.Duration) time.Duration {
	r.t.Helper()
	began := time.Now()
	clustertest.Eventually(r.t, limit, r.Leads)
	return time.Since(began)
}

// Get returns the body of a response with status 200 that arrives within two seconds.
func Get(ctx context.Context, client *http.Client, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", address, response.Status)
	}
	return string(body), nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
