package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const greeting = "hello from a container"

// greeterSource is a program that connects to Service kubernetes by its name, prints a
// line and waits for SIGTERM.
const greeterSource = `package main

import ("fmt"; "net"; "os"; "os/signal"; "syscall"; "time")

func main() {
	address := net.JoinHostPort("kubernetes.default", os.Getenv("KUBERNETES_SERVICE_PORT"))
	_, err := net.DialTimeout("tcp", address, time.Second)
	for begin := time.Now(); err != nil && time.Since(begin) < time.Minute; { // kube-proxy may still start
		_, err = net.DialTimeout("tcp", address, time.Second)
	}
	fmt.Println("` + greeting + `, user", os.Getuid(), "API server", err)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}
`

const greeterPod = `apiVersion: v1
kind: Pod
metadata: {name: greeter, namespace: default}
spec:
  nodeSelector: {kubernetes.io/hostname: real-node}
  containers:
  - name: greeter
    image: localhost/greeter:1
    imagePullPolicy: Never
    securityContext: {runAsUser: 65532, readOnlyRootFilesystem: true}
    resources: {limits: {cpu: 100m, memory: 64Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: simulated, namespace: default}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [real-node]}]
  tolerations: [{operator: Exists}]
  containers:
  - {name: c, image: example.invalid/none}
`

// machine is what an instance must leave as it was.
type machine struct{ Mounts, Links, Routes, Cgroups, Processes string }

// observe returns the state of this machine. Other instances on it have no real
// node while this test runs.
func observe(t *testing.T) machine {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	cgroups, _ := filepath.Glob("/sys/fs/cgroup/*/localcluster-*")
	folders, _ := filepath.Glob("/sys/fs/cgroup/localcluster-*")
	var processes []string
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range names {
		name, _ := os.ReadFile(file)
		if slices.Contains([]string{"kubelet", "kube-proxy", "coredns", "containerd", "containerd-shim", "pause", "greeter"}, strings.TrimSpace(string(name))) {
			processes = append(processes, string(name))
		}
	}
	slices.Sort(processes)
	return machine{
		Mounts: string(mounts), Links: output(t, "ip", "-brief", "link"), Routes: output(t, "ip", "route"),
		Cgroups: strings.Join(append(cgroups, folders...), "\n"), Processes: strings.Join(processes, ""),
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// A pod with an imported image runs in a container on the real node, beside the
// simulated ones, and nothing of the node remains when the instance has ended.
func TestRealNode(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		t.Skip("LOCALCLUSTER_BIN is not set to a folder of built binaries")
	}
	if err := checkNode(bin); err != nil {
		t.Skip(err)
	}
	before := observe(t)
	l := startInstance(t, "--real-node")
	kubectl := func(args ...string) (string, error) {
		out, err := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", l.kubeconfig()}, args...)...).CombinedOutput()
		return string(out), err
	}
	dir := t.TempDir()
	source, binary, archive, pods := filepath.Join(dir, "main.go"), filepath.Join(dir, "greeter"), filepath.Join(dir, "greeter.tar"), filepath.Join(dir, "pods.yaml")
	for file, text := range map[string]string{source: greeterSource, pods: greeterPod} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "env", "CGO_ENABLED=0", "go", "build", "-o", binary, source)
	if err := writeImage(archive, "localhost/greeter:1", binary); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, "import", archive, "--dir", l.dir); err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
	if out, err := kubectl("apply", "-f", pods); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	eventually(t, func() error {
		out, err := kubectl("logs", "greeter")
		if want := greeting + ", user 65532 API server <nil>\n"; err != nil || out != want {
			events, _ := kubectl("describe", "pod", "greeter")
			return fmt.Errorf("kubectl logs returns %q (%v), want %q\n%s", out, err, want, events)
		}
		return nil
	})
	eventually(t, func() error {
		if out, err := kubectl("get", "pod", "simulated", "-o", "jsonpath={.status.phase}"); err != nil || out != "Running" {
			return fmt.Errorf("the pod on a simulated node is %q (%v), want Running", out, err)
		}
		return nil
	})
	if during := observe(t); during.Links == before.Links || during.Cgroups == before.Cgroups || !strings.Contains(during.Processes, "greeter") {
		t.Errorf("the container is not seen on this machine, so the checks below show nothing: %+v", during)
	}

	// A node that was off: its containers start again with it.
	for _, verb := range []string{"stop", "start"} {
		if out, err := program(t, verb, nodeComponentName, "--dir", l.dir); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
	}
	eventually(t, func() error {
		out, err := kubectl("get", "pod", "greeter", "-o", "jsonpath={.status.containerStatuses[0].restartCount}{.status.containerStatuses[0].ready}")
		if err != nil || out != "1true" {
			return fmt.Errorf("restarts and readiness are %q (%v), want 1true", out, err)
		}
		return nil
	})

	if out, err := program(t, "down", "--dir", l.dir); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	if diff := cmp.Diff(before, observe(t)); diff != "" {
		t.Errorf("what down left (-before +after):\n%s", diff)
	}
}

// A supervisor that is killed leaves no process, mount and network interface of
// its real node, and down removes the cgroups.
func TestRealNodeEndsWithAKilledSupervisor(t *testing.T) {
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		t.Skip("LOCALCLUSTER_BIN is not set to a folder of built binaries")
	}
	if err := checkNode(bin); err != nil {
		t.Skip(err)
	}
	before := observe(t)
	l := startInstance(t, "--real-node")
	if err := syscall.Kill(supervisorPID(l), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := waitFor(t.Context(), exitLimit, func(context.Context) error {
		if isRunning(l) {
			return fmt.Errorf("the instance still runs")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, "down", "--dir", l.dir); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	eventually(t, func() error { // the kernel removes a namespace in the background
		if diff := cmp.Diff(before, observe(t)); diff != "" {
			return fmt.Errorf("what remains (-before +after):\n%s", diff)
		}
		return nil
	})
}

// eventually waits for a state of the cluster.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	if err := waitFor(t.Context(), 2*time.Minute, func(context.Context) error { return check() }); err != nil {
		t.Fatal(err)
	}
}
