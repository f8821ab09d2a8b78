package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// parseDir reads --dir, before or after the other arguments.
func parseDir(name string, args []string) (layout, []string, error) {
	fs := newFlags(name)
	dir := fs.String("dir", "", "folder of the instance")
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			return layout{}, nil, err
		}
		if fs.NArg() == 0 {
			break
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
	if *dir == "" {
		return layout{}, nil, fmt.Errorf("%s needs --dir", name)
	}
	l, err := newLayout(*dir)
	return l, rest, err
}

// runQuestion is a command without arguments that the instance answers.
func runQuestion(name string, args []string) error {
	l, rest, err := parseDir(name, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s takes no argument, got %q", name, rest)
	}
	if !isRunning(l) {
		return fmt.Errorf("nothing runs in %s", l.dir)
	}
	text, err := ask(l, request{Command: name})
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}

// runSwitch is stop and start of one component.
func runSwitch(name string, args []string) error {
	l, rest, err := parseDir(name, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return fmt.Errorf("%s needs the name of one component", name)
	}
	if !isRunning(l) {
		return fmt.Errorf("nothing runs in %s", l.dir)
	}
	text, err := ask(l, request{Command: name, Component: rest[0]})
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}

func runDown(args []string) error {
	l, rest, err := parseDir("down", args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("down takes no argument, but was given %q", rest)
	}
	if !isRunning(l) {
		// A supervisor that was killed could not do this.
		if _, err := os.Stat(l.lock()); err == nil {
			l.remove("ready", "url")
		}
		fmt.Println("nothing runs in", l.dir)
		return nil
	}
	pid := lockHolder(l)
	if _, err := ask(l, request{Command: "down"}); err != nil {
		if pid <= 0 {
			return fmt.Errorf("cannot reach the instance in %s and do not know its pid: %w", l.dir, err)
		}
		_ = syscall.Kill(pid, syscall.SIGTERM) // it has no socket yet, or no longer
	}
	gone := func(context.Context) error {
		if isRunning(l) {
			return errors.New("still running")
		}
		return nil
	}
	if err := waitFor(context.Background(), 15*time.Second, gone); err != nil {
		// Its children die with it.
		if pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := waitFor(context.Background(), 5*time.Second, gone); err != nil {
			return fmt.Errorf("pid %d in %s: %w", pid, l.dir, err)
		}
	}
	fmt.Println("stopped", l.dir)
	return nil
}
