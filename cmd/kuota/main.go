// Command kuota is the console: web server and controllers in one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "kuota:", err)
		os.Exit(1)
	}
}

// start reads the configuration and runs the console until ctx ends.
func start(ctx context.Context, args []string, log *os.File) error {
	config, err := parseConfig(args, os.Getenv)
	if err != nil {
		return err
	}
	return run(ctx, config, log)
}
