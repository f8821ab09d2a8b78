package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/diagnostics"

	"github.com/google/go-cmp/cmp"
)

// checked returns a report in which everything was read.
func checked(findings ...diagnostics.Finding) diagnostics.Report {
	return diagnostics.Report{
		Observation: diagnostics.Observation{
			Server: "v1.36.3", PolicyRead: true, CoverageRead: true, OthersRead: true, PoliciesKnown: true,
			CanWrite: diagnostics.Yes, ChangedBy: diagnostics.PolicyInstalled, TimeLimits: diagnostics.PolicyInstalled,
		},
		Version: "v0.19.2", Findings: findings,
	}
}

func TestDoctorExitCode(t *testing.T) {
	unchecked := checked()
	unchecked.PoliciesKnown = false
	both := checked(diagnostics.Finding{ID: "a", Severity: diagnostics.SeverityError})
	both.PolicyRead = false
	for name, tc := range map[string]struct {
		report   diagnostics.Report
		wantCode int
		wantText string // of the error
	}{
		"nothing found": {report: checked()},
		"warnings and notes": {report: checked(
			diagnostics.Finding{ID: "a", Severity: diagnostics.SeverityWarning}, diagnostics.Finding{ID: "b", Severity: diagnostics.SeverityInfo})},
		"an error":                    {report: checked(diagnostics.Finding{ID: "a", Severity: diagnostics.SeverityError}), wantCode: 1, wantText: "found 1 error"},
		"a part that cannot be read":  {report: unchecked, wantCode: 2, wantText: "could not check Kuota's admission policies"},
		"an error and an unread part": {report: both, wantCode: 1, wantText: "found 1 error"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newDiagnosis("https://api", tc.report).err()
			if tc.wantCode == 0 {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			exit, ok := errors.AsType[exitError](err)
			if !ok || exit.code != tc.wantCode || !strings.Contains(err.Error(), tc.wantText) {
				t.Errorf("got %+v, want exit code %d and %q", err, tc.wantCode, tc.wantText)
			}
		})
	}
}

func TestDoctorOutput(t *testing.T) {
	report := checked(
		diagnostics.Finding{ID: "pods", Title: "Kueue's pod integration is off", Impact: "No quota limits single pods.", Fix: "+  - pod\n", Severity: diagnostics.SeverityWarning},
		diagnostics.Finding{ID: "kueue-stopped", Title: "Kueue is not running", Impact: "No task is admitted.", Fix: "# first\nkubectl scale\n", Severity: diagnostics.SeverityError},
	)
	report.CoverageRead = false
	d := newDiagnosis("https://api", report)
	for format, want := range map[string]string{
		"text": `cluster https://api, Kubernetes v1.36.3, Kueue v0.19.2

ERROR kueue-stopped: Kueue is not running
    No task is admitted.

    # first
    kubectl scale

WARNING pods: Kueue's pod integration is off
    No quota limits single pods.

    +  - pod

UNCHECKED the resources of queues, nodes and tasks

1 error, 1 warning, 0 notes
`,
		"json": `{
  "cluster": "https://api",
  "kubernetes": "v1.36.3",
  "kueue": "v0.19.2",
  "result": "Problems",
  "findings": [
    {
      "id": "kueue-stopped",
      "severity": "Error",
      "title": "Kueue is not running",
      "impact": "No task is admitted.",
      "fix": "# first\nkubectl scale\n"
    },
    {
      "id": "pods",
      "severity": "Warning",
      "title": "Kueue's pod integration is off",
      "impact": "No quota limits single pods.",
      "fix": "+  - pod\n"
    }
  ],
  "unchecked": [
    "the resources of queues, nodes and tasks"
  ]
}
`,
	} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			if err := d.write(&out, format); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
	// Programs iterate over both lists, so that they must not be null.
	var out bytes.Buffer
	if err := newDiagnosis("https://api", checked()).write(&out, "json"); err != nil || !json.Valid(out.Bytes()) || strings.Contains(out.String(), "null") {
		t.Errorf("got error %v and\n%s\nwant valid JSON without null", err, out.String())
	}
}

func TestDoctorFlags(t *testing.T) {
	env := map[string]string{"KUOTA_KUEUE_NAMESPACE": "queues", "KUOTA_OIDC_ISSUER": "https://login.example.com", "KUOTA_SESSION_KEYS_FILE": "/none"}
	o, err := parseDoctor([]string{"--output=json", "--name-prefix=team-", "--listen=:8443"}, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if o.output != "json" || o.config.kueue.Namespace != "queues" || o.config.naming.Prefix != "team-" {
		t.Errorf("got %+v", o)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown output":    {[]string{"--output=yaml"}, `output "yaml": use text or json`},
		"an unknown flag":      {[]string{"--force"}, "-force"},
		"an argument":          {[]string{"now"}, `unexpected argument "now"`},
		"an invalid prefix":    {[]string{"--name-prefix=Bad_"}, "name-prefix"},
		"a value that is none": {[]string{"--history-keep=x"}, "history-keep"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseDoctor(tc.args, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

// A cluster that does not answer must not look like a cluster without problems.
func TestDoctorWithoutCluster(t *testing.T) {
	var out, messages bytes.Buffer
	err := commands()["doctor"].run(t.Context(), []string{"--kubeconfig", t.TempDir() + "/none"}, streams{out: &out, messages: &messages})
	if exit, ok := errors.AsType[exitError](err); !ok || exit.code != 2 || out.Len() > 0 {
		t.Errorf("got error %v and output %q, want exit code 2 and no output", err, out.String())
	}
}
