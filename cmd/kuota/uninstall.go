package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/uninstall"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	flags.SetOutput(io.Discard)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "kubeconfig; default $KUBECONFIG, then the pod's service account")
	keep := flags.Bool("keep-crds", false, "keep the CRDs with the policy and all allocations")
	yes := flags.Bool("yes", false, "delete the objects; without it, only list them")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(s.out, uninstallUsage)
		return nil
	case err != nil:
		return fmt.Errorf("%w\n%s", err, uninstallUsage)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q\n%s", flags.Arg(0), uninstallUsage)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	fmt.Fprintf(s.out, "cluster %s\n", config.Host)
	if err := uninstall.Run(ctx, c, uninstall.Options{DryRun: !*yes, KeepCRDs: *keep, Out: s.out}); err != nil {
		return err
	}
	if !*yes {
		fmt.Fprintln(s.out, "Dry run: nothing was deleted. Add --yes to delete.")
	}
	return nil
}
