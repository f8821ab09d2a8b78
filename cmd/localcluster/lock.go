package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

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
