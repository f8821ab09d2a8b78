package installed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// build builds the console; flags are those of go build.
func build(t *testing.T, flags ...string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "kuota")
	command := exec.Command("go", slices.Concat([]string{"build", "-ldflags", "-s -w", "-o", binary}, flags, []string{"./cmd/kuota"})...)
	command.Dir = clustertest.Root()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// process is a console that users sign in to at the cluster's provider.
type process struct {
	address string
	command *exec.Cmd
	log     string // its file
	ended   chan struct{}
}

// account is how a console connects to the cluster, and with which arguments.
type account struct {
	kubeconfig string
	args       []string
}

// fromManifests returns the account of deploy/rbac, with the console's own defaults.
func (i *installation) fromManifests() account {
	return account{kubeconfig: filepath.Join(i.Dir, "kubeconfigs", "kuota"), args: []string{"serve"}}
}

// fromRelease returns the account of the release and the arguments of its pod, except
// for what depends on the pod's network and volumes.
func (i *installation) fromRelease(t *testing.T) account {
	t.Helper()
	var pod struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string
					Containers         []struct{ Args []string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(i.Kubectl(t, "", "get", "deployment", "-n", i.namespace, "-l", "app.kubernetes.io/instance="+i.name, "-o", "jsonpath={.items[0]}")), &pod); err != nil {
		t.Fatal(err)
	}
	args := slices.DeleteFunc(pod.Spec.Template.Spec.Containers[0].Args, func(arg string) bool {
		for _, flag := range []string{"--listen=", "--url=", "--oidc-", "--session-", "--metrics-address=", "--activity-dir="} {
			if strings.HasPrefix(arg, flag) {
				return true
			}
		}
		return false
	})
	return account{i.kubeconfig(t, pod.Spec.Template.Spec.ServiceAccountName), args}
}

// env returns the environment of a console in the namespace of the installation.
func (i *installation) env(a account, history string) []string {
	return append(os.Environ(), "KUOTA_KUBECONFIG="+a.kubeconfig, "KUOTA_NAMESPACE="+i.namespace, "KUOTA_HISTORY="+history)
}

// start starts a console, and returns when it is ready. It stops with the test.
func (i *installation) start(t *testing.T, kuota string, a account, history string) *process {
	t.Helper()
	signin := func(name string) string { return filepath.Join(i.Dir, "signin", name) }
	issuer, err := os.ReadFile(signin("issuer"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{command: exec.Command(kuota, a.args...), log: filepath.Join(t.TempDir(), "console.log"), ended: make(chan struct{})}
	p.command.Env = append(i.env(a, history), "KUOTA_LISTEN=127.0.0.1:0",
		"KUOTA_OIDC_ISSUER="+strings.TrimSpace(string(issuer)), "KUOTA_OIDC_CLIENT_ID=kuota", "KUOTA_OIDC_CLIENT_SECRET_FILE="+signin("client-secret"),
		"KUOTA_SESSION_KEYS_FILE="+signin("session-keys"), "KUOTA_OIDC_USERNAME_CLAIM=email", "KUOTA_OIDC_GROUPS_CLAIM=groups")
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.command.Stdout, p.command.Stderr = log, log
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the death signal is bound to the thread that starts the process
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait()
			close(p.ended)
		}
		select {}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", kuota, p.text(t))
		}
	})
	clustertest.Eventually(t, limit, func(ctx context.Context) error {
		select {
		case <-p.ended:
			t.Fatalf("the console ended:\n%s", p.text(t))
		default:
		}
		if p.address == "" {
			p.address = listening(p.text(t))
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", response.Status)
		}
		return nil
	})
	return p
}

// listening returns the address that a log names; empty if it names none yet.
func listening(log string) string {
	for scanner := bufio.NewScanner(strings.NewReader(log)); scanner.Scan(); {
		var line struct{ Msg, Address string }
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "listening" {
			return line.Address
		}
	}
	return ""
}

// stop ends the console like a rolling update does, and waits for that.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.command.Process.Kill()
	}
}

func (p *process) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkPermissions fails the test if the API server denied a request of the console.
func (p *process) checkPermissions(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(p.text(t)) {
		if strings.Contains(line, cluster.DenialMessage) || strings.Contains(line, " cannot ") && strings.Contains(line, "forbidden") {
			t.Errorf("a permission is missing: %s", line)
		}
	}
}
