package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child of the supervisor. stop sends it SIGTERM, and SIGKILL
// after its grace period; ended is closed when it has exited.
type process struct {
	*exec.Cmd
	stop  context.CancelFunc
	ended chan struct{}
}

// startProcess starts a program whose output is appended to a log file, in new
// namespaces if flags for clone are given.
func startProcess(path string, args, env []string, logPath string, grace time.Duration, namespaces uintptr) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C on the terminal reaches only the supervisor
		Pdeathsig: syscall.SIGKILL, // no child survives a supervisor that is killed

		Cloneflags: namespaces,
	}
	p := &process{Cmd: cmd, stop: stop, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		defer log.Close()
		// The kernel sends Pdeathsig when the thread that forked ends, so this
		// thread has to live as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		stop()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

const (
	tailLines = 20
	tailBytes = 64 << 10 // fits 20 long lines; a log may be gigabytes
)

// logTail returns the last lines of a log, indented, for a message.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("    (no log: %v)", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	b, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return fmt.Sprintf("    (log unreadable: %v)", err)
	}
	return lastLines(b, tailLines)
}

func lastLines(b []byte, n int) string {
	b = bytes.TrimRight(b, "\n")
	if len(b) == 0 {
		return "    (the log is empty)"
	}
	lines := strings.Split(string(b), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-n):], "\n    ")
}
