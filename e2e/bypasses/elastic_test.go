package bypasses_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/tasks/queries"
)

// growing starts the controller of ElasticJobs once for all tests.
var growing = sync.OnceValue(func() error {
	connection, err := cluster.New(current.Console, cluster.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	tasks := queries.New(connection, &access.Service{Cluster: connection})
	if _, err := elastic.SetupWithManager(connection.Manager, elastic.Options{Rooms: tasks.Rooms, Claims: tasks.Claims, Sources: tasks.IdleSources, RecordsUsers: connection.RecordsUsers}); err != nil {
		return err
	}
	go func() {
		if err := connection.Run(context.Background()); err != nil {
			panic(err)
		}
	}()
	return nil
})

// users of a team's namespace: member has Kuota's role, editor may also update Jobs, and
// stranger may create ElasticJobs but no Jobs.
type users struct {
	namespace
	member, editor, stranger string
}

func newUsers(t *testing.T) users {
	t.Helper()
	ns := newNamespace(t)
	if err := growing(); err != nil {
		t.Fatal(err)
	}
	u := users{ns, ns.team + "-member@example.com", ns.team + "-editor@example.com", ns.team + "-stranger@example.com"}
	ns.Apply(t, ns.fill(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: elasticjobs, namespace: NAMESPACE}
rules: [{apiGroups: [kuota.dev], resources: [elasticjobs], verbs: [get, create, patch]}]
`))
	for role, subjects := range map[string][]string{"ClusterRole/kuota-team-member": {u.member, u.editor}, "ClusterRole/edit": {u.editor}, "Role/elasticjobs": {u.stranger}} {
		kind, name, _ := strings.Cut(role, "/")
		for i, subject := range subjects {
			ns.Apply(t, ns.fill(fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s-%d, namespace: NAMESPACE}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}]}`, name, i, kind, name, subject)))
		}
	}
	for user, verb := range map[string][]string{u.member: {"create", "jobs"}, u.editor: {"update", "jobs"}, u.stranger: {"create", "elasticjobs.kuota.dev"}} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			out, err := u.as(user, "", append([]string{"auth", "can-i"}, verb...)...)
			if err != nil {
				return fmt.Errorf("%s %v: %s", user, verb, out)
			}
			return nil
		})
	}
	return u
}

// as runs kubectl as a user in the namespace.
func (u users) as(user, input string, args ...string) (string, error) {
	return u.TryKubectl(u.fill(input), append(args, "-n", u.name, "--as", user)...)
}

// refuses checks that the API server refuses a command of a user, with one of texts.
func (u users) refuses(t *testing.T, user, input string, args []string, texts ...string) {
	t.Helper()
	out, err := u.as(user, input, args...)
	if err == nil {
		t.Errorf("%v as %s: got %s, want a rejection", args, user, out)
		return
	}
	for _, text := range texts {
		if strings.Contains(out, text) {
			return
		}
	}
	t.Errorf("%v as %s: got %q, want one of %q", args, user, out, texts)
}

// elasticOf returns an ElasticJob of one to two pods. The arguments are flow YAML.
func elasticOf(name, metadata, podMetadata, podSpec string) string {
	return fmt.Sprintf(`{apiVersion: kuota.dev/v1alpha1, kind: ElasticJob, metadata: {name: %s, namespace: NAMESPACE, %s}, spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1, gracefulShutdownTimeoutInSeconds: 0, scalingTimeoutInSeconds: 1, minStablePeriodSeconds: 1}, template: %s}}`,
		name, metadata, template(podMetadata, podSpec))
}

var create = []string{"create", "-f", "-"}

// grown creates an ElasticJob as the member and waits until it has grown.
func (u users) grown(t *testing.T, name string) {
	t.Helper()
	if out, err := u.as(u.member, elasticOf(name, queued, ``, ``), create...); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() { _, _ = u.as(u.member, "", "delete", "elasticjob", name, "--ignore-not-found", "--wait=false") })
	u.hasSize(t, name, "2")
}

