package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"

	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/web"
)

// hardwareConfig is the configuration of hardware utilization.
type hardwareConfig struct {
	url       string
	tokenFile string
	caFile    string
	nodeLabel string
	match     string
	idleAfter time.Duration
	idleBelow float64
}

func (c *hardwareConfig) register(flags *flag.FlagSet) {
	flags.StringVar(&c.url, "prometheus-url", "", "Prometheus that scrapes dcgm-exporter, neuron-monitor and node-exporter, such as http://prometheus.monitoring:9090; empty disables hardware utilization")
	flags.StringVar(&c.tokenFile, "prometheus-token-file", "", "file with a bearer token for Prometheus; read for each query")
	flags.StringVar(&c.caFile, "prometheus-ca-file", "", "CA file (PEM) for Prometheus' certificate; default the system's CAs")
	flags.StringVar(&c.match, "prometheus-match", "", "label matchers of this cluster's series, if Prometheus has several clusters, such as cluster=\"prod\"")
	flags.StringVar(&c.nodeLabel, "prometheus-node-label", "", "label with the node name; default node, Hostname, kubernetes_node, nodename, or instance without its port")
	flags.DurationVar(&c.idleAfter, "idle-after", 30*time.Minute, "how long the accelerators of an admitted task must be idle before it is shown as idle")
	flags.Float64Var(&c.idleBelow, "idle-below", 0.05, "utilization, 0 to 1, below which an accelerator is idle")
}

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	labelMatch = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"\\{}]*"(, *)?)+$`)
)

// check returns what is invalid. set has the flags that are set.
func (c *hardwareConfig) check(set map[string]bool) (invalid []error) {
	report := func(format string, args ...any) { invalid = append(invalid, fmt.Errorf(format, args...)) }
	if c.idleAfter < time.Minute || c.idleAfter > 7*24*time.Hour {
		report("idle-after %s: use 1m to 168h", c.idleAfter)
	}
	if !(c.idleBelow > 0 && c.idleBelow <= 1) {
		report("idle-below %v: use a share above 0, up to 1, such as 0.05", c.idleBelow)
	}
	if c.url == "" {
		for _, name := range []string{"prometheus-token-file", "prometheus-ca-file", "prometheus-match", "prometheus-node-label"} {
			if set[name] {
				report("%s is set without prometheus-url", name)
			}
		}
		return invalid
	}
	address, err := url.Parse(c.url)
	switch {
	case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" || address.RawQuery != "" || address.Fragment != "":
		report("prometheus-url: write it as http://host:port, with the path that it is served under, if any")
	case address.Scheme == "http" && (c.tokenFile != "" || address.User != nil) && !web.IsLoopback(address.Hostname()):
		report("prometheus-url: use https, or the credentials are sent unencrypted")
	}
	if c.tokenFile != "" {
		if _, err := readFile(c.tokenFile); err != nil {
			report("prometheus-token-file: %w", err)
		}
	}
	if c.match != "" && !labelMatch.MatchString(c.match) {
		report(`prometheus-match %q: write label matchers separated by commas, such as cluster="prod", without backslashes and braces`, c.match)
	}
	if c.nodeLabel != "" && !labelName.MatchString(c.nodeLabel) {
		report("prometheus-node-label %q: a label has letters, digits and underscores", c.nodeLabel)
	}
	if len(invalid) == 0 {
		if _, err := utilization.New(c.options(nil)); err != nil {
			report("prometheus-url and prometheus-ca-file: %w", err)
		}
	}
	return invalid
}

// options returns the options of the service that queries Prometheus.
func (c *hardwareConfig) options(log *slog.Logger) utilization.Options {
	return utilization.Options{
		URL: c.url, TokenFile: c.tokenFile, CAFile: c.caFile, Match: c.match, NodeLabel: c.nodeLabel, IdleAfter: c.idleAfter,
		Warn: func(message string, err error) { log.Warn(message, "error", err) },
	}
}
