package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const pollEvery = 50 * time.Millisecond

// waitFor polls until the check passes, and reports its last error otherwise.
func waitFor(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %s", limit))
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errEnded) { // then the check's own error only distracts
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pollEvery):
		}
	}
}

// httpOK passes when the address answers 200.
func httpOK(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}

// portOpen passes when something listens.
func portOpen(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		d := net.Dialer{Timeout: time.Second}
		c, err := d.DialContext(ctx, "tcp", loopback(port))
		if err != nil {
			return err
		}
		return c.Close()
	}
}
