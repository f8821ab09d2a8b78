package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed prometheus/unpack.sh
var unpackPrometheus string

// prometheusConfig scrapes the exporter at the address of its argument.
const prometheusConfig = `global: {scrape_interval: 5s}
scrape_configs: [{job_name: simulated, honor_labels: true, static_configs: [{targets: [%q]}]}]
`

// prometheusCache is the folder in the user's cache folder that Debian's Prometheus is
// unpacked into, once.
func prometheusCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "kuota", "prometheus")
}

// findPrometheus returns the path of a Prometheus on this machine, or "" if it has to
// be unpacked. It returns an error if none can be had.
func findPrometheus() (string, error) {
	for _, name := range []string{filepath.Join(prometheusCache(), "usr", "bin", "prometheus"), "prometheus"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	for _, tool := range []string{"bash", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("no Prometheus is installed, and without %s none can be unpacked", tool)
		}
	}
	return "", nil
}

// errNoSamples is why an instance without a console or samples simulates nothing.
var errNoSamples = errors.New("there are no samples")

// simulated returns why hardware utilization is not simulated; nil if it is.
func (o upOptions) simulated() error {
	if o.console == "" || o.samples == "" {
		return errNoSamples
	}
	_, err := findPrometheus()
	return err
}

// startPrometheus starts a Prometheus that scrapes simulated exporters. Nothing waits
// for it, and the instance goes on without it.
func (s *supervisor) startPrometheus(ctx context.Context, api apiClient, p ports, still bool) {
	err := (&exporter{api: api, still: still}).serve(ctx, p.exporter)
	if err == nil {
		err = s.runPrometheus(ctx, p)
	}
	if err != nil && ctx.Err() == nil {
		s.say("hardware utilization is not simulated: %v", err)
	}
}

func (s *supervisor) runPrometheus(ctx context.Context, p ports) error {
	path, err := findPrometheus()
	if err == nil && path == "" {
		if err = s.unpackPrometheus(ctx); err == nil {
			path, err = findPrometheus()
		}
	}
	if err != nil {
		return err
	}
	config := s.layout.run("prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, loopback(p.exporter)), 0o644); err != nil {
		return fmt.Errorf("write Prometheus' configuration: %w", err)
	}
	return s.run(ctx, &component{
		name: prometheusName, path: path, optional: true, args: []string{
			"--config.file=" + config, "--storage.tsdb.path=" + s.layout.data("prometheus"), "--web.listen-address=" + loopback(p.prometheus),
			"--storage.tsdb.retention.time=1d", "--storage.tsdb.retention.size=256MB", "--log.level=warn",
		},
		ready: httpOK(httpURL(p.prometheus) + "/-/ready"),
		grace: 2 * time.Second,
		ports: []namedPort{{"http", p.prometheus}},
	})
}

// unpackPrometheus downloads Debian's Prometheus into the cache.
func (s *supervisor) unpackPrometheus(ctx context.Context) error {
	s.say("getting Prometheus by apt, once, for simulated hardware utilization")
	log := s.layout.log(prometheusName)
	unpack, err := startProcess("bash", []string{"-c", unpackPrometheus, "unpack.sh", prometheusCache()}, nil, log, time.Second, 0)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = syscall.Kill(-unpack.Process.Pid, syscall.SIGTERM) // with apt
		unpack.stop()
	})
	defer stop()
	<-unpack.ended
	if !unpack.ProcessState.Success() {
		return errors.New("apt has no Prometheus; see " + log)
	}
	return nil
}
