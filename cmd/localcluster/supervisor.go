package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Names of components, in commands and logs.
const (
	etcdName              = "etcd"
	apiServerName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kueueName             = "kueue"
	kwokName              = "kwok"
	consoleName           = "kuota"
	providerName          = "provider"
	nodeComponentName     = "real-node"
	prometheusName        = "prometheus"
)

// shutdownOrder lists the components that stop together: writers before what
// stores their writes.
var shutdownOrder = [][]string{
	{consoleName, providerName, prometheusName},
	append(operatorNames(), nodeComponentName, kwokName, kueueName, schedulerName, controllerManagerName),
	{apiServerName},
	{etcdName},
}

const (
	// startLimit is generous: a start of two seconds takes many while tests use
	// all cores.
	startLimit = 2 * time.Minute

	// apiRecovery is how long after the return of the API server an exit of
	// another component counts as caused by its absence.
	apiRecovery = 30 * time.Second
)

// state is the state of a component as status shows it:
//
//	starting ──ready──▶ up ──exit──▶ failed, or waiting while the API server is stopped
//	    └──────exit──▶ failed        waiting ──API server is up──▶ starting
//
// Every state becomes stopped on request.
type state string

const (
	stopped  state = "stopped"
	starting state = "starting"
	running  state = "up"
	failed   state = "failed"
	waiting  state = "waiting"
)

// errExited is the cause of a failed start whose process exited.
var errExited = errors.New("ended")

// component is one program that the supervisor runs.
type component struct {
	name      string
	path      string
	args, env []string
	grace     time.Duration               // between SIGTERM and SIGKILL; all together stay below five seconds
	ready     func(context.Context) error // one attempt
	prepare   func(context.Context) error // optional; runs before a start on request and may change args
	ports     []namedPort
	optional  bool // the instance goes on when it exits

	// namespaces has the clone flags of the namespaces that the process gets; it
	// is PID 1 of a new PID namespace. Optional, as is started, which runs when
	// the process has its pid.
	namespaces uintptr
	started    func(pid int) error

	op sync.Mutex // serializes starts and stops

	state state    // guarded by supervisor.mu
	proc  *process // guarded by supervisor.mu
}

type namedPort struct {
	use  string
	port int
}

// supervisor runs components, and reports on fatal when one exits unexpectedly.
type supervisor struct {
	ctx    context.Context // has ended when shutdown is called
	layout layout
	say    func(format string, args ...any)
	fatal  chan error

	kueue    *kueueUnit
	bin      string           // folder of the binaries; set before the real node starts
	etcd     *clientv3.Client // nil unless resettable, as is baseline
	baseline store            // etcd when the instance became ready

	mu           sync.Mutex
	components   []*component // in the order of their first start
	apiStopped   bool         // the API server or etcd was stopped on request
	apiRecovered time.Time    // until then, exits count as caused by the API server's absence
	closing      bool
}

func newSupervisor(ctx context.Context, l layout, say func(string, ...any)) *supervisor {
	return &supervisor{ctx: ctx, layout: l, say: say, fatal: make(chan error, 1)}
}

// run starts a component for the first time.
func (s *supervisor) run(ctx context.Context, c *component) error {
	s.mu.Lock()
	s.components = append(s.components, c)
	s.mu.Unlock()
	c.op.Lock()
	defer c.op.Unlock()
	if err := s.start(ctx, c); err != nil {
		return s.withLog(c, err)
	}
	return nil
}

// start starts a component and returns when it is ready. The caller holds c.op.
func (s *supervisor) start(ctx context.Context, c *component) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return context.Canceled
	}
	p, err := startProcess(c.path, c.args, c.env, s.layout.log(c.name), c.grace, c.namespaces)
	if err != nil {
		c.state = failed
		s.mu.Unlock()
		return err
	}
	c.state, c.proc = starting, p
	s.mu.Unlock()
	go func() {
		<-p.ended
		cancel(fmt.Errorf("%w: %s", errExited, p.ProcessState))
		s.exited(c, p)
	}()
	if c.started != nil {
		if err := c.started(p.Process.Pid); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if err := waitFor(ctx, startLimit, c.ready); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.state != starting {
		return fmt.Errorf("%s: %w: %s", c.name, errExited, p.ProcessState)
	}
	c.state = running
	return nil
}

