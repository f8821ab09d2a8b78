package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"
)

// The API server records who submits a task, whatever the request says, and nobody changes
// it. Jobs of a CronJob have that of the CronJob.
func TestSubmitters(t *testing.T) {
	ns := newNamespace(t)
	if _, err := ns.TryKubectl("", "get", "mutatingadmissionpolicy", "kuota-submitted-by"); err != nil {
		t.Skip("this API server does not record users")
	}
	ada := "ada-" + ns.team
	ns.Apply(t, ns.fill(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edits, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+ada+`}]
`))
	annotation := strings.ReplaceAll(v1alpha1.AnnotationSubmittedBy, ".", `\.`)
	submitter := func(object, path string) string {
		t.Helper()
		return ns.Kubectl(t, "", "get", object, "-n", ns.name, "-o", "jsonpath={"+path+".annotations."+annotation+"}")
	}
	is := func(object, path, want string) {
		t.Helper()
		if got := submitter(object, path); got != want {
			t.Errorf("%s: submitted by %q, want %q", object, got, want)
		}
	}
	as := func(args ...string) (string, error) {
		return ns.TryKubectl("", append(args, "-n", ns.name, "--as", ada)...)
	}
	create := func(manifest string) {
		t.Helper()
		clustertest.Eventually(t, waitLimit, func(context.Context) error { // until the permission applies
			out, err := ns.TryKubectl(ns.fill(manifest), "create", "-f", "-", "--as", ada)
			if err != nil {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
	}
	const forged = "annotations: {kuota.dev/submitted-by: mallory}, "
	const me = ".metadata"
	create(jobOf("plain", onlyQueue, ``, ``))
	create(jobOf("forged", forged+onlyQueue, ``, ``))
	is("job/plain", me, ada)
	is("job/forged", me, ada)
	for _, change := range [][]string{{"annotate", "job", "plain", "--overwrite", "kuota.dev/submitted-by=mallory"}, {"annotate", "job", "plain", "kuota.dev/submitted-by-"}, {"label", "job", "plain", "a=b"}} {
		if out, err := as(change...); err != nil {
			t.Errorf("%v: %s", change, out)
		}
		is("job/plain", me, ada)
	}

	cron := func(name, metadata, template string) string {
		return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: ` + name + `, namespace: NAMESPACE, ` + metadata + `}, spec: {schedule: "* * * * *", jobTemplate: {metadata: {` + template + onlyQueue + `}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, resources: {requests: {cpu: 1}}}]}}}}}}`
	}
	create(cron("nightly", onlyQueue, ``))
	create(cron("forging", forged+onlyQueue, forged))
	for _, object := range []string{"cronjob/nightly", "cronjob/forging"} {
		is(object, me, ada)
		is(object, ".spec.jobTemplate.metadata", ada)
	}
	if out, err := ns.TryKubectl("", "patch", "cronjob", "forging", "-n", ns.name, "--type=merge", "-p", `{"spec": {"suspend": true, "jobTemplate": {"metadata": {"annotations": {"kuota.dev/submitted-by": "mallory"}}}}}`); err != nil {
		t.Error(out)
	}
	is("cronjob/forging", ".spec.jobTemplate.metadata", ada)
	clustertest.Eventually(t, 2*waitLimit, func(context.Context) error { // the next minute
		out, err := ns.TryKubectl("", "get", "jobs", "-n", ns.name, "-o", `jsonpath={range .items[*]}{.metadata.ownerReferences[0].name}={.metadata.annotations.`+annotation+`}{"\n"}{end}`)
		if err != nil || !strings.Contains(out, "nightly="+ada+"\n") {
			return fmt.Errorf("the jobs are %s (%v)", out, err)
		}
		return nil
	})

	// Where the API server does not name the submitter, no request names another one.
	ns.Kubectl(t, "", "delete", "mutatingadmissionpolicybinding", "kuota-submitted-by")
	defer ns.Apply(t, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: kuota-submitted-by}, spec: {policyName: kuota-submitted-by}}`)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		if out, err := ns.TryKubectl(ns.fill(jobOf("forged-too", forged+onlyQueue, ``, ``)), "create", "--dry-run=server", "-f", "-", "--as", ada); err == nil || !strings.Contains(out, "kuota-submitters") {
			return fmt.Errorf("a forged submitter: got %s and error %v, want a refusal by kuota-submitters", out, err)
		}
		return nil
	})
	if out, err := as("annotate", "job", "plain", "--overwrite", "kuota.dev/submitted-by=mallory"); err == nil {
		t.Errorf("a changed submitter: got %s, want a refusal", out)
	}
	if out, err := as("label", "job", "plain", "c=d"); err != nil {
		t.Errorf("another change: %s", out)
	}
}
