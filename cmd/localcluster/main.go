package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "localcluster:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "localcluster", Short: "Run Kubernetes, Kueue and simulated nodes on this machine",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(
		buildCommand(),
		consoleCommand(),
		upCommand(),
		instanceCommand("down", "Stop an instance", cobra.NoArgs, func(l layout, _ []string) error { return down(l) }),
		instanceCommand("status", "List the components of an instance", cobra.NoArgs, func(l layout, _ []string) error { return call(l, "Status", "") }),
		instanceCommand("stop COMPONENT", "Stop one component", cobra.ExactArgs(1), func(l layout, args []string) error { return call(l, "Stop", args[0]) }),
		instanceCommand("start COMPONENT", "Start a stopped component and wait until it is ready", cobra.ExactArgs(1), func(l layout, args []string) error { return call(l, "Start", args[0]) }),
		instanceCommand("reset", "Return all objects to their state when the instance became ready; needs up --resettable", cobra.NoArgs, func(l layout, _ []string) error { return call(l, "Reset", "") }),
		instanceCommand("import ARCHIVE", "Import the images of an OCI or Docker archive into the real node", cobra.ExactArgs(1), func(l layout, args []string) error { return call(l, "Import", absolute(args[0])) }),
		providerCommand(),
		nodeCommand(),
	)
	return root
}

// instanceCommand returns a command for the instance in the folder --dir.
func instanceCommand(use, short string, args cobra.PositionalArgs, run func(layout, []string) error) *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(_ *cobra.Command, args []string) error {
		return run(layout{dir: absolute(dir)}, args)
	}}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the instance")
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}

func buildCommand() *cobra.Command {
	var bin, source, binaries, releases string
	var other others
	var realNode bool
	var kinds []string
	cmd := &cobra.Command{Use: "build", Short: "Build all programs from Go modules, once per set of versions", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		from, err := newDownloads(binaries, releases)
		if err != nil {
			return err
		}
		ctx := signals.SetupSignalHandler()
		if err := build(ctx, source, other, from, bin); err != nil {
			return err
		}
		if realNode {
			if err := buildNode(ctx, source, bin); err != nil {
				return err
			}
		}
		return buildOperators(ctx, source, bin, kinds)
	}}
	flags := cmd.Flags()
	flags.StringVar(&bin, "bin", "", "folder for the binaries; manifests go to ../share of it")
	flags.StringVar(&source, "source", defaultSource(), "folder of this program's Go module")
	flags.StringVar(&binaries, "binaries", binariesAuto, "auto: official release binaries of Kubernetes and etcd as far as their checksums are known; build: none; download: an error without them")
	flags.StringVar(&releases, "releases", "", "file of known release binaries in the format of releases.txt, which is the default")
	flags.StringVar(&other.kueue, "kueue", "", "folder of a Go module with another version of Kueue")
	flags.StringVar(&other.kubernetes, "kubernetes", "", "folder of a Go module with another version of the API server and its controllers")
	flags.BoolVar(&realNode, "real-node", false, "also build kubelet, kube-proxy and containerd, for up --real-node")
	flags.StringSliceVar(&kinds, "kinds", nil, "also build the operators of these kinds of jobs, for up --kinds: "+strings.Join(operatorNames(), ", "))
	_ = cmd.MarkFlagRequired("bin")
	return cmd
}

func consoleCommand() *cobra.Command {
	var bin, source, ldflags string
	cmd := &cobra.Command{Use: "console", Short: "Build the console, unless the same sources were built before", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return buildConsole(signals.SetupSignalHandler(), source, bin, ldflags)
	}}
	flags := cmd.Flags()
	flags.StringVar(&bin, "bin", "", "folder for the binary")
	flags.StringVar(&source, "source", ".", "folder of the console's Go module")
	flags.StringVar(&ldflags, "ldflags", "", "flags of the linker")
	_ = cmd.MarkFlagRequired("bin")
	return cmd
}