// exited handles the exit of a process that was not stopped on request. During
// a start, start reports it.
func (s *supervisor) exited(c *component, p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.proc != p || c.state == stopped || s.closing:
	case c.state == starting:
		c.state = failed
	case c.name != apiServerName && (s.apiStopped || time.Now().Before(s.apiRecovered)):
		c.state = waiting
		s.say("%s ended (%s) while the API server was stopped; it starts again with it", c.name, p.ProcessState)
		if !s.apiStopped {
			go s.revive(c)
		}
	case c.optional:
		c.state = failed
		s.say("%s ended: %s", c.name, p.ProcessState)
	default:
		c.state = failed
		s.fail(s.withLog(c, fmt.Errorf("%s (pid %d) ended unexpectedly: %s", c.name, p.Process.Pid, p.ProcessState)))
	}
}

// fail reports the first error; later ones follow from it.
func (s *supervisor) fail(err error) {
	select {
	case s.fatal <- err:
	default:
	}
}

func (s *supervisor) withLog(c *component, err error) error {
	log := s.layout.log(c.name)
	return fmt.Errorf("%w; the end of %s:\n%s", err, log, logTail(log))
}

// revive starts a component that exited because the API server was stopped.
func (s *supervisor) revive(c *component) {
	c.op.Lock()
	defer c.op.Unlock()
	if s.stateOf(c) != waiting {
		return
	}
	if err := s.start(s.ctx, c); err != nil {
		s.fail(s.withLog(c, fmt.Errorf("start again: %w", err)))
		return
	}
	s.say("%s is up again", c.name)
}

// stop stops a component. The caller holds c.op.
func (s *supervisor) stop(c *component) {
	s.mu.Lock()
	c.state = stopped
	p := c.proc
	s.mu.Unlock()
	if p != nil {
		p.stop()
		<-p.ended
	}
}

// stopByName stops a component on request.
func (s *supervisor) stopByName(name string) (string, error) {
	c, err := s.find(name)
	if err != nil {
		return "", err
	}
	c.op.Lock()
	defer c.op.Unlock()
	if s.stateOf(c) == stopped {
		return name + " was already stopped", nil
	}
	if name == apiServerName || name == etcdName { // the API server cannot answer without etcd
		s.mu.Lock()
		s.apiStopped = true
		s.mu.Unlock()
	}
	s.stop(c)
	s.say("%s stopped on request", name)
	return name + " stopped", nil
}

// startByName starts a component on request and returns when it is ready.
func (s *supervisor) startByName(name string) (string, error) {
	c, err := s.find(name)
	if err != nil {
		return "", err
	}
	c.op.Lock()
	defer c.op.Unlock()
	if s.stateOf(c) == running {
		return name + " is already up", nil
	}
	if c.prepare != nil {
		if err := c.prepare(s.ctx); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := s.start(s.ctx, c); err != nil {
		return "", s.withLog(c, err)
	}
	s.say("%s started on request", name)
	s.reviveWaiting()
	return name + " is up", nil
}

// reviveWaiting starts the components that wait for the API server, once both
// it and etcd are up.
func (s *supervisor) reviveWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if (c.name == etcdName || c.name == apiServerName) && c.state != running {
			return
		}
	}
	if s.apiStopped {
		s.apiStopped, s.apiRecovered = false, time.Now().Add(apiRecovery)
	}
	for _, c := range s.components {
		if c.state == waiting {
			go s.revive(c)
		}
	}
}

// shutdown stops all components. It may be called when s.ctx has ended, so that
// no start delays it.
func (s *supervisor) shutdown() {
	s.mu.Lock()
	s.closing = true
	components := slices.Clone(s.components)
	s.mu.Unlock()
	for _, names := range shutdownOrder {
		var wg sync.WaitGroup
		for _, c := range components {
			if slices.Contains(names, c.name) {
				wg.Go(func() {
					c.op.Lock()
					defer c.op.Unlock()
					s.stop(c)
				})
			}
		}
		wg.Wait()
	}
}

// killAll kills all components at once.
func (s *supervisor) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.components {
		if c.proc != nil {
			_ = c.proc.Process.Signal(syscall.SIGKILL)
		}
	}
}

func (s *supervisor) stateOf(c *component) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.state
}

func (s *supervisor) find(name string) (*component, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range s.components {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return nil, fmt.Errorf("no component %q; there are %s", name, strings.Join(names, ", "))
}

// status returns a table with one row per component.
func (s *supervisor) status() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tPID\tSTATE\tPORTS")
	for _, c := range s.components {
		pid := "-"
		if c.state == running || c.state == starting {
			pid = fmt.Sprint(c.proc.Process.Pid)
		}
		var ports []string
		for _, p := range c.ports {
			ports = append(ports, fmt.Sprintf("%s=%d", p.use, p.port))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.name, pid, c.state, strings.Join(ports, " "))
	}
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
