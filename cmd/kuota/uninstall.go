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

const uninstallUsage = `usage: kuota uninstall [--kubeconfig FILE] [--yes]

Takes Kuota out of a cluster: admission policies, the console's rights, its
finalizers, and its kinds with all policies and allocations. Kueue, queues and
tasks stay as they are. Says what it would do; with --yes it does it. Whoever
runs it needs the rights of a cluster admin. Stop the console first or after.
`

// uninstallCommand takes Kuota out of the cluster of a kubeconfig.
func uninstallCommand(ctx context.Context, args []string, s streams) error {
	flags := flag.NewFlagSet("kuota uninstall", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "file with the cluster and who to act as; otherwise $KUBECONFIG, or that of the account it runs as")
	yes := flags.Bool("yes", false, "do it")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(s.out, uninstallUsage)
		return nil
	case err != nil:
		return fmt.Errorf("%w\n%s", err, uninstallUsage)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not understood\n%s", flags.Arg(0), uninstallUsage)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	fmt.Fprintf(s.out, "cluster %s\n", config.Host)
	if err := uninstall.Run(ctx, c, uninstall.Options{DryRun: !*yes, Out: s.out}); err != nil {
		return err
	}
	if !*yes {
		fmt.Fprintln(s.out, "Nothing was done: add --yes to do it.")
	}
	return nil
}
