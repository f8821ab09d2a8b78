package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tenant is a team with a task, and a member group.
type tenant struct {
	team, job string
	secrets   []string // what nobody else may read on any page
}

// makeTenant makes a team whose members are a group of the sample provider.
func makeTenant(t *testing.T, start, group string) tenant {
	t.Helper()
	c := clustertest.Get(t)
	team := clustertest.Name(start)
	removed(t, team)
	one := int64(1)
	must(t, c.Client.Create(t.Context(), &v1alpha1.ComputeAllocation{
		ObjectMeta: metav1.ObjectMeta{Name: team},
		Spec: v1alpha1.ComputeAllocationSpec{
			DisplayName: "The secret team of " + team, Description: "Its purpose is " + team,
			Quota: []v1alpha1.QuotaRow{{InstanceType: "ml.p5.48xlarge", Amounts: v1alpha1.Amounts{Accelerators: &one}}},
		},
	}))
	kueueHasIt(t, c, team)
	c.Apply(t, memberBinding(team, group))
	job := clustertest.Name("job-of-" + start)
	c.Apply(t, jobManifest(team, job, 1))
	return tenant{team: team, job: job, secrets: []string{team, job}}
}

// firstEvents reads a stream until it has sent its page once.
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

// squatted is a namespace of the vision team's that says it is another team's.
const squatted = `
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

// Nothing of a team reaches the members of another: by name, in no list, form,
// stream, search or answer to any method; and what exists is not told from
// what does not.
func TestTeamsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	console(t)
	a, b := makeTenant(t, "tenant-a", "vision-team"), makeTenant(t, "tenant-b", "language-team")
	both := tenant{secrets: slices.Concat(a.secrets, b.secrets)}
	// Whoever may label a namespace of their own could call it another team's.
	clustertest.Get(t).Apply(t, strings.NewReplacer("NAME", clustertest.Name("squat"), "TEAM", b.team).Replace(squatted))
	for name, tc := range map[string]struct{ own, other tenant }{
		"ada":   {own: a, other: b},
		"many":  {own: a, other: b},
		"grace": {own: b, other: a},
		"linus": {own: both},
		"admin": {own: both},
	} {
		t.Run(name, func(t *testing.T) {
			client := person(t, console(t), name)
			seen := ""
			read := func(what string, status int, body string) {
				seen += body
				for _, secret := range tc.other.secrets {
					if strings.Contains(body, secret) {
						t.Errorf("%s shows %s", what, secret)
					}
				}
				if status >= 500 {
					t.Errorf("%s answers %d", what, status)
				}
			}
			for _, path := range []string{"/", "/tasks", "/teams", "/teams.csv", "/capacity.csv", "/classes.csv", "/instances", "/instances.csv", "/hardware.csv", "/tasks/past", "/tasks/past.csv", "/policies", "/policies?created=" + tc.other.team} {
				status, body := fetch(t, client, console(t)+path)
				// An address repeats what was asked for; it tells nothing.
				read(path, status, strings.ReplaceAll(body, strings.TrimPrefix(path, "/"), ""))
			}
			if tc.own.team != "" { // their own task, whole
				path := "/tasks/hyperpod-ns-" + tc.own.team + "/job/" + tc.own.job
				clustertest.Eventually(t, 15*time.Second, func(context.Context) error { // until RBAC lets them in, and no old answer is kept
					if status, _ := fetch(t, client, console(t)+path); status != http.StatusOK {
						return fmt.Errorf("GET %s answers %d", path, status)
					}
					return nil
				})
				for _, address := range []string{path, path + "/yaml"} {
					if status, body := fetch(t, client, console(t)+address); status != http.StatusOK || !strings.Contains(body, tc.own.job) {
						t.Errorf("GET %s answers %d: %s", address, status, body)
					} else {
						read(address, status, body)
					}
				}
			}
			if tc.other.team != "" {
				searchesTellNothing(t, client, tc.other)
			}
			for _, path := range []string{"/events", "/events/dashboard", "/events/teams", "/instances/events", "/tasks/events", "/policies/events"} {
				status, body := firstEvents(t, client, console(t)+path)
				read(path, status, body)
			}
			for _, secret := range tc.own.secrets {
				if !strings.Contains(seen, secret) {
					t.Errorf("%s does not see their own %s", name, secret)
				}
			}
		})
	}
	// By address, with every method: the same for a team that exists as for one
	// that does not.
	ada := noRedirect(person(t, console(t), "ada"))
	for _, path := range []string{"/tasks/hyperpod-ns-TEAM", "/tasks/hyperpod-ns-TEAM/Job/JOB", "/teams/TEAM", "/teams/TEAM/events", "/teams/TEAM/usage.csv", "/policies/allocations/TEAM", "/policies/allocations/TEAM/events", "/policies/allocations/TEAM/edit", "/policies/allocations/TEAM/delete", "/policies/allocations/TEAM/revisions/1", "/tasks/hyperpod-ns-TEAM/job/JOB/yaml", "/tasks/hyperpod-ns-TEAM/job/JOB/events", "/tasks/hyperpod-ns-TEAM/job/JOB/stop", "/tasks/hyperpod-ns-TEAM/job/JOB/resume", "/tasks/hyperpod-ns-TEAM/job/JOB/class", "/tasks/hyperpod-ns-TEAM/job/JOB/front", "/tasks/hyperpod-ns-TEAM/job/JOB/delete", "/policies/allocations/TEAM/hold", "/policies/allocations/TEAM/resume", "/policies.csv"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			answer := func(team, job string) (int, string) {
				address := console(t) + strings.NewReplacer("TEAM", team, "JOB", job).Replace(path)
				request, err := http.NewRequest(method, address, nil)
				must(t, err)
				response, page := send(t, ada, request)
				return response.StatusCode, strings.NewReplacer(team, "", job, "").Replace(page.Find("main").Text())
			}
			status, body := answer(b.team, b.job)
			if noStatus, noBody := answer("no-such-team", "no-such-job"); status != noStatus || body != noBody || status < 400 {
				t.Errorf("%s %s answers %d for another's and %d for none:\n%s\n%s", method, path, status, noStatus, body, noBody)
			}
		}
	}
	// The form that makes allocations tells which names are taken: it is for
	// those who may make them.
	if status, page := postTo(t, person(t, console(t), "ada"), console(t), filledForm(b.team)); status != http.StatusNotFound || strings.Contains(page.Text(), b.team) {
		t.Errorf("a member who saves an allocation gets %d", status)
	}
	nobody := person(t, console(t), "nobody")
	for _, path := range []string{"/tasks", "/policies", "/policies/allocations/new"} {
		if status, body := fetch(t, nobody, console(t)+path); status < 400 || strings.Contains(body, "tenant-") {
			t.Errorf("somebody without a team gets %d at %s", status, path)
		}
	}
}

// searchesTellNothing searches for another team's names, and finds what it finds
// for names that there are not: a page repeats what was searched for.
func searchesTellNothing(t *testing.T, client *http.Client, other tenant) {
	t.Helper()
	for _, path := range []string{"/tasks?team=TEAM", "/teams/TEAM", "/tasks?q=TEAM", "/tasks?q=JOB", "/tasks?class=JOB&sort=ran", "/tasks?pool=TEAM&page=2", "/tasks.csv?team=TEAM", "/tasks.csv?q=JOB", "/teams?q=TEAM", "/tasks/past?team=TEAM", "/tasks/past?q=JOB"} {
		answer := func(team, job string) (int, string) {
			address := console(t) + strings.NewReplacer("TEAM", team, "JOB", job).Replace(path)
			request, err := http.NewRequest(http.MethodGet, address, nil)
			must(t, err)
			response, page := send(t, client, request)
			html, err := page.Html()
			must(t, err)
			if main := page.Find("main"); main.Length() > 0 { // not how old it is
				html, err = main.Html()
				must(t, err)
			}
			return response.StatusCode, strings.NewReplacer(team, "", job, "").Replace(html)
		}
		clustertest.Eventually(t, 10*time.Second, func(context.Context) error { // times go on meanwhile
			status, body := answer(other.team, other.job)
			if noStatus, noBody := answer("no-such-team", "no-such-job"); status != noStatus || body != noBody {
				return fmt.Errorf("GET %s answers %d for another's and %d for none:\n%s\n%s", path, status, noStatus, body, noBody)
			}
			return nil
		})
	}
}

// Somebody who is no member any more sees nothing within the ten seconds that
// an answer is kept, on a page that stays open too.
func TestRevokedMember(t *testing.T) {
	t.Parallel()
	console(t)
	c := clustertest.Get(t)
	tenant := makeTenant(t, "revoked", "speech-team")
	susan := person(t, console(t), "susan")
	clustertest.Eventually(t, 15*time.Second, func(context.Context) error {
		if _, body := fetch(t, susan, console(t)+"/tasks"); !strings.Contains(body, tenant.job) {
			return fmt.Errorf("a member does not see their task")
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
	var last time.Time // when the stream last showed the task
	for lines := bufio.NewScanner(response.Body); lines.Scan() && !strings.Contains(lines.Text(), "You are no longer a member of any team"); {
		if strings.Contains(lines.Text(), tenant.job) {
			last = time.Now()
		}
	}
	if took := last.Sub(revoked); took > 11*time.Second {
		t.Errorf("the stream shows the task for %s", took)
	}
	if took := time.Since(revoked); took > 16*time.Second {
		t.Errorf("the page is told after %s", took)
	}
	if status, body := fetch(t, susan, console(t)+"/tasks"); status != http.StatusForbidden || strings.Contains(body, tenant.job) {
		t.Errorf("afterwards the page answers %d", status)
	}
}
