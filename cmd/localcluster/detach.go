package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// detach runs the same command in the background and returns when it is ready.
func detach(o upOptions, args []string) error {
	l, err := newLayout(o.dir)
	if err != nil {
		return err
	}
	// What can be seen at once is said here, on the terminal, and the log of an
	// instance that runs is left alone.
	lock, err := preflight(l, o)
	if err != nil {
		return err
	}
	lock.Close()
	if err := os.MkdirAll(l.path("logs"), 0o755); err != nil {
		return fmt.Errorf("folder of logs: %w", err)
	}
	logPath := l.log(ownLog)
	log, err := os.Create(logPath)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "detach")
	})
	cmd := exec.Command(self, append([]string{"up"}, args...)...)
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
			return fmt.Errorf("the cluster did not start: %v; the end of %s:\n%s", err, logPath, logTail(logPath))
		case <-time.After(pollEvery):
		}
		if readyPid(l) == cmd.Process.Pid {
			printFile(logPath)
			return nil
		}
	}
}

// readyPid is the supervisor that wrote the ready file, or 0: the file of an
// earlier run must not be taken for this one's.
func readyPid(l layout) int {
	b, err := os.ReadFile(l.ready())
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

func printFile(path string) {
	if b, err := os.ReadFile(path); err == nil {
		_, _ = os.Stdout.Write(b)
	}
}
