// Command kuota is the client of the console, for its users, and with kuota serve the console
// itself: web server and controllers in one binary.
//
//	kuota serve ─▶ flags, KUOTA_ variables ─▶ parseConfig ─▶ newProgram ─▶ program.Run ─▶ program.Close
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"kuota.dev/kuota/cli"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(streams{in: os.Stdin, out: os.Stdout, messages: os.Stderr})
	root.SetArgs(withCommand(os.Args[1:], os.Environ(), os.Stderr))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kuota:", cli.Clean(err.Error()))
		code := 1
		if exit, ok := errors.AsType[exitError](err); ok {
			code = exit.code
		}
		os.Exit(code)
	}
}

// newRoot returns all commands: those of users, and those of who runs the console.
func newRoot(s streams) *cobra.Command {
	const operation = "operation"
	root := cli.New(s.out, s.messages)
	root.SetIn(s.in)
	root.AddGroup(&cobra.Group{ID: operation, Title: "Run a console:"})
	root.AddCommand(importCommand(s.messages))
	all := commands()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		root.AddCommand(&cobra.Command{
			Use: name, Short: c.about, GroupID: operation, DisableFlagParsing: true,
			RunE: func(command *cobra.Command, args []string) error {
				err := c.run(command.Context(), args, s)
				if errors.Is(err, flag.ErrHelp) && c.usage != "" {
					_, err = io.WriteString(s.out, c.usage)
				}
				return err
			},
		})
	}
	return root
}

// withCommand returns the arguments with the command serve, where only flags or variables of
// the console are set: until the next version, the console starts without its command.
func withCommand(args, env []string, messages io.Writer) []string {
	flags := serveFlags(new(config), new(string))
	serves := len(args) == 0 && slices.ContainsFunc(env, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return value != "" && isVariable(flags, name)
	})
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, _, _ := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		serves = flags.Lookup(name) != nil
	}
	if !serves {
		return args
	}
	fmt.Fprintln(messages, "kuota: the console is started by kuota serve; the next version does not start it without this command")
	return append([]string{"serve"}, args...)
}

// isVariable reports whether a variable belongs to a flag.
func isVariable(flags *flag.FlagSet, name string) (found bool) {
	flags.VisitAll(func(f *flag.Flag) { found = found || variableOf(f.Name) == name })
	return found
}

// serveCommand runs the console until ctx ends.
func serveCommand(ctx context.Context, args []string, s streams) error {
	config, err := parseConfig(args, os.Getenv)
	if errors.Is(err, flag.ErrHelp) {
		_, err = io.WriteString(s.out, serveHelp())
		return err
	}
	if err != nil {
		return err
	}
	return run(ctx, config, s.messages)
}
