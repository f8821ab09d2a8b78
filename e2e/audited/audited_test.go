package audited_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"kuota.dev/kuota/e2e/consoles"
	"kuota.dev/kuota/governance/cluster/clustertest"
	"kuota.dev/kuota/governance/record/history/historytest"
	"kuota.dev/kuota/handlers/auditevents"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	kubectl = "kubernetes-admin" // who kubectl is
	admin   = "admin@example.com"
)

// TestEveryActionHasItsPerson deletes and changes tasks by kubectl, by a program, by
// controllers and in the console, also while the console is killed and its database away. Each
// is activity exactly once, of the right person.
func TestEveryActionHasItsPerson(t *testing.T) {
	c := clustertest.Get(t)
	c.Apply(t, consoles.AdminBinding)
	server := historytest.Start(t)
	r := consoles.New(t, c, "audited", server.Database(t), append(receiver.Environment, "KUOTA_ACTIVITY_DIR="+t.TempDir())...)
	r.WaitReady()
	r.WaitLeads(consoles.Patience)
	signedIn := consoles.SignIn(t, r)
	l := &lab{Cluster: c, team: c.ReadyTeams(t, 1) + "-0", want: map[string]int{}}
	l.namespace = "hyperpod-ns-" + l.team
	robot := l.robot(t)

	for _, name := range []string{"deleted", "by-robot", "collected-1", "collected-2", "foreground", "stopped", "annotated", "in-console", "while-killed", "database-away"} {
		l.submit(t, name, "1h", "10m", "")
	}
	l.submit(t, "expired", "1s", "10m", "ttlSecondsAfterFinished: 1, ")
	l.submit(t, "classed", "1h", "10000", "") // waits: Kueue allows another class only then
	c.Apply(t, fmt.Sprintf(`
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: elastic, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %[1]s-localqueue}}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2, replicaIncrementStep: 1, scalingTimeoutInSeconds: 1}
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {containers: [{name: train, image: example.com/train:1, resources: {requests: {cpu: 1}}}]}
`, l.namespace))
	l.expect(kubectl, "outside", "submit", "ElasticJob", "elastic")
	l.wait(t, signedIn, r)

	l.kubectl(t, "delete", "job", "deleted")
	l.expect(kubectl, "outside", "delete", "Job", "deleted")
	_, err := robot("delete", "job", "by-robot")
	must(t, err)
	l.expect("system:serviceaccount:"+l.namespace+":robot", "outside", "delete", "Job", "by-robot")
	must(t, c.Client.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace(l.namespace), client.MatchingLabels{"group": "collected"}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	l.expect(kubectl, "outside", "delete", "Job", "collected-1")
	l.expect(kubectl, "outside", "delete", "Job", "collected-2")
	l.kubectl(t, "delete", "job", "foreground", "--cascade=foreground")
	l.expect(kubectl, "outside", "delete", "Job", "foreground")
	l.expect("system:serviceaccount:kube-system:ttl-after-finished-controller", "outside", "delete", "Job", "expired")

	c.Apply(t, `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "audited-urgent"}, "value": 99}`)
	l.kubectl(t, "label", "job", "classed", "kueue.x-k8s.io/priority-class=audited-urgent")
	l.expect(kubectl, "outside", "change-class", "Job", "classed")
	workload := l.kubectl(t, "get", "workloads", "-o", `jsonpath={.items[?(@.metadata.ownerReferences[0].name=="stopped")].metadata.name}`)
	l.kubectl(t, "patch", "workload", workload, "--type=merge", "-p", `{"spec": {"active": false}}`)
	l.expect(kubectl, "outside", "stop", "Job", "stopped")
	l.kubectl(t, "annotate", "job", "annotated", "note=mine")
	l.expect(kubectl, "outside", "update", "Job", "annotated")
	l.kubectl(t, "annotate", "job", "annotated", "note=mine", "--overwrite") // changes nothing
	time.Sleep(1100 * time.Millisecond)                                      // the times of changes are whole seconds
	l.kubectl(t, "annotate", "job", "annotated", "note=mine", "--overwrite")
	l.kubectl(t, "patch", "elasticjob", "elastic", "--type=merge", "-p", `{"spec": {"elasticPolicy": {"maxReplicas": 3}}}`)
	l.expect(kubectl, "outside", "resize", "ElasticJob", "elastic")
	l.kubectl(t, "delete", "elasticjob", "elastic")
	l.expect(kubectl, "outside", "delete", "ElasticJob", "elastic")

	l.act(t, signedIn, r, "in-console", "stop")
	l.act(t, signedIn, r, "in-console", "delete")
	l.wait(t, signedIn, r)

	r.End(syscall.SIGKILL)
	_, err = robot("delete", "job", "while-killed")
	must(t, err)
	l.expect("system:serviceaccount:"+l.namespace+":robot", "outside", "delete", "Job", "while-killed")
	time.Sleep(2 * time.Second) // the API server fails to send it at least once
	r.Start()
	r.WaitReady()
	server.Stop(t)
	_, err = robot("delete", "job", "database-away")
	must(t, err)
	l.expect("system:serviceaccount:"+l.namespace+":robot", "outside", "delete", "Job", "database-away")
	time.Sleep(3 * time.Second) // the console gets it, and is killed before the database has it
	r.End(syscall.SIGKILL)
	server.Restart(t)
	r.Start()
	r.WaitReady()
	r.WaitLeads(consoles.Patience)
	l.wait(t, signedIn, r)

	c.Kubectl(t, "", "delete", "computeallocation", l.team, "--wait=false")
	l.expect(kubectl, "outside", "delete", "ComputeAllocation", l.team)
	l.wait(t, signedIn, r)
	time.Sleep(5 * time.Second) // nothing is added
	l.wait(t, signedIn, r)
}

// TestAPIServerMustAuthenticate sends events with another token and with none.
func TestAPIServerMustAuthenticate(t *testing.T) {
	r := consoles.New(t, clustertest.Get(t), "rejects", t.TempDir()+"/history.db", receiver.Environment...)
	r.WaitReady()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(receiver.Certificate)
	sender := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	for authorization, want := range map[string]int{"": 401, "Bearer another-token": 401, "Bearer " + receiver.Token: 200, "Basic " + receiver.Token: 401} {
		request, err := http.NewRequest(http.MethodPost, "https://"+receiver.Address+auditevents.Path, strings.NewReader(`{"items": []}`))
		must(t, err)
		request.Header.Set("Authorization", authorization)
		response, err := sender.Do(request)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with %q: got %s, want %d", authorization, response.Status, want)
		}
	}
}

