package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"kuota.dev/kuota/cmd/localcluster/provider"
)

// tokenLife is short, as providers recommend: after it the console asks again
// who the user is and which groups they are in.
const tokenLife = 5 * time.Minute

// providerComponent is this very program with the hidden command provider, so
// that it can be stopped and started alone.
func providerComponent(l layout, port int, life time.Duration) (*component, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return &component{
		name: providerName,
		spec: spec{path: self, args: []string{
			"provider",
			"--listen=" + loopback(port),
			"--users=" + l.signin("users.yaml"),
			"--dir=" + l.path("signin"),
			"--token-life=" + life.String(),
		}},
		ready: httpOK(healthClient, issuerURL(port)+"/.well-known/openid-configuration"),
		grace: 2 * time.Second,
		ports: []namedPort{{"http", port}},
	}, nil
}

func issuerURL(port int) string { return "http://" + loopback(port) }

// startProvider starts the provider where there are users for it.
func (s *supervisor) startProvider(ctx context.Context, o upOptions, port int) error {
	if o.users == "" {
		return nil
	}
	if err := writeSignIn(s.layout, o.users, issuerURL(port)); err != nil {
		return err
	}
	c, err := providerComponent(s.layout, port, o.tokenLife)
	if err != nil {
		return err
	}
	return s.run(ctx, c)
}

// runProvider is the hidden command.
func runProvider(args []string) error {
	fs := newFlags("provider")
	var c provider.Config
	fs.StringVar(&c.Listen, "listen", "", "address on loopback, with port")
	fs.StringVar(&c.Users, "users", "", "YAML file of users")
	fs.StringVar(&c.Dir, "dir", "", "folder of the client's credentials and of what the provider has to keep")
	fs.DurationVar(&c.Life, "token-life", tokenLife, "how long access and ID tokens are good")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if c.Listen == "" || c.Users == "" || c.Dir == "" {
		return errors.New("provider needs --listen, --users and --dir")
	}
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return provider.Run(ctx, c)
}
