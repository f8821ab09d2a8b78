package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const pollInterval = 50 * time.Millisecond

// waitFor polls until the check succeeds. Its error is the last one of the
// check, unless the process that is waited for exited.
func waitFor(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, errExited):
		return cause
	case cause != nil:
		return fmt.Errorf("%w: %w", cause, last)
	}
	return fmt.Errorf("not ready after %s: %w", limit, last)
}

// healthClient reads the health endpoints of components on loopback. It sends
// no credentials and reads no secrets, so it does not verify certificates.
var healthClient = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// httpOK returns a check that succeeds when the address answers 200.
func httpOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := healthClient.Do(req)
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

// portOpen returns a check that succeeds when the port accepts connections.
func portOpen(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", loopback(port))
		if err != nil {
			return err
		}
		return c.Close()
	}
}