// lab is the namespace of a team, and the activity that is expected of it.
type lab struct {
	*clustertest.Cluster
	team, namespace string
	want            map[string]int
}

func (l *lab) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return l.Kubectl(t, "", append(args, "-n", l.namespace)...)
}

// robot creates a service account that may delete jobs, and returns its kubectl.
func (l *lab) robot(t *testing.T) func(args ...string) (string, error) {
	t.Helper()
	l.Apply(t, strings.ReplaceAll(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot, namespace: NS}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: robot, namespace: NS}, rules: [{apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, delete]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: robot, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}, subjects: [{kind: ServiceAccount, name: robot, namespace: NS}]}
`, "NS", l.namespace))
	account := strings.TrimSpace(l.kubectl(t, "create", "token", "robot"))
	return func(args ...string) (string, error) {
		// Without its own the certificate of the admin would identify it.
		return l.TryKubectl("", append(args, "-n", l.namespace, "--kubeconfig=/dev/null", "--server="+l.Config.Host, "--insecure-skip-tls-verify", "--token="+account)...)
	}
}

func (l *lab) expect(person, source, action, kind, name string) {
	l.want[strings.Join([]string{person, source, action, kind, name}, " ")]++
}

// submit creates a job of one pod with its run time and CPU, and more of the job's spec.
func (l *lab) submit(t *testing.T, name, run, cpu, more string) {
	t.Helper()
	group, _, _ := strings.Cut(name, "-")
	l.Kubectl(t, fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, labels: {kueue.x-k8s.io/queue-name: %[2]s-localqueue, group: "%s"}}
spec: {%s"template": {metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: %s}}, spec: {restartPolicy: Never, containers: [{name: train, image: "example.com/train:1", resources: {requests: {cpu: "%s"}}}]}}}
`, name, l.namespace, group, more, run, cpu), "create", "-f", "-")
	l.expect(kubectl, "outside", "submit", "Job", name)
}

// act does what a button on the page of a task does.
func (l *lab) act(t *testing.T, signedIn *http.Client, r *consoles.Replica, task, action string) {
	t.Helper()
	address := r.Address + "/tasks/" + l.namespace + "/job/" + task + "/" + action
	response, err := signedIn.Get(address)
	must(t, err)
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	must(t, err)
	values := url.Values{"action": {"save"}, "confirm": {task}}
	page.Find("#action-form input[name]").Each(func(_ int, i *goquery.Selection) {
		if !values.Has(i.AttrOr("name", "")) {
			values.Set(i.AttrOr("name", ""), i.AttrOr("value", ""))
		}
	})
	saved, err := signedIn.PostForm(address, values)
	must(t, err)
	defer saved.Body.Close()
	if saved.StatusCode != http.StatusOK {
		answer, _ := goquery.NewDocumentFromReader(saved.Body)
		t.Fatalf("%s %s: got %s: %s", action, task, saved.Status, answer.Find("main").Text())
	}
	l.expect(admin, "console", action, "Job", task)
}

// wait waits until the activity of the team is exactly what is expected.
func (l *lab) wait(t *testing.T, signedIn *http.Client, r *consoles.Replica) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		body, err := consoles.Get(ctx, signedIn, r.Address+"/activity.csv?team="+l.team)
		if err != nil {
			return err
		}
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(rows) == 0 {
			return fmt.Errorf("got %q (%w)", body, err)
		}
		got := map[string]int{}
		for _, row := range rows[1:] { // time, person, source, address, action, outcome, kind, namespace, name, uid, …
			if row[6] != "ComputeAllocation" || row[4] == "delete" {
				got[strings.Join([]string{row[1], row[2], row[4], row[6], row[8]}, " ")]++
			}
		}
		if diff := cmp.Diff(l.want, got); diff != "" {
			return errors.New("activity (-want +got):\n" + diff)
		}
		return nil
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
