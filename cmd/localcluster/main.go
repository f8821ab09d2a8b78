package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `localcluster runs Kubernetes, Kueue and simulated nodes on this machine.

  localcluster build  --bin DIR [--source DIR] [--kueue DIR]
  localcluster up     --dir DIR --bin DIR [--crds DIR] [--rbac DIR] [--nodes FILE]
                      [--samples DIR [--still]] [--users FILE] [--token-life DURATION]
                      [--console BINARY] [--console-port N] [--api-port N] [--detach] [--resettable]
  localcluster down   --dir DIR
  localcluster stop   COMPONENT --dir DIR
  localcluster start  COMPONENT --dir DIR
  localcluster reset  --dir DIR
  localcluster status --dir DIR
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "localcluster:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	name, rest := args[0], args[1:]
	switch name {
	case "build":
		return runBuild(rest)
	case "up":
		return runUp(rest)
	case "down":
		return runDown(rest)
	case "stop", "start":
		return runSwitch(name, rest)
	case "provider": // for the supervisor alone, and therefore not in the usage
		return runProvider(rest)
	case "status", "reset":
		return runQuestion(name, rest)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", name)
}

// newFlags is a flag set whose errors come back instead of ending the program.
func newFlags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet("localcluster "+name, flag.ContinueOnError)
	fs.SetOutput(os.Stderr)
	return fs
}

func runBuild(args []string) error {
	fs := newFlags("build")
	bin := fs.String("bin", "", "folder for the binaries; what a start needs besides goes to ../share of it")
	source := fs.String("source", defaultSource(), "folder of this program's Go module")
	older := fs.String("kueue", "", "folder of a Go module with another version of Kueue")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *bin == "" {
		return errors.New("build needs --bin")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return build(ctx, *source, *older, *bin)
}

func runUp(args []string) error {
	fs := newFlags("up")
	var o upOptions
	fs.StringVar(&o.dir, "dir", "", "folder of this instance")
	fs.StringVar(&o.bin, "bin", "", "folder that the build command filled")
	fs.StringVar(&o.crds, "crds", "", "folder of CustomResourceDefinitions to apply; may be missing or empty")
	fs.StringVar(&o.rbac, "rbac", "", "folder of YAML files applied before the console starts: its own rights and its users'")
	fs.StringVar(&o.nodes, "nodes", "", "YAML file of Node objects")
	fs.StringVar(&o.samples, "samples", "", "folder with policy.yaml, teams.yaml and members.yaml, applied when all is ready, and load.yaml, played from then on")
	fs.BoolVar(&o.still, "still", false, "create the samples' tasks.yaml, once, in place of playing load.yaml")
	fs.StringVar(&o.users, "users", "", "YAML file of users; with it an OpenID Connect provider is started")
	fs.DurationVar(&o.tokenLife, "token-life", tokenLife, "how long the provider's access and ID tokens are good")
	fs.StringVar(&o.console, "console", "", "the console's binary; without it no console is started")
	fs.IntVar(&o.consolePort, "console-port", 8080, "port of the console; 0 picks a free one")
	fs.IntVar(&o.apiPort, "api-port", 0, "port of the API server; 0 picks a free one")
	fs.BoolVar(&o.resettable, "resettable", false, "remember all objects when ready, so that the reset command can return to them")
	fs.BoolVar(&o.detach, "detach", false, "run in the background and return when ready")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.dir == "" || o.bin == "" {
		return errors.New("up needs --dir and --bin")
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("up takes no argument, but was given %q", fs.Args())
	}
	if o.detach {
		return detach(o, args)
	}
	return up(o)
}
