package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"kuota.dev/kuota/governance/desired"

	"k8s.io/apimachinery/pkg/util/validation"
)

// config is what the console can be told. Each flag has an environment
// variable behind it: KUOTA_ and its name in capitals.
type config struct {
	listen      string
	kubeconfig  string
	clusterName string
	naming      desired.Naming
	qps         float64
	burst       int
	logLevel    slog.Level
}

// parseConfig reads flags, and the environment for those that are not given.
// Every wrong value is told at once.
func parseConfig(args []string, env func(string) string) (config, error) {
	var c config
	level := "info"
	flags := flag.NewFlagSet("kuota", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address to answer on, host:port")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; empty takes KUBECONFIG, then the pod's service account")
	flags.StringVar(&c.clusterName, "cluster-name", "local", "what pages call the cluster")
	flags.StringVar(&c.naming.Prefix, "name-prefix", desired.DefaultNaming.Prefix, "what stands before the team in the names of its namespace and queues")
	flags.StringVar(&c.naming.Cohort, "cohort", desired.DefaultNaming.Cohort, "cohort that all queues lend to and borrow from")
	flags.StringVar(&c.naming.InstanceTypeLabel, "instance-type-label", desired.DefaultNaming.InstanceTypeLabel, "node label that names an instance's type")
	flags.Float64Var(&c.qps, "kube-qps", 200, "requests a second to the API server")
	flags.IntVar(&c.burst, "kube-burst", 400, "requests at once to the API server")
	flags.StringVar(&level, "log-level", level, "debug, info, warn or error")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			var help strings.Builder
			flags.SetOutput(&help)
			flags.PrintDefaults()
			return c, fmt.Errorf("usage: kuota [flags]\n%s", help.String())
		}
		return c, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var wrong []error
	flags.VisitAll(func(f *flag.Flag) {
		variable := "KUOTA_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := env(variable); value != "" && !given[f.Name] {
			if err := f.Value.Set(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s=%q: %w", variable, value, err))
			}
		}
	})
	return c, errors.Join(append(wrong, c.check(level)...)...)
}

func (c *config) check(level string) (wrong []error) {
	if err := c.logLevel.UnmarshalText([]byte(level)); err != nil {
		wrong = append(wrong, fmt.Errorf("log-level %q: use debug, info, warn or error", level))
	}
	if problems := validation.IsDNS1123Label(c.naming.Prefix + "a"); len(problems) > 0 || len(c.naming.Prefix) > 23 {
		wrong = append(wrong, fmt.Errorf("name-prefix %q: use at most 23 lower-case letters, digits and hyphens, starting with a letter or digit, so that a team of 40 fits behind it", c.naming.Prefix))
	}
	if problems := validation.IsDNS1123Subdomain(c.naming.Cohort); len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("cohort %q: %s", c.naming.Cohort, problems[0]))
	}
	if problems := validation.IsQualifiedName(c.naming.InstanceTypeLabel); len(problems) > 0 {
		wrong = append(wrong, fmt.Errorf("instance-type-label %q: %s", c.naming.InstanceTypeLabel, problems[0]))
	}
	if c.qps <= 0 || c.burst <= 0 {
		wrong = append(wrong, fmt.Errorf("kube-qps %v and kube-burst %d: both must be above 0", c.qps, c.burst))
	}
	return wrong
}
