package bypasses_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"
)

// TestShares checks that only the members of a share submit to its queue, by name and by
// group, that no change moves a task there, and that all of the team use the other queues.
func TestShares(t *testing.T) {
	u := newUsers(t)
	closed, open := u.name+"-share-closed", u.name+"-share-open"
	set := func(members string) {
		u.Kubectl(t, "", "patch", "computeallocation", u.team, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"shares": [{"name": "closed", "weight": 3, "members": %s}, {"name": "open", "weight": 1}]}}`, members))
	}
	to := func(queue string) string { return "labels: {kueue.x-k8s.io/queue-name: " + queue + "}" }
	set(fmt.Sprintf(`[{"kind": "User", "name": %q}, {"kind": "Group", "name": "closed-team"}]`, u.editor))
	const refused = "only the members of its share can use queue"
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // the API server reads the namespace a moment later
		out, err := u.as(u.member, jobOf("a", to(closed), ``, ``), "create", "-f", "-", "--dry-run=server")
		if err == nil || !strings.Contains(out, refused) {
			return fmt.Errorf("got %s, want a rejection", out)
		}
		return nil
	})
	cronJob := `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NAMESPACE}, spec: {schedule: "0 0 1 1 *", jobTemplate: {metadata: {%s}, spec: {template: ` + template(``, ``) + `}}}}`
	u.refuses(t, u.member, jobOf("a", to(closed), ``, ``), create, refused)
	u.refuses(t, u.member, elasticOf("a", to(closed), ``, ``), create, refused)
	u.rejects(t, jobOf("a", to(closed), ``, ``), refused) // a cluster admin is no member
	u.rejects(t, fmt.Sprintf(cronJob, to(closed)), refused)
	u.rejects(t, jobOf("a", to(closed)+`, annotations: {kuota.dev/share-members: "`+closed+` User x"}`, ``, ``), refused)

	for _, tc := range []struct{ user, manifest string }{
		{u.member, jobOf("in-open", to(open), ``, ``)},
		{u.member, jobOf("in-team", to(u.queue), ``, ``)},
		{u.editor, jobOf("in-closed", to(closed), ``, ``)},
		{u.editor, elasticOf("elastic", to(closed), ``, ``)},
		{u.editor, fmt.Sprintf(cronJob, to(closed))},
	} {
		if out, err := u.as(tc.user, tc.manifest, create...); err != nil {
			t.Errorf("%s: got %s, want it accepted", tc.user, out)
		}
	}
	if out, err := u.as(u.member, jobOf("by-group", to(closed), ``, ``), "create", "-f", "-", "--as-group=closed-team", "--as-group=system:authenticated"); err != nil {
		t.Errorf("a member by group: got %s, want it accepted", out)
	}
	u.running(t, "batch.kubernetes.io/job-name=in-closed", 1)
	clustertest.Eventually(t, waitLimit, func(context.Context) error { // Kuota is no member
		out, err := u.TryKubectl("", "get", "jobs", "-n", u.name, "-l", "kuota.dev/elastic-job=elastic", "-o", "name")
		if err == nil && out == "" {
			err = fmt.Errorf("the ElasticJob has no Job")
		}
		return err
	})

	// The editor may update jobs. No longer a member, they can change what is in the share,
	// but move nothing into it.
	u.Kubectl(t, "", "create", "job", "from-cron", "-n", u.name, "--from=cronjob/a", "--as", u.editor)
	set(`[{"kind": "Group", "name": "closed-team"}]`)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		if out, err := u.as(u.editor, jobOf("late", to(closed), ``, ``), "create", "-f", "-", "--dry-run=server"); err == nil {
			return fmt.Errorf("got %s, want a rejection", out)
		}
		return nil
	})
	if out, err := u.as(u.editor, "", "label", "job", "in-closed", "note=changed"); err != nil {
		t.Errorf("a label of a job in the share: got %s, want it accepted", out)
	}
	u.refuses(t, u.editor, "", []string{"label", "job", "in-team", "--overwrite", "kueue.x-k8s.io/queue-name=" + closed}, refused, "immutable")
	big := strings.Replace(jobOf("waits", to(u.queue), ``, ``), "nvidia.com/gpu: 1", "nvidia.com/gpu: 8", 1)
	if out, err := u.as(u.editor, big, create...); err != nil {
		t.Fatal(out)
	}
	u.refuses(t, u.editor, "", []string{"label", "job", "waits", "--overwrite", "kueue.x-k8s.io/queue-name=" + closed}, refused)

	// A share without members is open to the team.
	set(`[]`)
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := u.as(u.member, jobOf("late", to(closed), ``, ``), "create", "-f", "-", "--dry-run=server")
		if err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}
