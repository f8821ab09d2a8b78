package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kuota.dev/kuota/cli"
)

// command is what kuota runs instead of the console.
type command struct {
	about string // one line of help
	run   func(ctx context.Context, args []string, s streams) error
}

// streams are the input and outputs of a command.
type streams struct {
	in       io.Reader
	out      io.Writer // the result
	messages io.Writer // remarks about the result
}

// exitError ends the process with a code other than 1.
type exitError struct {
	code int
	error
}

// Unwrap returns the error that caused the end.
func (e exitError) Unwrap() error { return e.error }

// commands returns the commands by name. A variable would be initialized in a
// cycle: the help of the configuration lists the commands.
func commands() map[string]command {
	return map[string]command{
		"adopt":     {"create allocations for existing ClusterQueues, without changing them", adoptCommand},
		"doctor":    {"check the cluster, Kueue and the console, as the settings page does", doctorCommand},
		"import":    {"convert HyperPod's JSON to Kuota's YAML", importCommand},
		"release":   {"give the queues of teams back, without changing them", releaseCommand},
		"simulate":  {"answer what Kueue would do with a snapshot of a cluster", simulateCommand},
		"uninstall": {"remove Kuota from a cluster; Kueue and tasks stay unchanged", uninstallCommand},
		"version":   {"print the version", versionCommand},
	}
}

// commandHelp returns one line for each command.
func commandHelp() string {
	var b strings.Builder
	all := commands()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "  kuota %-10s %s\n", name, all[name].about)
	}
	for _, line := range cli.Help() {
		fmt.Fprintf(&b, "  kuota %-10s %s\n", line[0], line[1])
	}
	return b.String()
}
