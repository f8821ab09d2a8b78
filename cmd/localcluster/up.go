package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

type upOptions struct {
	dir, bin, crds, rbac, nodes, samples, users, console string
	apiPort, consolePort                                 int
	tokenLife                                            time.Duration
	detach, still, resettable                            bool
}

// load is what the sample teams do; nil for nothing.
func (o upOptions) load() (*load, error) {
	path := filepath.Join(o.samples, "load.yaml")
	if _, err := os.Stat(path); o.samples == "" || o.still || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return readLoad(path)
}

// preflight finds everything that would stop a start, before anything starts
// and before anything is deleted. It returns the instance's lock.
func preflight(l layout, o upOptions) (*os.File, error) {
	if _, err := os.Stat(kueueInstall(absolute(o.bin))); err != nil {
		return nil, fmt.Errorf("%s holds no finished build; run: localcluster build --bin %s", o.bin, o.bin)
	}
	for flagName, path := range map[string]string{
		"--console": o.console, "--nodes": o.nodes, "--samples": o.samples, "--users": o.users, "--rbac": o.rbac,
	} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: %w", flagName, err)
		}
	}
	if o.console != "" && o.rbac == "" {
		return nil, errors.New("--console needs --rbac: the console has an identity of its own, which may do nothing without")
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

// up runs an instance until it is told to end, or a component ends by itself.
func up(o upOptions) error {
	begin := time.Now()
	l, err := newLayout(o.dir)
	if err != nil {
		return err
	}
	lock, err := preflight(l, o)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := l.makeFresh(); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newSupervisor(l, say)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		say("%s: stopping (again to stop at once)", sig)
		cancel()
		<-signals
		s.killAll()
	}()
	listener, cleanup, err := listenControl(l)
	if err != nil {
		return err
	}
	defer cleanup()
	defer listener.Close()
	go s.serveControl(ctx, listener, cancel)

	started := make(chan error, 1)
	go func() { started <- s.startAll(ctx, o, begin) }()
	for {
		select {
		case err = <-started:
			if err == nil {
				continue
			}
		case err = <-s.fatal:
		case <-ctx.Done():
			err = nil
		}
		break
	}
	// The reason first, since stopping takes seconds.
	if ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		say("%v", err)
	}
	cancel()
	l.remove("ready", "url")
	stopBegin := time.Now()
	s.shutdown()
	say("stopped (%.1f s)", time.Since(stopBegin).Seconds())
	if err != nil {
		return errors.New("ended because of the failure above")
	}
	return nil
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
