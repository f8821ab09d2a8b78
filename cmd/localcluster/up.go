package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

type upOptions struct {
	dir, bin, crds, rbac, nodes, samples, users, console string
	auditPolicy, auditWebhook                            string
	apiPort, consolePort                                 int
	tokenLife                                            time.Duration
	still, resettable, realNode                          bool
	kinds                                                []string
}

// load returns the load of the samples, or nil without one.
func (o upOptions) load() (*load, error) {
	path := filepath.Join(o.samples, "load.yaml")
	if _, err := os.Stat(path); o.samples == "" || o.still || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return readLoad(path)
}

// preflight finds every mistake that would fail the start, before anything
// starts and before anything is deleted. It returns the instance's lock.
func preflight(l layout, o upOptions) (*os.File, error) {
	if _, err := os.Stat(kueueInstall(absolute(o.bin))); err != nil {
		return nil, fmt.Errorf("%s has no complete build; run: localcluster build --bin %s", o.bin, o.bin)
	}
	if err := checkOperators(absolute(o.bin), o.kinds); err != nil {
		return nil, fmt.Errorf("--kinds: %w", err)
	}
	if o.realNode {
		if err := checkNode(absolute(o.bin)); err != nil {
			return nil, fmt.Errorf("--real-node: %w", err)
		}
	}
	for flagName, path := range map[string]string{
		"--console": o.console, "--nodes": o.nodes, "--samples": o.samples, "--users": o.users, "--rbac": o.rbac,
		"--audit-policy": o.auditPolicy, "--audit-webhook": o.auditWebhook,
	} {
		if path == "" {
			continue
		}
		st, err := os.Stat(path)
		if err == nil && flagName == "--samples" && !st.IsDir() {
			err = fmt.Errorf("%s is not a folder", path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flagName, err)
		}
	}
	if o.console != "" && o.rbac == "" {
		return nil, errors.New("--console needs --rbac: the console has its own identity, which has no permissions without")
	}
	if _, err := o.load(); err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	if o.users != "" {
		if _, err := provider.ReadUsers(o.users); err != nil {
			return nil, fmt.Errorf("--users: %w", err)
		}
	}
	lock, err := lockInstance(l)
	if err != nil {
		return nil, err
	}
	err = l.checkOwned()
	if err == nil && o.apiPort != 0 {
		err = checkPortFree(o.apiPort, "--api-port")
	}
	if err == nil && o.console != "" && o.consolePort != 0 {
		err = checkPortFree(o.consolePort, "--console-port")
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// up runs an instance until it is stopped or a component ends unexpectedly.
func up(o upOptions) error {
	begin := time.Now()
	l := layout{dir: absolute(o.dir)}
	lock, err := preflight(l, o)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := l.reset(); err != nil {
		return err
	}
	ports, reservation, err := reservePorts(portLocks(), o.apiPort, o.consolePort)
	if err != nil {
		return err
	}
	defer reservation.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newSupervisor(ctx, l, say)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		say("%s: stopping (again to stop at once)", sig)
		cancel()
		<-signals
		s.killAll()
	}()
	closeControl, err := control{
		"Stop":   s.stopByName,
		"Start":  s.startByName,
		"Status": func(string) (string, error) { return s.status(), nil },
		"Reset":  func(string) (string, error) { return s.reset() },
		"Import": s.importImages,
		"Down":   func(string) (string, error) { cancel(); return "", nil },
	}.serve(l)
	if err != nil {
		return err
	}
	defer closeControl()

	go func() {
		if err := s.startAll(ctx, o, ports, begin); err != nil {
			s.fail(err)
		}
	}()
	select {
	case err = <-s.fatal:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		err = nil // stopped on request; errors only follow from that
	}
	if err != nil {
		say("%v", err) // now, since stopping takes seconds
	}
	cancel()
	l.remove("ready", "url")
	stopBegin := time.Now()
	s.shutdown()
	if o.realNode {
		nodeNetwork{index: ports.block}.disconnect()
		removeCgroups(l)
	}
	say("stopped (%.1f s)", time.Since(stopBegin).Seconds())
	if err != nil {
		return errors.New("ended because of the failure above")
	}
	return nil
}

// detach runs the same command in the background and returns when it is ready.
func detach(o upOptions) error {
	l := layout{dir: absolute(o.dir)}
	// Mistakes are printed here, on the terminal, and leave the log of a running
	// instance unchanged.
	lock, err := preflight(l, o)
	if err != nil {
		return err
	}
	lock.Close()
	if err := os.MkdirAll(l.path("logs"), 0o755); err != nil {
		return fmt.Errorf("create folder of logs: %w", err)
	}
	log, err := os.Create(l.log(ownLog))
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "--detach") })
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the cluster did not start: %v; the end of %s:\n%s", err, log.Name(), logTail(log.Name()))
		case <-time.After(pollInterval):
		}
		if readPID(l.ready()) == cmd.Process.Pid { // not the file of an earlier run
			b, err := os.ReadFile(log.Name())
			_, _ = os.Stdout.Write(b)
			return err
		}
	}
}

func say(format string, args ...any) {
	fmt.Printf("%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
