package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// limitedClasses are a class with a default time limit, one with a maximum, and one with
// both.
const limitedClasses = `, {name: usual, weight: 9, defaultTimeLimitSeconds: 3600}, {name: short, weight: 8, maximumTimeLimitSeconds: 7200}, {name: both, weight: 7, defaultTimeLimitSeconds: 60, maximumTimeLimitSeconds: 7200}`

const timeLimit = "kueue.x-k8s.io/max-exec-time-seconds"

// limited returns the labels of a task of a class; seconds is empty for no time limit.
func limited(class, seconds string) string {
	if seconds != "" {
		seconds = fmt.Sprintf(", %s: %q", timeLimit, seconds)
	}
	return "labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: " + class + "-priority" + seconds + "}"
}

// elasticFor is elasticOf with activeDeadlineSeconds; empty for none.
func elasticFor(name, metadata, seconds string) string {
	manifest := elasticOf(name, metadata, ``, ``)
	if seconds != "" {
		manifest = strings.Replace(manifest, "spec: {elasticPolicy", "spec: {activeDeadlineSeconds: "+seconds+", elasticPolicy", 1)
	}
	return manifest
}

func cronJobOf(metadata string) string {
	return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, namespace: NAMESPACE}, spec: {schedule: "0 0 1 1 *", jobTemplate: {metadata: {` + metadata + `}, spec: {template: ` + template(``, ``) + `}}}}`
}

// TestRejectsLongerTimeLimits checks that a task cannot have a longer time limit than
// its class allows, neither from the start nor by a change, and that a task keeps what
// it has if only the policy changes.
func TestRejectsLongerTimeLimits(t *testing.T) {
	ns := newNamespace(t)
	defer ns.clear(t)
	ns.enforceWith(t, v1alpha1.RequireQueue, limitedClasses)
	if err := growing(); err != nil {
		t.Fatal(err)
	}
	const atMost = "tasks of priority class short-priority have a time limit of at most 2h"
	for name, tc := range map[string]struct {
		manifest string
		want     []string
	}{
		"a Job above the maximum":         {jobOf("a", limited("short", "7201"), ``, ``), []string{"Job: " + atMost, "set the label " + timeLimit + " to 7200 or less"}},
		"above the maximum of both":       {jobOf("a", limited("both", "7201"), ``, ``), []string{"both-priority", "7200 or less"}},
		"a CronJob above the maximum":     {cronJobOf(limited("short", "7201")), []string{"CronJob: " + atMost, "in spec.jobTemplate.metadata"}},
		"an ElasticJob above it":          {elasticFor("a", limited("short", ""), "7201"), []string{"ElasticJob: " + atMost, "set spec.activeDeadlineSeconds to 7200 or less"}},
		"a time limit that Kueue ignores": {jobOf("a", limited("short", "1h"), ``, ``), []string{atMost}},
	} {
		t.Run(name, func(t *testing.T) { ns.rejects(t, tc.manifest, tc.want...) })
	}

	out, err := ns.TryKubectl("", "patch", "clusterpolicy", "default", "--type=merge", "--dry-run=server", "-p", `{"spec": {"priorityClasses": [{"name": "dev", "weight": 10, "defaultTimeLimitSeconds": 61, "maximumTimeLimitSeconds": 60}]}}`)
	if err == nil || !strings.Contains(out, "the default time limit is longer than the maximum time limit") {
		t.Errorf("a default above the maximum: got %s, want a rejection", out)
	}

	ns.accepts(t, suspended("held", limited("short", "60")))
	ns.accepts(t, suspended("free", limited("training", "")))
	ns.accepts(t, elasticFor("train", limited("short", ""), "60"))
	merge := func(kind, name, patch string) (string, error) {
		return ns.TryKubectl("", "patch", kind, name, "-n", ns.name, "--type=merge", "-p", patch)
	}
	label := func(key, value string) string {
		return fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, key, value)
	}
	for name, tc := range map[string]struct{ kind, name, patch string }{
		"a longer time limit":              {"job", "held", label(timeLimit, `"7201"`)},
		"a time limit that Kueue ignores":  {"job", "held", label(timeLimit, `"1h"`)},
		"no time limit any more":           {"job", "held", label(timeLimit, `null`)},
		"a class with a maximum":           {"job", "free", label("kueue.x-k8s.io/priority-class", `"short-priority"`)},
		"a longer deadline":                {"elasticjob", "train", `{"spec": {"activeDeadlineSeconds": 7201}}`},
		"no deadline any more":             {"elasticjob", "train", `{"spec": {"activeDeadlineSeconds": null}}`},
		"longer in another class with one": {"job", "held", `{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "both-priority", "` + timeLimit + `": "9000"}}}`},
	} {
		if out, err := merge(tc.kind, tc.name, tc.patch); err == nil || !strings.Contains(out, "have a time limit of at most 2h") {
			t.Errorf("%s: got %s, want a rejection", name, out)
		}
	}
	for name, tc := range map[string]struct{ kind, name, patch string }{
		"a time limit within the maximum": {"job", "held", label(timeLimit, `"7200"`)},
		"a class without a maximum":       {"job", "held", label("kueue.x-k8s.io/priority-class", `"usual-priority"`)},
		"a deadline within the maximum":   {"elasticjob", "train", `{"spec": {"activeDeadlineSeconds": 7200}}`},
	} {
		if out, err := merge(tc.kind, tc.name, tc.patch); err != nil {
			t.Errorf("%s: %s", name, out)
		}
	}

	// The policy changes: existing tasks keep their time limit, new ones do not get it.
	const shorter = `, {name: usual, weight: 9, maximumTimeLimitSeconds: 60}, {name: short, weight: 8, maximumTimeLimitSeconds: 60}`
	ns.enforceWith(t, v1alpha1.RequireQueue, shorter)
	ns.rejects(t, jobOf("a", limited("usual", "7200"), ``, ``), "at most 1m")
	if out, err := merge("job", "held", label("team", `"vision"`)); err != nil {
		t.Errorf("another label of an existing task: %s", out)
	}
	ns.enforceWith(t, v1alpha1.EnforcementNone, shorter)
	ns.accepts(t, jobOf("unlimited", limited("short", ""), ``, ``))
}

// clear deletes all tasks: a policy without their classes is not ready before.
func (ns namespace) clear(t *testing.T) {
	ns.Kubectl(t, "", "delete", "cronjobs,elasticjobs,jobs", "--all", "-n", ns.name)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "get", "workloads", "-n", ns.name, "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("got Workloads %s, want none", out)
		}
		return err
	})
}

// suspended returns a Job that does not fit, so that Kueue keeps it suspended.
func suspended(name, metadata string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: ` + name + `, namespace: NAMESPACE, ` + metadata + `}, spec: {suspend: true, parallelism: 99, completions: 99, template: ` + template(``, ``) + `}}`
}

