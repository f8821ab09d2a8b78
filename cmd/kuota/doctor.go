package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/controllers/reconcile"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const doctorUsage = `usage: kuota doctor [--output text|json] [--as USER] [flags of kuota]

Runs the checks of the settings page and prints what does not work, and how to fix
it. It changes nothing. It has the permissions of the kubeconfig's user; --as is
another user, such as system:serviceaccount:kuota-system:kuota, the console's own
account. It accepts all flags and KUOTA_ variables of the console, and ignores
those that no check needs.

exit code 0: no errors; warnings and notes may be printed
          1: at least one error
          2: the cluster or a part of it could not be checked
`

// doctorTimeout bounds the checks: an API server that is slower counts as not
// checked.
const doctorTimeout = 30 * time.Second

// Exit codes of kuota doctor.
const (
	exitProblems  = 1
	exitUnchecked = 2
)

// Results of kuota doctor.
const (
	resultOK        = "OK"
	resultProblems  = "Problems"
	resultUnchecked = "Unchecked"
)

// doctorCommand prints the findings of package diagnostics.
func doctorCommand(ctx context.Context, args []string, s streams) error {
	o, err := parseDoctor(args, os.Getenv)
	if err != nil {
		return exitError{exitUnchecked, err}
	}
	connection, err := o.config.restConfig()
	if err != nil {
		return exitError{exitUnchecked, err}
	}
	connection.Impersonate.UserName = o.as
	log := slog.New(slog.NewTextHandler(s.messages, &slog.HandlerOptions{Level: slog.LevelError}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	c, err := cluster.New(connection, cluster.Options{NoSessions: true, TakeOver: o.config.takeOver, Log: log})
	if err != nil {
		return exitError{exitUnchecked, err}
	}
	if err := c.Discover(ctx); err != nil {
		return exitError{exitUnchecked, fmt.Errorf("the cluster %s cannot be checked: %w", connection.Host, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	kueue := &reconcile.KueueReconciler{APIReader: c.APIReader(), Install: o.config.kueue}
	service := &diagnostics.Service{Cluster: c, Naming: o.config.naming, Install: o.config.kueue, Namespace: o.config.namespace, Kueue: kueue.State, Reader: c.APIReader(), HelmRelease: o.config.helmRelease, SignIn: o.config.oidc.issuer != ""}
	d := newDiagnosis(connection.Host, service.Collect(ctx))
	if err := d.write(s.out, o.output); err != nil {
		return exitError{exitUnchecked, err}
	}
	return d.err()
}

// doctorOptions are the flags of kuota doctor.
type doctorOptions struct {
	config config
	output string // text or json
	as     string // user to impersonate; empty for none
}

// parseDoctor reads the flags of kuota doctor, and environment variables for flags
// that are not set. Only the values that the checks need must be valid.
func parseDoctor(args []string, env func(string) string) (o doctorOptions, err error) {
	level := "info"
	flags := flag.NewFlagSet("kuota doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.config.register(flags, &level)
	flags.StringVar(&o.output, "output", "text", "text or json")
	flags.StringVar(&o.as, "as", "", "user to impersonate")
	_, invalid, err := readFlags(flags, args, env)
	if err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		invalid = append(invalid, fmt.Errorf("unexpected argument %q\n%s", flags.Arg(0), doctorUsage))
	}
	if o.output != "text" && o.output != "json" {
		invalid = append(invalid, fmt.Errorf("output %q: use text or json", o.output))
	}
	return o, errors.Join(append(invalid, o.config.check(level)...)...)
}

// diagnosis is the output of kuota doctor, as JSON has it.
type diagnosis struct {
	Cluster    string                `json:"cluster"`    // address of the API server
	Kubernetes string                `json:"kubernetes"` // version; empty if unknown
	Kueue      string                `json:"kueue"`      // version; empty if unknown
	Result     string                `json:"result"`     // OK, Problems or Unchecked
	Findings   []diagnostics.Finding `json:"findings"`   // the most severe first
	Unchecked  []string              `json:"unchecked"`  // what could not be read
}

func newDiagnosis(address string, report diagnostics.Report) diagnosis {
	d := diagnosis{Cluster: address, Kubernetes: report.Server, Kueue: report.Version, Result: resultOK, Findings: []diagnostics.Finding{}, Unchecked: []string{}}
	d.Unchecked = append(d.Unchecked, report.Unchecked()...)
	if len(d.Unchecked) > 0 {
		d.Result = resultUnchecked
	}
	for _, severity := range []diagnostics.Severity{diagnostics.SeverityError, diagnostics.SeverityWarning, diagnostics.SeverityInfo} {
		for _, f := range report.Findings {
			if f.Severity == severity {
				d.Findings = append(d.Findings, f)
			}
		}
	}
	if d.count(diagnostics.SeverityError) > 0 {
		d.Result = resultProblems
	}
	return d
}

// count returns the number of findings of a severity.
func (d diagnosis) count(severity diagnostics.Severity) (n int) {
	for _, f := range d.Findings {
		if f.Severity == severity {
			n++
		}
	}
	return n
}

// err returns the error with the exit code; nil for 0.
func (d diagnosis) err() error {
	switch d.Result {
	case resultProblems:
		return exitError{exitProblems, fmt.Errorf("found %s", count(d.count(diagnostics.SeverityError), "error"))}
	case resultUnchecked:
		return exitError{exitUnchecked, errors.New("could not check " + strings.Join(d.Unchecked, "; "))}
	}
	return nil
}

// write writes the diagnosis as text or JSON.
func (d diagnosis) write(out io.Writer, format string) error {
	if format == "json" {
		return writeJSON(out, d)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s, Kubernetes %s, Kueue %s\n", d.Cluster, cmp.Or(d.Kubernetes, "unknown"), cmp.Or(d.Kueue, "unknown"))
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "\n%s %s: %s\n%s\n", strings.ToUpper(string(f.Severity)), f.ID, f.Title, indent(f.Impact))
		if f.Fix != "" {
			fmt.Fprintf(&b, "\n%s\n", indent(f.Fix))
		}
	}
	for _, part := range d.Unchecked {
		fmt.Fprintf(&b, "\nUNCHECKED %s\n", part)
	}
	fmt.Fprintf(&b, "\n%s, %s, %s\n", count(d.count(diagnostics.SeverityError), "error"), count(d.count(diagnostics.SeverityWarning), "warning"), count(d.count(diagnostics.SeverityInfo), "note"))
	_, err := io.WriteString(out, b.String())
	return err
}

// indent indents the lines of text.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
