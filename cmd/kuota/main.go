// Command kuota is the console: web server and controllers in one binary. With
// one of its commands as first argument it runs that command instead.
//
//	flags, KUOTA_ variables ─▶ parseConfig ─▶ newProgram ─▶ program.Run ─▶ program.Close
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"kuota.dev/kuota/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "kuota:", err)
		code := 1
		if exit, ok := errors.AsType[exitError](err); ok {
			code = exit.code
		}
		os.Exit(code)
	}
}

// start runs the command that the first argument names, or else the console
// until ctx ends.
func start(ctx context.Context, args []string, in, out, log *os.File) error {
	if len(args) > 0 && slices.Contains(cli.Names, args[0]) {
		others := map[string]string{}
		for name, c := range commands() {
			others[name] = c.about
		}
		return cli.Run(ctx, args, out, log, others)
	}
	if len(args) > 0 {
		if c, ok := commands()[args[0]]; ok {
			err := c.run(ctx, args[1:], streams{in: in, out: out, messages: log})
			if errors.Is(err, flag.ErrHelp) && c.usage != "" {
				_, err = io.WriteString(out, c.usage)
			}
			return err
		}
	}
	config, err := parseConfig(args, os.Getenv)
	if err != nil {
		return err
	}
	return run(ctx, config, log)
}