func (u users) hasSize(t *testing.T, name, want string) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := u.TryKubectl("", "get", "elasticjob", name, "-n", u.name, "-o", "jsonpath={.status.replicas}")
		if err == nil && out != want {
			status, _ := u.TryKubectl("", "get", "elasticjob", name, "-n", u.name, "-o", "jsonpath={.status}")
			err = fmt.Errorf("the size is %q, want %s: %s", out, want, status)
		}
		return err
	})
}

// TestRejectsElasticJobs checks that an ElasticJob cannot be what the user's own Job could
// not be, and that no Job of a user passes for growth.
func TestRejectsElasticJobs(t *testing.T) {
	u := newUsers(t)
	of := func(key, value string) string { return fmt.Sprintf("labels: {kuota.dev/%s: %q}", key, value) }
	for name, tc := range map[string]struct {
		user, manifest string
		want           []string
	}{
		"no permission for Jobs":      {u.stranger, elasticOf("a", queued, ``, ``), []string{"no permission to create Jobs"}},
		"no queue":                    {u.member, elasticOf("a", ``, ``, ``), []string{"a queue is missing"}},
		"an unknown class":            {u.member, elasticOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: bogus}`, ``, ``), []string{"unknown priority class bogus"}},
		"the class of growth":         {u.member, elasticOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: kuota-growth}`, ``, ``), []string{"kuota-growth"}},
		"a pod's priority":            {u.member, elasticOf("a", queued, ``, `priorityClassName: system-cluster-critical,`), []string{"priorityClassName"}},
		"a forged podset":             {u.member, elasticOf("a", queued, forgedPodset, ``), []string{"kueue.x-k8s.io/podset"}},
		"a type in a pool":            {u.member, elasticOf("a", queued, ``, `nodeSelector: {node.kubernetes.io/instance-type: ml.g6.12xlarge},`), []string{"kuota.dev/pool: small"}},
		"a Job of the growth's class": {u.member, jobOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kueue.x-k8s.io/priority-class: kuota-growth}`, ``, ``), []string{"kuota-growth"}},
		"a Job with a forged label":   {u.member, jobOf("a", `labels: {kueue.x-k8s.io/queue-name: QUEUE, kuota.dev/elastic-job-uid: x}`, ``, ``), []string{"reserved for Jobs of an ElasticJob"}},
		"pods with a forged label":    {u.member, jobOf("a", queued, of("elastic-job", "train"), ``), []string{"reserved for Jobs of an ElasticJob"}},
		"pods with a forged number":   {u.editor, jobOf("a", queued, of("elastic-increment", "0"), ``), []string{"reserved for Jobs of an ElasticJob"}},
	} {
		t.Run(name, func(t *testing.T) { u.refuses(t, tc.user, tc.manifest, create, tc.want...) })
	}

	// A Job cannot become a part later.
	u.accepts(t, jobOf("plain", queued, ``, ``))
	u.refuses(t, u.editor, "", []string{"label", "job", "plain", "kuota.dev/elastic-job=train"}, "this Job is part of an ElasticJob")
	u.refuses(t, u.member, "", []string{"label", "job", "plain", "--overwrite", "kueue.x-k8s.io/priority-class=kuota-growth"}, "kuota-growth", "this Job is part of an ElasticJob")

	// A queue of another team is none in this namespace: the job never starts.
	if out, err := u.as(u.member, elasticOf("elsewhere", `labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-other-localqueue}`, ``, ``), create...); err != nil {
		t.Fatal(out)
	}
	// What pods may not use, those of an ElasticJob may not use either.
	u.Kubectl(t, "", "label", "namespace", u.name, "pod-security.kubernetes.io/enforce=baseline")
	const hostPath = `volumes: [{name: root, hostPath: {path: /}}],`
	for _, manifest := range []string{elasticOf("takes-host", queued, ``, hostPath), jobOf("host", queued, ``, hostPath)} {
		if out, err := u.as(u.member, manifest, create...); err != nil {
			t.Fatal(out)
		}
	}
	for _, job := range []string{"takes-host-base", "host"} {
		clustertest.Eventually(t, waitLimit, func(context.Context) error {
			out, err := u.TryKubectl("", "get", "events", "-n", u.name, "--field-selector", "involvedObject.kind=Job,involvedObject.name="+job, "-o", "jsonpath={.items[*].message}")
			if err == nil && !strings.Contains(out, "hostPath volumes") {
				err = fmt.Errorf("events of %s: %q, want pods to be refused for hostPath", job, out)
			}
			return err
		})
	}
	if out := u.Kubectl(t, "", "get", "pods", "-n", u.name, "-l", "batch.kubernetes.io/job-name in (elsewhere-base, takes-host-base, host)", "-o", "name"); out != "" {
		t.Errorf("got pods %s, want none", out)
	}
	u.Kubectl(t, "", "delete", "elasticjob", "elsewhere", "takes-host", "-n", u.name)
}

// waitSizes waits until the last changes of the size of the ElasticJob train are these.
func (u users) waitSizes(t *testing.T, want string) {
	t.Helper()
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := u.TryKubectl("", "get", "elasticjob", "train", "-n", u.name, "-o", "jsonpath={range .status.scaleEvents[*]}{.from}>{.to} {end}")
		if err == nil && !strings.HasSuffix(strings.TrimSpace(out), want) {
			err = fmt.Errorf("sizes %s, want %s last", out, want)
		}
		return err
	})
}

// TestPartsOfElasticJobs checks that users change an ElasticJob within its rules, and its
// Jobs not at all. They may delete its Jobs: then it shrinks, and grows again.
func TestPartsOfElasticJobs(t *testing.T) {
	u := newUsers(t)
	u.grown(t, "train")
	uid := u.Kubectl(t, "", "get", "job", "train-base", "-n", u.name, "-o", "jsonpath={.metadata.uid}")
	merge := func(resource, name, patch string, more ...string) []string {
		return append([]string{"patch", resource, name, "--type=merge", "-p", patch}, more...)
	}
	const part = "this Job is part of an ElasticJob"
	for _, user := range []string{u.member, u.editor} {
		for _, job := range []string{"train-base", "train-grow-1"} {
			for _, patch := range []string{
				`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "training-priority-2"}}}`,
				`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "dev-priority"}}}`,
				`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}`,
				`{"metadata": {"labels": {"kuota.dev/elastic-job-uid": null}}}`,
				`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "6f9619ff-8b86-d011-b42d-00cf4fc964ff"}]}}`,
				`{"spec": {"parallelism": 4}}`,
				`{"spec": {"suspend": true}}`,
			} {
				u.refuses(t, user, "", merge("job", job, patch), part, "only the label kueue.x-k8s.io/priority-class of a job can be changed", "unknown priority class")
			}
		}
	}
	for _, tc := range []struct{ patch, want string }{
		{`{"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}`, "spec.template cannot be changed"},
		{`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}}`, "the queue cannot be changed"},
		{`{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": null}}}`, "a queue is missing"},
		{`{"metadata": {"labels": {"kueue.x-k8s.io/priority-class": "kuota-growth"}}}`, "kuota-growth"},
		{`{"metadata": {"finalizers": null}}`, "the finalizer kuota.dev/elastic cannot be removed"},
		{`{"spec": {"elasticPolicy": {"maxReplicas": 0}}}`, "spec.elasticPolicy.maxReplicas"},
	} {
		for _, user := range []string{u.member, u.editor} {
			u.refuses(t, user, "", merge("elasticjob", "train", tc.patch), tc.want)
		}
	}
	u.refuses(t, u.stranger, "", merge("elasticjob", "train", `{"spec": {"elasticPolicy": {"maxReplicas": 1}}}`), "no permission to patch Jobs")
	for _, user := range []string{u.member, u.editor} {
		u.refuses(t, user, "", merge("elasticjob", "train", `{"status": {"replicas": 99}}`, "--subresource=status"), "resource \"elasticjobs/status\"")
	}

	// Nobody can claim that another user changed it.
	by := u.member
	if _, err := u.TryKubectl("", "get", "mutatingadmissionpolicybinding", "kuota-changed-by"); err != nil {
		by = "" // this API server does not record users
	}
	if out, err := u.as(u.member, "", merge("elasticjob", "train", `{"metadata": {"annotations": {"kuota.dev/changed-by": "eve@example.com"}}, "spec": {"suspend": true}}`)...); err != nil {
		t.Fatal(out)
	}
	u.waitSizes(t, "2>0")
	if got := u.Kubectl(t, "", "get", "elasticjob", "train", "-n", u.name, "-o", "jsonpath={.status.scaleEvents[-1:].by}"); got != by {
		t.Errorf("suspended by %q, want %q", got, by)
	}
	if out, err := u.as(u.member, "", merge("elasticjob", "train", `{"spec": {"suspend": false}}`)...); err != nil {
		t.Fatal(out)
	}
	u.waitSizes(t, "0>1 1>2")

	if out, err := u.as(u.member, "", "delete", "job", "train-grow-1"); err != nil {
		t.Fatal(out)
	}
	u.waitSizes(t, "2>1 1>2")
	if now := u.Kubectl(t, "", "get", "job", "train-base", "-n", u.name, "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Error("the base was replaced")
	}

	// A deleted ElasticJob leaves nothing behind, though its user tries to keep its Jobs.
	if out, err := u.as(u.member, "", "delete", "elasticjob", "train", "--wait=false"); err != nil {
		t.Fatal(out)
	}
	if out, err := u.as(u.member, "", merge("elasticjob", "train", `{"metadata": {"finalizers": null}}`)...); err == nil {
		t.Errorf("removing the finalizer of a deleted ElasticJob: got %s, want a rejection", out)
	}
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := u.TryKubectl("", "get", "elasticjobs,jobs,services,pods", "-n", u.name, "-l", "kuota.dev/elastic-job=train", "-o", "name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("left are %s", out)
		}
		return err
	})
}

