package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tenant is a team with a task and a group of members.
type tenant struct {
	team, job string
	secrets   []string // must not be on any page of another team's member
}

// makeTenant creates a team whose members are a group of the sample provider.
func makeTenant(t *testing.T, prefix, group string) tenant {
	t.Helper()
	c := clustertest.Get(t)
	team := clustertest.Name(prefix)
	deleteTeamAtEnd(t, team)
	one := int64(1)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		Spec: v1alpha1.ComputeAllocationSpec{
			DisplayName: "The secret team of " + team, Description: "Its purpose is " + team,
			Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Quantities: v1alpha1.Quantities{Accelerators: &one}}},
		},
	}))
	waitForQueues(t, c, team)
	c.Apply(t, memberBinding(team, group))
	job := clustertest.Name("job-of-" + prefix)
	c.Apply(t, jobManifest(team, job, 1))
	return tenant{team: team, job: job, secrets: []string{team, job}}
}

// firstEvents reads an event stream until it has sent the page once, and returns the
// status and the events.
func firstEvents(t *testing.T, client *http.Client, address string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	must(t, err)
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	var all strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "cluster-status") {
			break
		}
	}
	return response.StatusCode, all.String()
}

// squattedNamespace is a namespace of the vision team with the labels of another
// team's namespace.
const squattedNamespace = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME, labels: {kuota.dev/governed: "true", sagemaker.amazonaws.com/quota-allocation-id: TEAM}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: queue, namespace: NAME}
spec: {clusterQueue: none}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: members, namespace: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kuota-team-member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: vision-team}]
`

// TestTeamsAreIsolated checks that members of another team cannot read anything about
// a team in a list, form, stream, search or response to any method, and that the
// responses do not reveal whether the team exists.
func TestTeamsAreIsolated(t *testing.T) {
	t.Parallel()
	console(t)
	a, b := makeTenant(t, "tenant-a", "vision-team"), makeTenant(t, "tenant-b", "language-team")
	// A user who may label their own namespace could pass it off as another team's.
	clustertest.Get(t).Apply(t, strings.NewReplacer("NAME", clustertest.Name("squat"), "TEAM", b.team).Replace(squattedNamespace))
	for name, tc := range map[string]struct {
		own   []tenant
		other tenant
	}{
		"ada":   {own: []tenant{a}, other: b},
		"many":  {own: []tenant{a}, other: b},
		"grace": {own: []tenant{b}, other: a},
		"linus": {own: []tenant{a, b}},
		"admin": {own: []tenant{a, b}},
	} {
		t.Run(name, func(t *testing.T) {
			client := user(t, console(t), name)
			seen := ""
			read := func(what string, status int, body string) {
				seen += body
				for _, secret := range tc.other.secrets {
					if strings.Contains(body, secret) {
						t.Errorf("%s: got a page with %s of another team, want none", what, secret)
					}
				}
				if status >= 500 {
					t.Errorf("%s: got status %d, want no server error", what, status)
				}
			}
			for _, path := range []string{"/", "/tasks", "/teams", "/teams.csv", "/capacity.csv", "/classes.csv", "/instances", "/instances.csv", "/hardware.csv", "/tasks/past", "/tasks/past.csv", "/tasks.json", "/teams.json", "/activity.json", "/queue", "/queue.csv", "/queue.json", "/activity", "/activity.csv", "/usage", "/usage.csv", "/usage.json", "/usage?rows=task", "/usage.csv?rows=person", "/usage.json?rows=class", "/alerts", "/notices", "/alerts.csv", "/alerts.json", "/policies", "/policies.csv", "/policies.json", "/policies?created=" + tc.other.team} {
				status, body := fetch(t, client, console(t)+path)
				// A page may repeat the requested address.
				read(path, status, strings.ReplaceAll(body, strings.TrimPrefix(path, "/"), ""))
			}
			for _, own := range tc.own { // all of their own tasks
				path := "/tasks/hyperpod-ns-" + own.team + "/job/" + own.job
				clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows them and no old response is cached
					if status, _ := fetch(t, client, console(t)+path); status != http.StatusOK {
						return fmt.Errorf("GET %s: got status %d, want 200", path, status)
					}
					return nil
				})
				for _, address := range []string{path, path + "/yaml", path + "/logs", path + "/why.json"} {
					if status, body := fetch(t, client, console(t)+address); status != http.StatusOK || !strings.Contains(body, own.job) {
						t.Errorf("GET %s: got status %d, want 200 with the job: %s", address, status, body)
					} else {
						read(address, status, body)
					}
				}
			}
			if tc.other.team != "" {
				testSearches(t, client, tc.other)
			}
			for _, path := range []string{"/events", "/events/dashboard", "/events/teams", "/instances/events", "/tasks/events", "/queue/events", "/alerts/events", "/policies/events"} {
				status, body := firstEvents(t, client, console(t)+path)
				read(path, status, body)
			}
			for _, own := range tc.own {
				for _, secret := range own.secrets {
					if !strings.Contains(seen, secret) {
						t.Errorf("pages of %s: got no %s, want their own", name, secret)
					}
				}
			}
		})
	}
	// Every address and method has the same response for a team that exists and for
	// one that does not.
	ada := noRedirect(user(t, console(t), "ada"))
	for _, path := range []string{"/tasks/hyperpod-ns-TEAM", "/tasks/hyperpod-ns-TEAM/Job/JOB", "/teams/TEAM", "/teams/TEAM/events", "/teams/TEAM/submit", "/teams/TEAM/again?kind=Job&name=JOB", "/teams/TEAM/templates", "/teams/TEAM/submit/service", "/teams/TEAM/submit/notebook", "/teams/TEAM/usage.csv", "/policies/allocations/TEAM", "/policies/allocations/TEAM/events", "/policies/allocations/TEAM/edit", "/policies/allocations/TEAM/delete", "/policies/allocations/TEAM/revisions/1", "/tasks/hyperpod-ns-TEAM/job/JOB/yaml", "/tasks/hyperpod-ns-TEAM/job/JOB/why.json", "/tasks/hyperpod-ns-TEAM/job/JOB/events", "/tasks/hyperpod-ns-TEAM/job/JOB/logs", "/tasks/hyperpod-ns-TEAM/job/JOB/logs?pod=JOB", "/tasks/hyperpod-ns-TEAM/job/JOB/logs/events?pod=JOB", "/tasks/hyperpod-ns-TEAM/job/JOB/logs/download?pod=JOB", "/tasks/hyperpod-ns-TEAM/job/JOB/stop", "/tasks/hyperpod-ns-TEAM/job/JOB/resume", "/tasks/hyperpod-ns-TEAM/job/JOB/scale", "/tasks/hyperpod-ns-TEAM/job/JOB/class", "/tasks/hyperpod-ns-TEAM/job/JOB/front", "/tasks/hyperpod-ns-TEAM/job/JOB/delete", "/policies/allocations/TEAM/hold", "/policies/allocations/TEAM/resume", "/policies.yaml"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			respond := func(team, job string) (int, string) {
				address := console(t) + strings.NewReplacer("TEAM", team, "JOB", job).Replace(path)
				request, err := http.NewRequest(method, address, nil)
				must(t, err)
				response, page := send(t, ada, request)
				return response.StatusCode, strings.NewReplacer(team, "", job, "").Replace(page.Find("main").Text())
			}
			status, body := respond(b.team, b.job)
			if noStatus, noBody := respond("no-such-team", "no-such-job"); status != noStatus || body != noBody || status < 400 {
				t.Errorf("%s %s: got status %d for another team, want %d as for no team:\n%s\n%s", method, path, status, noStatus, body, noBody)
			}
		}
	}
	// The address of an own task does not lead to a pod of another team.
	var pod string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) (err error) {
		if pod, err = clustertest.Get(t).TryKubectl("", "get", "pods", "-n", "hyperpod-ns-"+b.team, "-o", "jsonpath={.items[*].metadata.name}"); err == nil && pod == "" {
			err = fmt.Errorf("pods of %s: got none, want one", b.job)
		}
		return err
	})
	logs := console(t) + "/tasks/hyperpod-ns-" + a.team + "/job/" + a.job + "/logs"
	for _, name := range []string{pod, "no-such-pod"} {
		status, body := fetch(t, ada, logs+"/download?pod="+name)
		if status != http.StatusNotFound || !strings.Contains(body, "The pod does not exist any more") {
			t.Errorf("download of a log of pod %s: got status %d, want 404 as for no pod: %s", name, status, body)
		}
		status, body = fetch(t, ada, logs+"?pod="+name)
		if status != http.StatusOK || !strings.Contains(body, "The pod does not exist any more") {
			t.Errorf("log of pod %s: got status %d, want 200 with the sentence of no pod: %s", name, status, body)
		}
	}
	// The form for allocations reveals which names exist, so that only users who may
	// create allocations may open it.
	if status, page := postTo(t, user(t, console(t), "ada"), console(t), filledForm(b.team)); status != http.StatusNotFound || strings.Contains(page.Text(), b.team) {
		t.Errorf("save by a member: got status %d, want 404 without the team", status)
	}
	nobody := user(t, console(t), "nobody")
	for _, path := range []string{"/tasks", "/tasks.json", "/teams.json", "/activity.json", "/queue", "/queue.csv", "/queue.json", "/usage", "/usage.csv", "/usage.json", "/usage?rows=task", "/usage.csv?rows=person", "/usage.json?rows=class", "/policies", "/policies/allocations/new"} {
		if status, body := fetch(t, nobody, console(t)+path); status < 400 || strings.Contains(body, "tenant-") {
			t.Errorf("%s for a user without a team: got status %d, want an error without a team", path, status)
		}
	}
}

// testSearches checks that a search for another team's names has the same result as a
// search for names that do not exist, apart from the search text on the page.
func testSearches(t *testing.T, client *http.Client, other tenant) {
	t.Helper()
	for _, path := range []string{"/tasks?team=TEAM", "/teams/TEAM", "/tasks?q=TEAM", "/tasks?q=JOB", "/tasks?class=JOB&sort=ran", "/tasks?pool=TEAM&page=2", "/tasks.csv?team=TEAM", "/tasks.csv?q=JOB", "/activity.json?team=TEAM", "/queue?team=TEAM", "/queue?class=JOB", "/queue.csv?team=TEAM", "/teams?q=TEAM", "/tasks/past?team=TEAM", "/tasks/past?q=JOB", "/activity?team=TEAM", "/activity?q=JOB", "/activity.csv?team=TEAM", "/usage?team=TEAM", "/usage.csv?team=TEAM", "/usage.json?team=TEAM"} {
		respond := func(team, job string) (int, string) {
			address := console(t) + strings.NewReplacer("TEAM", team, "JOB", job).Replace(path)
			request, err := http.NewRequest(http.MethodGet, address, nil)
			must(t, err)
			response, page := send(t, client, request)
			html, err := page.Html()
			must(t, err)
			if main := page.Find("main"); main.Length() > 0 { // without the age of the page
				html, err = main.Html()
				must(t, err)
			}
			return response.StatusCode, strings.NewReplacer(team, "", job, "").Replace(html)
		}
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // durations on the page can change in between
			status, body := respond(other.team, other.job)
			if noStatus, noBody := respond("no-such-team", "no-such-job"); status != noStatus || body != noBody {
				return fmt.Errorf("GET %s: got status %d for another team, want %d as for no team:\n%s\n%s", path, status, noStatus, body, noBody)
			}
			return nil
		})
	}
}

// TestRevokedMember checks that a user who loses a membership can read nothing of the
// team after the ten seconds for which access reviews are cached, also on a page that
// stays open.
func TestRevokedMember(t *testing.T) {
	t.Parallel()
	console(t)
	c := clustertest.Get(t)
	tenant := makeTenant(t, "revoked", "speech-team")
	susan := user(t, console(t), "susan")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if _, body := fetch(t, susan, console(t)+"/tasks"); !strings.Contains(body, tenant.job) {
			return fmt.Errorf("tasks of a member: got no %s, want it", tenant.job)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, console(t)+"/tasks/events", nil)
	must(t, err)
	response, err := susan.Do(request)
	must(t, err)
	defer response.Body.Close()

	c.Kubectl(t, "", "delete", "rolebinding", "kuota-members", "-n", "hyperpod-ns-"+tenant.team)
	revoked := time.Now()
	var last time.Time // when the stream last had the task
	for lines := bufio.NewScanner(response.Body); lines.Scan() && !strings.Contains(lines.Text(), "You are no longer a member of any team"); {
		if strings.Contains(lines.Text(), tenant.job) {
			last = time.Now()
		}
	}
	if took := last.Sub(revoked); took > 11*time.Second {
		t.Errorf("last event with the task: got %s after the revocation, want at most 11s", took)
	}
	if took := time.Since(revoked); took > 16*time.Second {
		t.Errorf("event of the revocation: got it after %s, want at most 16s", took)
	}
	if status, body := fetch(t, susan, console(t)+"/tasks"); status != http.StatusForbidden || strings.Contains(body, tenant.job) {
		t.Errorf("tasks after the revocation: got status %d, want 403 without the task", status)
	}
}
