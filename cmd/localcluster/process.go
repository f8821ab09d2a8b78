package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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

const pollInterval = 50 * time.Millisecond

// waitFor polls until the check succeeds. Its error is the last one of the
// check, unless the process that is waited for exited.
func waitFor(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errExited):
		return cause
	case cause != nil:
		return fmt.Errorf("%w: %w", cause, last)
	}
	return fmt.Errorf("not ready after %s: %w", limit, last)
}

// healthClient reads the health endpoints of components on loopback. It sends
// no credentials and reads no secrets, so it does not verify certificates.
var healthClient = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// httpOK returns a check that succeeds when the address answers 200.
func httpOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := healthClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}

// portOpen returns a check that succeeds when the port accepts connections.
func portOpen(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", loopback(port))
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// errLocked means that another process has the lock.
var errLocked = errors.New("locked by another process")

// lockFile takes an exclusive lock that ends when the file is closed, at the
// latest with the process. If another process has it, lockFile waits or returns
// errLocked.
func lockFile(path string, wait bool) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == syscall.EWOULDBLOCK {
		err = errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lockInstance ensures that this process is the only supervisor of the folder.
func lockInstance(l layout) (*os.File, error) {
	f, err := lockFile(l.lock(), false)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("another localcluster (pid %d) runs in %s; stop it with: localcluster down --dir %s", supervisorPID(l), l.dir, l.dir)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// supervisorPID returns the pid in the instance's lock, or 0.
func supervisorPID(l layout) int { return readPID(l.lock()) }

func readPID(path string) int {
	b, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// isRunning reports whether a supervisor runs in the folder. It does not create
// the folder.
func isRunning(l layout) bool {
	if _, err := os.Stat(l.lock()); err != nil {
		return false
	}
	f, err := lockFile(l.lock(), false)
	if err != nil {
		return errors.Is(err, errLocked)
	}
	f.Close()
	return false
}
