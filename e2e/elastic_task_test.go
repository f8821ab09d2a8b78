package e2e_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeElasticTeam creates a team with a quota of four GPUs of an instance type, which can
// borrow all others.
func makeElasticTeam(t *testing.T, instanceType, prefix string, members ...v1alpha1.Member) (team string) {
	t.Helper()
	c := clustertest.Get(t)
	team = clustertest.Name(prefix)
	deleteTeamAtEnd(t, team)
	four := int64(4)
	allocation := &v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: team}, Spec: v1alpha1.ComputeAllocationSpec{
		Quota: []v1alpha1.QuotaRow{{InstanceType: instanceType, Quantities: v1alpha1.Quantities{Accelerators: &four}}}, Members: members,
	}}
	allocation.Spec.Sharing.Unlimited = true
	must(t, c.Client.Create(t.Context(), allocation))
	waitForLocalQueue(t, team)
	return team
}

// TestElasticTaskPage watches an elastic task on an open page: it grows into the idle quota
// of its own team and of another, gives that back, and is deleted. Its reader never learns
// which other team it is.
func TestElasticTaskPage(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	console(t)
	instanceType := clustertest.Name("lab.elastic")
	c.Node(t, instanceType, map[string]string{corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: instanceType, corev1.LabelOSStable: "linux"},
		clustertest.Resources(map[corev1.ResourceName]string{"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}))
	own := makeElasticTeam(t, instanceType, "grows", v1alpha1.Member{Kind: "Group", Name: "vision-team"})
	other := makeElasticTeam(t, instanceType, "reclaims", v1alpha1.Member{Kind: "Group", Name: "language-team"})
	c.Apply(t, `
apiVersion: kuota.dev/v1alpha1
kind: ElasticJob
metadata: {name: train, namespace: hyperpod-ns-`+own+`, labels: {kueue.x-k8s.io/queue-name: hyperpod-ns-`+own+`-localqueue}}
spec:
  elasticPolicy: {minReplicas: 2, maxReplicas: 8, replicaIncrementStep: 2, scalingTimeoutInSeconds: 1, minStablePeriodSeconds: 600, gracefulShutdownTimeoutInSeconds: 0}
  template:
    metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
    spec: {containers: [{name: train, image: example.com/train:1, resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
	t.Cleanup(func() {
		_, _ = c.TryKubectl("", "delete", "elasticjob", "train", "-n", "hyperpod-ns-"+own, "--ignore-not-found")
	})
	path := "/tasks/hyperpod-ns-" + own + "/elasticjob/train"
	ada := user(t, console(t), "ada")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until RBAC allows the member, and the job has a Workload
		if status, _ := fetch(t, ada, console(t)+path); status != http.StatusOK {
			return fmt.Errorf("page of the task: got status %d, want 200", status)
		}
		return nil
	})
	page := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, page, path)
	markLoaded(t, page)
	card, rows := page.Locator("#task-elastic"), page.Locator("#scales-table tbody tr")
	must(t, expect.Locator(card).ToContainText("8 of 2–8 pods: 2 guaranteed, 6 growth"))
	must(t, expect.Locator(rows.First()).ToContainText("Grew into idle compute"))
	must(t, expect.Locator(rows.First()).ToContainText("its team's own quota, quota lent by other teams"))
	must(t, expect.Locator(rows.Last()).ToContainText("Started with its minimum"))

	c.Apply(t, jobManifest(other, "owner", 4))
	must(t, expect.Locator(card).ToContainText("4 of 2–8 pods: 2 guaranteed, 2 growth"))
	must(t, expect.Locator(card).ToContainText("Grows again"))
	must(t, expect.Locator(rows.First()).ToContainText(regexp.MustCompile(`(Preempted|Growth withdrawn)\s+for another team`)))
	notReloaded(t, page)
	must(t, expect.Locator(page.Locator("#scale-chart canvas")).ToBeVisible())
	must(t, expect.Locator(page.Locator("#scale-chart .chart-words")).ToContainText("Guaranteed 2 · Growth 2"))
	eachAppearance(t, page, func(appearance string, _ int) {
		must(t, expect.Locator(page.Locator("#scale-chart canvas")).ToBeVisible())
		name := "task-elastic-" + appearance
		fits(t, page, name)
		accessible(t, page, name)
		screenshot(t, page, name)
	})
	usage := visitAsAda(t, playwright.BrowserNewContextOptions{})
	open(t, usage, "/teams/"+own)
	must(t, expect.Locator(usage.Locator("#shares-table")).ToContainText("2 growth"))
	screenshot(t, usage, "team-growth")

	status, body := fetch(t, ada, console(t)+path+"/scaling.csv")
	lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || status != http.StatusOK || len(lines) < 4 || !strings.Contains(body, ",another team,") {
		t.Errorf("the file has status %d and %d lines (%v): %s", status, len(lines), err, body)
	}
	_, whole := fetch(t, ada, console(t)+path)
	for name, text := range map[string]string{"page": whole, "file": body} {
		if strings.Contains(text, other) {
			t.Errorf("the %s names team %s", name, other)
		}
	}
	for _, hidden := range []string{path, path + "/scaling.csv"} {
		if status, _ := fetch(t, user(t, console(t), "grace"), console(t)+hidden); status != http.StatusNotFound {
			t.Errorf("%s has status %d for a member of another team, want 404", hidden, status)
		}
	}
	admin := visit(t, playwright.BrowserNewContextOptions{})
	open(t, admin, path)
	must(t, expect.Locator(admin.Locator("#scales-table")).ToContainText(regexp.MustCompile(`(Preempted|Growth withdrawn)\s+for owner`)))
	must(t, expect.Locator(admin.Locator("#scales-table")).ToContainText("quota lent by "+other))
	must(t, expect.Locator(admin.Locator("#scales-table").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: "owner"}).First()).ToHaveAttribute("href", base+"/tasks/hyperpod-ns-"+other+"/job/owner"))

	c.Kubectl(t, "", "delete", "elasticjob", "train", "-n", "hyperpod-ns-"+own)
	must(t, expect.Locator(page.Locator("#task-gone")).ToBeVisible())
	open(t, page, path)
	must(t, expect.Locator(page.Locator("#past-facts")).ToBeVisible())
	must(t, expect.Locator(rows.First()).ToContainText(regexp.MustCompile(`(Preempted|Growth withdrawn)\s+for another team`)))
	must(t, expect.Locator(page.Locator(".task-lead")).ToContainText("ElasticJob · without a priority class")) // not that of its growth
	must(t, expect.Locator(card).ToContainText("GPU-hours"))
	checkAppearance(t, page, "past-elastic")
}
