package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// spec is how to run one component.
type spec struct {
	path string
	args []string
	env  []string // added to ours
	log  string
}

// spawner starts all children from one operating system thread that never
// ends. The kernel ties "die with your parent" to the thread that forked, and
// Go ends threads when it likes.
type spawner struct{ jobs chan func() }

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// process is one started child.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	status string        // how it ended; valid once done is closed
}

func (s *spawner) start(sp spec) (*process, error) {
	logFile, err := os.OpenFile(sp.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer logFile.Close()
	cmd := exec.Command(sp.path, sp.args...)
	cmd.Env = append(os.Environ(), sp.env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C on the terminal reaches only the supervisor
		Pdeathsig: syscall.SIGKILL, // and nothing stays when the supervisor is killed
	}
	result := make(chan error)
	s.jobs <- func() { result <- cmd.Start() }
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", sp.path, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		p.status = cmd.ProcessState.String()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to end, and kills it and its group after the grace.
func (p *process) stop(grace time.Duration) {
	_ = syscall.Kill(p.pid(), syscall.SIGTERM)
	select {
	case <-p.done:
		return
	case <-time.After(grace):
	}
	_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
	<-p.done
}