// TestSetsDefaultTimeLimits checks that a new task without a time limit gets the default
// of its class, that Kueue stops it then, and that nothing else gets one. An API server
// before 1.36 sets none, so that a class with a maximum needs a time limit.
func TestSetsDefaultTimeLimits(t *testing.T) {
	ns := newNamespace(t)
	defer ns.clear(t)
	ns.enforceWith(t, v1alpha1.RequireQueue, limitedClasses+`, {name: brief, weight: 6, defaultTimeLimitSeconds: 1}`)
	if err := ns.Client.List(t.Context(), &admissionv1.MutatingAdmissionPolicyList{}); meta.IsNoMatchError(err) {
		ns.rejects(t, jobOf("both", limited("both", ""), ``, ``), "at most 2h")
		ns.accepts(t, jobOf("usual", limited("usual", ""), ``, ``))
		return
	} else if err != nil {
		t.Fatal(err)
	}
	dry := func(manifest, path string) (string, error) {
		return ns.TryKubectl(ns.fill(manifest), "create", "--dry-run=server", "-f", "-", "-o", "jsonpath="+path)
	}
	const ofJob, ofElasticJob = `{.metadata.labels.kueue\.x-k8s\.io/max-exec-time-seconds}`, `{.spec.activeDeadlineSeconds}`
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // the API server reads the parameters for both kinds of policies
		out, err := dry(jobOf("a", limited("usual", ""), ``, ``), ofJob)
		if err == nil && out != "3600" {
			err = fmt.Errorf("the time limit is %q, want 3600", out)
		}
		return err
	})
	for name, tc := range map[string]struct{ manifest, path, want string }{
		"a Job":                         {jobOf("a", limited("both", ""), ``, ``), ofJob, "60"},
		"a Job with a time limit":       {jobOf("a", limited("both", "90"), ``, ``), ofJob, "90"},
		"a Job of a class without":      {jobOf("a", queued, ``, ``), ofJob, ""},
		"a Job without a class":         {jobOf("a", onlyQueue, ``, ``), ofJob, ""},
		"a CronJob":                     {cronJobOf(limited("both", "")), `{.spec.jobTemplate.metadata.labels.kueue\.x-k8s\.io/max-exec-time-seconds}`, ""},
		"an ElasticJob":                 {elasticFor("a", limited("both", ""), ""), ofElasticJob, "60"},
		"a class with a maximum only":   {jobOf("a", limited("short", ""), ``, ``), ofJob, "7200"},
		"an ElasticJob of it":           {elasticFor("a", limited("short", "60"), ""), ofElasticJob, "7200"}, // Kueue reads no label of it
		"an ElasticJob with a deadline": {elasticFor("a", limited("both", ""), "90"), ofElasticJob, "90"},
	} {
		if out, err := dry(tc.manifest, tc.path); err != nil || out != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, out, err, tc.want)
		}
	}

	// The Jobs of a CronJob get it, and those of an ElasticJob have their deadline.
	ns.accepts(t, cronJobOf(limited("both", "")))
	ns.Kubectl(t, "", "create", "job", "by-hand", "-n", ns.name, "--from=cronjob/nightly")
	if out := ns.Kubectl(t, "", "get", "job", "by-hand", "-n", ns.name, "-o", "jsonpath="+ofJob); out != "60" {
		t.Errorf("a Job of a CronJob: got a time limit of %q, want 60", out)
	}
	if err := growing(); err != nil {
		t.Fatal(err)
	}
	ns.accepts(t, elasticFor("train", limited("both", ""), ""))
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "get", "job", "train-base", "-n", ns.name, "-o", "jsonpath={.spec.activeDeadlineSeconds}/"+ofJob)
		if err == nil && out != "60/" {
			err = fmt.Errorf("the base: got deadline/time limit %q, want 60/", out)
		}
		return err
	})

	// Kueue stops a task that reaches the default.
	ns.accepts(t, jobOf("brief", limited("brief", ""), ``, ``))
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := ns.TryKubectl("", "get", "workloads", "-n", ns.name, "-o", `jsonpath={range .items[?(@.metadata.ownerReferences[0].name=="brief")]}{.spec.maximumExecutionTimeSeconds} {.spec.active} {.status.conditions[?(@.type=="Evicted")].message}{end}`)
		if err == nil && (!strings.HasPrefix(out, "1 false") || !strings.HasSuffix(out, "exceeding the maximum execution time")) {
			err = fmt.Errorf("the Workload: got %q, want it deactivated after 1 s", out)
		}
		return err
	})
}
