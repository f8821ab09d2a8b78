package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program runs this test binary as localcluster; see TestMain.
func program(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LOCALCLUSTER_AS_PROGRAM=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func TestMain(m *testing.M) {
	if os.Getenv("LOCALCLUSTER_AS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startInstance starts an instance with the sample nodes, and more flags.
func startInstance(t *testing.T, more ...string) layout {
	t.Helper()
	bin := os.Getenv("LOCALCLUSTER_BIN")
	if bin == "" {
		t.Skip("LOCALCLUSTER_BIN is not set to a folder of built binaries")
	}
	l := layout{dir: filepath.Join(t.TempDir(), "a-long-name-so-that-the-socket-does-not-fit-into-its-address-"+strings.Repeat("x", 60))}
	t.Cleanup(func() {
		if out, err := program(t, "down", "--dir", l.dir); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	args := []string{"up", "--dir", l.dir, "--bin", bin, "--nodes", "samples/nodes.yaml", "--detach"}
	out, err := program(t, append(args, more...)...)
	if err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	return l
}

// pidsOf returns the pid of each running component, from the status.
func pidsOf(t *testing.T, l layout) map[string]int {
	t.Helper()
	out, err := program(t, "status", "--dir", l.dir)
	if err != nil {
		t.Fatalf("status: %v\n%s", err, out)
	}
	pids := map[string]int{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if pid, err := strconv.Atoi(f[1]); err == nil {
			pids[f[0]] = pid
		}
	}
	return pids
}

// exitLimit is how long components may take to end without their supervisor.
// They are signalled at once; ending takes processor time that other tests use.
const exitLimit = 20 * time.Second

// waitExited fails the test when a process outlives its supervisor.
func waitExited(t *testing.T, pids map[string]int) {
	t.Helper()
	for name, pid := range pids {
		err := waitFor(context.Background(), exitLimit, func(context.Context) error {
			if syscall.Kill(pid, 0) == nil {
				return errors.New("alive")
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s (pid %d) still runs", name, pid)
		}
	}
}

func TestInstanceSurvivesAStopOfTheAPIServer(t *testing.T) {
	l := startInstance(t)
	pids := pidsOf(t, l)
	if len(pids) != 6 {
		t.Fatalf("%d components are up: %v", len(pids), pids)
	}
	if out, err := program(t, "up", "--dir", l.dir, "--bin", os.Getenv("LOCALCLUSTER_BIN")); err == nil || !strings.Contains(out, "localcluster down") {
		t.Errorf("a second instance: %v\n%s", err, out)
	}
	for _, verb := range []string{"stop", "start"} {
		if out, err := program(t, verb, "kube-apiserver", "--dir", l.dir); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
	}
	after := pidsOf(t, l)
	if after[apiServerName] == pids[apiServerName] || len(after) != 6 {
		t.Errorf("before %v, after %v", pids, after)
	}
	if out, err := program(t, "down", "--dir", l.dir); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	waitExited(t, after)
	if _, err := os.Stat(l.ready()); err == nil {
		t.Error("the ready file still exists")
	}
}

func TestInstanceEndsWhenAComponentExits(t *testing.T) {
	l := startInstance(t)
	pids := pidsOf(t, l)
	if err := syscall.Kill(pids[kueueName], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitExited(t, pids)
	err := waitFor(t.Context(), 10*time.Second, func(context.Context) error { // written last
		if log := logTail(l.log(ownLog)); !strings.Contains(log, "ended because") {
			return fmt.Errorf("the log ends with\n%s", log)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	b, _ := os.ReadFile(l.log(ownLog))
	if !strings.Contains(string(b), "kueue (pid "+strconv.Itoa(pids[kueueName])+") ended unexpectedly") {
		t.Error("the log does not name the component")
	}
}

func TestComponentsDieWithAKilledSupervisor(t *testing.T) {
	l := startInstance(t)
	pids := pidsOf(t, l)
	if err := syscall.Kill(supervisorPID(l), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitExited(t, pids)
}
