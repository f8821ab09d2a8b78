package main

import (
	"context"
	"flag"
	"fmt"

	"kuota.dev/kuota/governance/cluster/uninstall"
)

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