func upCommand() *cobra.Command {
	var o upOptions
	var detached bool
	cmd := &cobra.Command{Use: "up", Short: "Run an instance until it is stopped", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		if detached {
			return detach(o)
		}
		return up(o)
	}}
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "dir", "", "folder of the instance")
	flags.StringVar(&o.bin, "bin", "", "folder that the build command filled")
	flags.StringVar(&o.crds, "crds", "", "folder of CustomResourceDefinitions to apply; may be missing or empty")
	flags.StringVar(&o.rbac, "rbac", "", "folder of YAML files applied before the console starts: its permissions and its users'")
	flags.StringVar(&o.nodes, "nodes", "", "YAML file of Node objects")
	flags.StringVar(&o.samples, "samples", "", "folder with policy.yaml, teams.yaml and members.yaml, applied once the console is ready, and load.yaml, run from then on")
	flags.BoolVar(&o.still, "still", false, "create the samples' tasks.yaml, once, instead of running load.yaml")
	flags.StringVar(&o.users, "users", "", "YAML file of users; starts an OpenID Connect provider")
	flags.DurationVar(&o.tokenLife, "token-life", defaultTokenLife, "lifetime of the provider's access and ID tokens")
	flags.StringVar(&o.console, "console", "", "the console's binary; without it no console is started")
	flags.IntVar(&o.consolePort, "console-port", 8080, "port of the console; 0 selects a free one")
	flags.IntVar(&o.apiPort, "api-port", 0, "port of the API server; 0 selects a free one")
	flags.BoolVar(&o.resettable, "resettable", false, "record all objects when ready, so that the reset command can return to them")
	flags.BoolVar(&o.realNode, "real-node", false, "add a node that runs containers; needs root, and build --real-node")
	flags.StringSliceVar(&o.kinds, "kinds", nil, "run the operators of these kinds of jobs, with Kueue's integrations; needs build --kinds: "+strings.Join(operatorNames(), ", "))
	flags.StringVar(&o.auditPolicy, "audit-policy", "", "audit policy of the API server; default one that logs who changed which allocation or policy")
	flags.StringVar(&o.auditWebhook, "audit-webhook", "", "kubeconfig of a receiver of the API server's audit events")
	flags.BoolVar(&detached, "detach", false, "run in the background and return when ready")
	_ = cmd.MarkFlagRequired("dir")
	_ = cmd.MarkFlagRequired("bin")
	return cmd
}

// providerCommand returns the hidden command that the supervisor runs as
// component provider.
func providerCommand() *cobra.Command {
	var c provider.Config
	cmd := &cobra.Command{Use: "provider", Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		return provider.Run(signals.SetupSignalHandler(), c)
	}}
	flags := cmd.Flags()
	flags.StringVar(&c.Listen, "listen", "", "address on loopback, with port")
	flags.StringVar(&c.Users, "users", "", "YAML file of users")
	flags.StringVar(&c.Dir, "dir", "", "folder of the client's credentials and of the provider's state")
	flags.DurationVar(&c.Life, "token-life", defaultTokenLife, "lifetime of access and ID tokens")
	for _, name := range []string{"listen", "users", "dir"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// nodeCommand returns the hidden command that the supervisor runs as component
// real-node.
func nodeCommand() *cobra.Command {
	var n node
	cmd := &cobra.Command{Use: "node", Hidden: true, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return n.run() }}
	cmd.Flags().StringVar(&n.layout.dir, "dir", "", "folder of the instance")
	cmd.Flags().StringVar(&n.bin, "bin", "", "folder of the binaries")
	cmd.Flags().IntVar(&n.index, "index", 0, "index of the node's networks")
	return cmd
}

// down stops an instance, and kills its supervisor when that takes too long.
// The components die with the supervisor.
func down(l layout) error {
	if !isRunning(l) {
		// A supervisor that was killed leaves these files.
		if _, err := os.Stat(l.lock()); err == nil {
			l.remove("ready", "url")
			removeCgroups(l)
		}
		fmt.Println("nothing runs in", l.dir)
		return nil
	}
	pid := supervisorPID(l)
	if err := call(l, "Down", ""); err != nil {
		if pid <= 0 {
			return fmt.Errorf("cannot connect to the instance in %s, and its pid is unknown: %w", l.dir, err)
		}
		_ = syscall.Kill(pid, syscall.SIGTERM) // the control socket is not open yet, or already closed
	}
	ended := func(context.Context) error {
		if isRunning(l) {
			return errors.New("still running")
		}
		return nil
	}
	if err := waitFor(context.Background(), 15*time.Second, ended); err != nil {
		if pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := waitFor(context.Background(), 5*time.Second, ended); err != nil {
			return fmt.Errorf("pid %d in %s: %w", pid, l.dir, err)
		}
	}
	fmt.Println("stopped", l.dir)
	return nil
}
