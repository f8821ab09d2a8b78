package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// command is what kuota does when it is not the console.
type command struct {
	about string // what it does, in one line
	run   func(ctx context.Context, args []string, s streams) error
}

// streams are what a command reads and writes.
type streams struct {
	in   io.Reader
	out  io.Writer // what it makes
	told io.Writer // what there is to say of it
}

// commands are those that can stand first. It is a function, so that a command
// may read the configuration, whose help lists them.
func commands() map[string]command {
	return map[string]command{
		"import":    {"convert HyperPod's JSON to Kuota's YAML", importCommand},
		"uninstall": {"remove Kuota from a cluster; Kueue and tasks stay unchanged", uninstallCommand},
	}
}

// commandHelp lists the commands.
func commandHelp() string {
	var b strings.Builder
	all := commands()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "  kuota %-10s %s\n", name, all[name].about)
	}
	return b.String()
}
