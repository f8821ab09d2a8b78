package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"kuota.dev/kuota/governance/cluster/uninstall"
)

// command is a command of who runs the console. Those of users are in package cli.
type command struct {
	about string // one line of help
	usage string // its help; empty if it prints it itself
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

// commands returns the commands by name.
func commands() map[string]command {
	return map[string]command{
		"adopt":     {"create allocations for existing ClusterQueues, without changing them", adoptUsage, adoptCommand},
		"doctor":    {"check the cluster, Kueue and the console, as the settings page does", doctorUsage, doctorCommand},
		"serve":     {"run the console: its pages, its API and its controllers", "", serveCommand},
		"release":   {"give the queues of teams back, without changing them", releaseUsage, releaseCommand},
		"simulate":  {"answer what Kueue would do with a snapshot of a cluster", "", simulateCommand},
		"uninstall": {"remove Kuota from a cluster; Kueue and tasks stay unchanged", uninstallUsage, uninstallCommand},
		"version":   {"print the version", versionUsage, versionCommand},
	}
}

// parse parses the flags of a command that takes arguments only if withArguments is set.
func parse(flags *flag.FlagSet, args []string, withArguments bool, usage string) error {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w\n%s", err, usage)
	}
	if flags.NArg() > 0 && !withArguments {
		return fmt.Errorf("unexpected argument %q\n%s", flags.Arg(0), usage)
	}
	return nil
}

// openInput opens a file, or returns in for "-".
func openInput(name string, in io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(in), nil
	}
	return os.Open(name)
}

// writeJSON writes a value as indented JSON.
func writeJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

const uninstallUsage = `usage: kuota uninstall [--kubeconfig FILE] [--keep-crds] [--yes]

Removes Kuota from a cluster: admission policies, the console's permissions, its
finalizers, and its CRDs with all policies and allocations, unless they are kept.
Kueue, queues and tasks stay unchanged. Lists what it would delete; with --yes it
deletes. It needs the permissions of a cluster admin. Stop the console before or
after.
`

// uninstallCommand removes Kuota from the cluster of a kubeconfig.
func uninstallCommand(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("kuota uninstall", flag.ContinueOnError)
	var to config
	flags.StringVar(&to.kubeconfig, "kubeconfig", "", "kubeconfig; default $KUBECONFIG, then the pod's service account")
	keep := flags.Bool("keep-crds", false, "keep the CRDs with the policy and all allocations")
	yes := flags.Bool("yes", false, "delete the objects; without it, only list them")
	if err := parse(flags, args, false, uninstallUsage); err != nil {
		return err
	}
	c, host, err := to.connect()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "cluster %s\n", host)
	if err := uninstall.Run(ctx, c, uninstall.Options{DryRun: !*yes, KeepCRDs: *keep, Out: s.out}); err != nil {
		return err
	}
	if !*yes {
		fmt.Fprintln(s.out, "Dry run: nothing was deleted. Add --yes to delete.")
	}
	return nil
}
