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

// errHeld says that another process holds the lock.
var errHeld = errors.New("lock is held")

// lockFile takes an exclusive lock that ends with the process, however it ends.
// With wait it blocks, without it returns errHeld.
func lockFile(path string, wait bool) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("folder of lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == syscall.EWOULDBLOCK {
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lockInstance makes this process the only supervisor of the folder.
func lockInstance(l layout) (*os.File, error) {
	f, err := lockFile(l.lock(), false)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("another localcluster (pid %d) runs in %s; stop it with: localcluster down --dir %s",
			lockHolder(l), l.dir, l.dir)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, fmt.Errorf("write lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return f, nil
}

// lockHolder is the pid that the holder wrote, or 0.
func lockHolder(l layout) int {
	b, err := os.ReadFile(l.lock())
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// isRunning tells whether a supervisor holds the folder, without making one.
func isRunning(l layout) bool {
	if _, err := os.Stat(l.lock()); err != nil {
		return false
	}
	f, err := lockFile(l.lock(), false)
	if err != nil {
		return errors.Is(err, errHeld)
	}
	f.Close()
	return false
}