// TestNameOfABaseIsTaken checks that a Job that has the name of a base by chance is left
// alone, neither adopted nor deleted with the ElasticJob, and that the status says so.
func TestNameOfABaseIsTaken(t *testing.T) {
	u := newUsers(t)
	u.accepts(t, jobOf("taken-base", queued, ``, ``))
	before := u.Kubectl(t, "", "get", "job", "taken-base", "-n", u.name, "-o", "jsonpath={.metadata.uid} {.metadata.labels} {.spec.parallelism}")
	if out, err := u.as(u.member, elasticOf("taken", queued, ``, ``), create...); err != nil {
		t.Fatal(out)
	}
	clustertest.Eventually(t, waitLimit, func(context.Context) error {
		out, err := u.TryKubectl("", "get", "elasticjob", "taken", "-n", u.name, "-o", "jsonpath={.status.state} {.status.conditions[*].reason} {.status.conditions[*].message}")
		if err == nil && (!strings.HasPrefix(out, "Pending NameConflict ") || !strings.Contains(out, "/taken-base exists")) {
			err = fmt.Errorf("the status is %q, want Pending for a conflict of names", out)
		}
		return err
	})
	u.running(t, "batch.kubernetes.io/job-name=taken-base", 1)
	u.Kubectl(t, "", "delete", "elasticjob", "taken", "-n", u.name, "--timeout=30s")
	if after := u.Kubectl(t, "", "get", "job", "taken-base", "-n", u.name, "-o", "jsonpath={.metadata.uid} {.metadata.labels} {.spec.parallelism}"); after != before {
		t.Errorf("the Job was %s, and is %s", before, after)
	}
}

// TestCeilingLimitsGrowth checks that growth counts against the ceiling of a namespace,
// and that no growth beyond it is tried, whose pods would be refused.
func TestCeilingLimitsGrowth(t *testing.T) {
	u := newUsers(t)
	u.Apply(t, u.fill(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: ceiling, namespace: NAMESPACE}, spec: {hard: {requests.nvidia.com/gpu: "1"}}}`))
	if out, err := u.as(u.member, elasticOf("capped", queued, ``, ``), create...); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() { _, _ = u.as(u.member, "", "delete", "elasticjob", "capped", "--wait=false") })
	u.running(t, "batch.kubernetes.io/job-name=capped-base", 1)
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		if out := u.Kubectl(t, "", "get", "jobs", "-n", u.name, "-o", "name"); strings.Contains(out, "capped-grow-") {
			t.Fatalf("there are %s, want no growth", out)
		}
	}
	u.Kubectl(t, "", "patch", "resourcequota", "ceiling", "-n", u.name, "--type=merge", "-p", `{"spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}`)
	u.hasSize(t, "capped", "2")
	u.running(t, "kuota.dev/elastic-job=capped", 2)
}
