package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const policyPath = "/policies/cluster/edit"

// noPolicy deletes the cluster policy, which all tests share, now and when the test
// ends.
func noPolicy(t testing.TB) {
	t.Helper()
	c := clustertest.Get(t)
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
	deletePolicy := func() { _ = c.Client.Delete(context.Background(), policy.DeepCopy()) }
	gone := func() error {
		deletePolicy()
		if err := c.Client.Get(context.Background(), client.ObjectKeyFromObject(policy), policy.DeepCopy()); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("get the deleted policy: got %w, want not found", err)
		}
		return nil
	}
	t.Cleanup(func() { // with its priority classes, which forms of the next tests would select
		for began := time.Now(); gone() != nil && time.Since(began) < time.Minute; {
			time.Sleep(100 * time.Millisecond)
		}
	})
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { return gone() })
}

// savedPolicy waits until check returns true for the policy in the cluster, and returns
// the policy.
func savedPolicy(t testing.TB, check func(v1alpha1.ClusterPolicySpec) bool) v1alpha1.ClusterPolicy {
	t.Helper()
	var policy v1alpha1.ClusterPolicy
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: v1alpha1.ClusterPolicyName}, &policy); err != nil {
			return err
		}
		if !check(policy.Spec) {
			return fmt.Errorf("got policy %+v, want it to match the check", policy.Spec)
		}
		return nil
	})
	return policy
}

// waitForClasses waits until the WorkloadPriorityClasses have these values.
func waitForClasses(t testing.TB, values map[string]int32) {
	t.Helper()
	clustertest.Eventually(t, clustertest.Patience, func(ctx context.Context) error {
		for name, want := range values {
			var class kueue.WorkloadPriorityClass
			if err := clustertest.Get(t).Client.Get(ctx, client.ObjectKey{Name: name + "-priority"}, &class); err != nil {
				return err
			}
			if class.Value != want {
				return fmt.Errorf("priority class %s: got value %d, want %d", name, class.Value, want)
			}
		}
		return nil
	})
}

// press clicks the last button with this name.
func press(t testing.TB, page playwright.Page, name string) {
	t.Helper()
	must(t, page.GetByRole("button", playwright.PageGetByRoleOptions{Name: name}).Last().Click())
}

// TestEditPolicy creates a policy that ranks tasks, and edits it while another admin
// changes it.
func TestEditPolicy(t *testing.T) {
	noPolicy(t)
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 409")
	card := page.Locator("#cluster-policy")
	open(t, page, "/policies")
	must(t, expect.Locator(card).ToContainText("no cluster policy yet"))
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Create policy"}).Click())

	must(t, page.Locator("#prioritization-TaskRanking").Check())
	must(t, expect.Locator(page.Locator("#classes-note")).ToContainText("A task sets its priority class"))
	press(t, page, "Add priority class")
	must(t, expect.Locator(page.Locator("#class-0-name")).ToBeFocused())
	must(t, page.Locator("#class-0-name").Fill("inference"))
	must(t, page.Locator("#class-0-weight").Fill("90"))
	press(t, page, "Add priority class")
	must(t, page.Locator("#class-1-name").Fill("training"))
	must(t, page.Locator("#class-1-weight").Fill("60"))
	must(t, page.Locator("#class-1 summary").Click())
	must(t, page.Locator("#class-1-limit").Fill("3h"))
	must(t, page.Locator("#class-1-longest").Fill("2h"))
	must(t, expect.Locator(page.Locator("#class-1-limit-error")).ToContainText("longer than the maximum time limit"))
	must(t, page.Locator("#class-1-limit").Fill("1h30m"))
	must(t, expect.Locator(page.Locator("#class-1-limit-error")).ToHaveCount(0))
	must(t, page.Locator("#share-unallocated").Check())
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#review-class-inference")).ToContainText("90"))
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("1h30m by default, at most 2h"))

	// The form keeps its values on the way to the review and back.
	press(t, page, "Back to the form")
	must(t, expect.Locator(page.Locator("#class-1-name")).ToHaveValue("training"))
	must(t, expect.Locator(page.Locator("#share-unallocated")).ToBeChecked())
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#policy-review")).ToBeVisible())
	press(t, page, "Save policy")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/policies\?saved=cluster`)))
	must(t, expect.Locator(card).ToContainText("By priority class"))
	must(t, expect.Locator(card).ToContainText("inference"))
	must(t, expect.Locator(card).ToContainText("Time limit: 1h30m by default, at most 2h."))
	saved := savedPolicy(t, func(spec v1alpha1.ClusterPolicySpec) bool {
		return spec.TaskPrioritization == v1alpha1.TaskRanking && len(spec.PriorityClasses) == 2 &&
			ptr.Deref(spec.PriorityClasses[1].DefaultTimeLimitSeconds, 0) == 5400 && ptr.Deref(spec.PriorityClasses[1].MaximumTimeLimitSeconds, 0) == 7200 && spec.IdleCompute.ShareUnallocated
	})
	if saved.Spec.GangScheduling.Timeout.Duration != 5*time.Minute || saved.Spec.Enforcement != v1alpha1.RequireQueue {
		t.Errorf("saved policy: got %+v, want the default timeout and enforcement", saved.Spec)
	}
	waitForClasses(t, map[string]int32{"inference": 90, "training": 60})

	// Pools, prices and alerts have pages of their own, each under what it is about.
	open(t, page, "/instances")
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Edit pools"}).Click())
	press(t, page, "Add pool")
	must(t, page.Locator("#pool-0-name").Fill("hopper"))
	must(t, page.Locator("#pool-0-value").Fill("H100"))
	must(t, expect.Locator(page.Locator("#pool-0")).ToContainText("2 nodes now"))
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#review-pools")).ToContainText("hopper"))
	press(t, page, "Save policy")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/instances\?saved=pools`)))
	open(t, page, "/usage/prices")
	must(t, expect.Locator(button(page, "Save prices")).ToBeDisabled()) // until something is typed
	must(t, page.Locator("#price-currency").Fill("EUR"))
	press(t, page, "Add price")
	choose := func(id, value string) {
		_, err := page.Locator(id).SelectOption(playwright.SelectOptionValues{Values: &[]string{value}})
		must(t, err)
	}
	choose("#price-0-pool", "hopper")
	choose("#price-0-resource", "nvidia.com/gpu")
	must(t, page.Locator("#price-0-own").Fill("2.50"))
	press(t, page, "Save prices")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/usage\?saved=prices`)))
	open(t, page, "/alerts/rules")
	press(t, page, "Add receiver")
	must(t, page.Locator("#receiver-0-name").Fill("ops"))
	must(t, page.Locator("#receiver-0-secret").Fill("nowhere"))
	must(t, expect.Locator(page.Locator("#receiver-0")).ToContainText("There is no Secret nowhere"))
	must(t, page.GetByLabel("Quota is idle").First().Uncheck())
	press(t, page, "Save alerts")
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/alerts\?saved=alerts`)))
	savedPolicy(t, func(spec v1alpha1.ClusterPolicySpec) bool {
		return len(spec.PriorityClasses) == 2 && len(spec.Pools) == 1 && spec.Prices != nil && len(spec.Prices.Hourly) == 1 &&
			spec.Alerts != nil && len(spec.Alerts.Rules) == 1 && spec.Alerts.Rules[0].Off && len(spec.Alerts.Receivers) == 1
	})
	open(t, page, "/policies")

	// Another admin saves while the form is open: the page shows both versions.
	must(t, page.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Edit policy"}).Click())
	must(t, page.Locator("#class-1-weight").Fill("65"))
	clustertest.Get(t).Kubectl(t, "", "patch", "clusterpolicy", "default", "--type=merge", "-p", `{"spec":{"enforcement":"None"}}`)
	must(t, expect.Locator(page.Locator("#class-1-weight")).ToHaveValue("65"))
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#conflict tbody tr")).ToHaveCount(2))
	press(t, page, "Keep mine")
	must(t, expect.Locator(page.Locator("#review-class-training")).ToContainText("65"))
	must(t, expect.Locator(page.Locator("#review-settings")).ToContainText("Enforcement"))
	press(t, page, "Save policy")
	savedPolicy(t, func(spec v1alpha1.ClusterPolicySpec) bool {
		return *spec.PriorityClasses[1].Weight == 65 && spec.Enforcement == v1alpha1.RequireQueue
	})
	waitForClasses(t, map[string]int32{"training": 65})

	// An open page shows changes without a reload.
	must(t, expect.Locator(card).ToContainText("65"))
	clustertest.Get(t).Kubectl(t, "", "patch", "clusterpolicy", "default", "--type=merge", "-p", `{"spec":{"taskPrioritization":"FirstComeFirstServe"}}`)
	must(t, expect.Locator(card).ToContainText("kept, and their weights have no effect"))
	waitForClasses(t, map[string]int32{"inference": 0, "training": 0})
}

// TestEditPolicyWithoutJavaScript creates a policy without JavaScript, where each step
// is a button.
func TestEditPolicyWithoutJavaScript(t *testing.T) {
	noPolicy(t)
	page := visit(t, playwright.BrowserNewContextOptions{JavaScriptEnabled: playwright.Bool(false)}, "status of 422")
	open(t, page, policyPath)
	must(t, page.Locator("#prioritization-TaskRanking").Check())
	press(t, page, "Add priority class")
	must(t, page.Locator("#class-0-name").Fill("Upper Case"))
	must(t, page.Locator("#more-settings > summary").Click())
	must(t, page.Locator("#gang").Check())
	must(t, page.Locator("#gang-timeout").Fill("5"))
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#form-errors")).ToContainText("3 problems to fix"))
	must(t, expect.Locator(page.Locator("#class-0-name")).ToHaveValue("Upper Case"))
	must(t, expect.Locator(page.Locator("#gang")).ToBeChecked())
	must(t, page.Locator("#class-0-name").Fill("training"))
	must(t, page.Locator("#class-0-weight").Fill("60"))
	must(t, page.Locator("#gang-timeout").Fill("90s"))
	press(t, page, "Add priority class")
	must(t, page.Locator("#class-1-name").Fill("last"))
	press(t, page, "Check")
	must(t, expect.Locator(page.Locator("#class-1-name")).ToHaveValue("last"))
	press(t, page, "Remove class 2")
	must(t, expect.Locator(page.Locator("#class-1")).ToHaveCount(0))
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#policy-review")).ToBeVisible())
	press(t, page, "Save policy")
	must(t, expect.Locator(page.Locator("#cluster-policy")).ToContainText("within 1m30s"))
	savedPolicy(t, func(spec v1alpha1.ClusterPolicySpec) bool {
		return spec.GangScheduling.Enabled && spec.GangScheduling.Timeout.Duration == 90*time.Second && len(spec.PriorityClasses) == 1
	})
	waitForClasses(t, map[string]int32{"training": 60})
}

// TestPolicyForMembers checks that a member can read the policy, but neither finds nor
// reaches the form that changes it.
func TestPolicyForMembers(t *testing.T) {
	noPolicy(t)
	makeTenant(t, "reads-policy", "vision-team")
	clustertest.Get(t).Apply(t, `{"apiVersion":"kuota.dev/v1alpha1","kind":"ClusterPolicy","metadata":{"name":"default"},"spec":{"taskPrioritization":"TaskRanking"}}`)
	member := user(t, console(t), "ada")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		status, text := requestAs(t, member, http.MethodGet, "/policies", nil)
		if status != http.StatusOK || !strings.Contains(text, "By priority class") || strings.Contains(text, policyPath) {
			return fmt.Errorf("policies: got status %d, want 200 with the policy and no link to its form: %.2000s", status, text)
		}
		return nil
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		status, text := requestAs(t, member, method, policyPath, url.Values{"action": {"save"}, "prioritization": {"FirstComeFirstServe"}})
		if missing, other := requestAs(t, member, method, "/policies/nowhere", nil); method == http.MethodGet && (status != missing || strings.ReplaceAll(text, policyPath, "") != strings.ReplaceAll(other, "/policies/nowhere", "")) {
			t.Errorf("form: got status %d, want %d with the page of an unknown path", status, missing)
		}
		if status != http.StatusNotFound {
			t.Errorf("%s of the form: got status %d, want 404", method, status)
		}
	}
	savedPolicy(t, func(spec v1alpha1.ClusterPolicySpec) bool { return spec.TaskPrioritization == v1alpha1.TaskRanking })
}

// requestAs sends a request with client, and returns the status and the body without
// the age of the page.
func requestAs(t testing.TB, client *http.Client, method, path string, form url.Values) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, console(t)+path, strings.NewReader(form.Encode()))
	must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, regexp.MustCompile(`· [^<]* old`).ReplaceAllString(string(text), "")
}

// TestPolicyPages checks that the policy's pages are accessible and fit the window in
// light, dark and narrow windows.
func TestPolicyPages(t *testing.T) {
	noPolicy(t)
	c := clustertest.Get(t)
	page := visit(t, playwright.BrowserNewContextOptions{}, "status of 422", "status of 409")
	open(t, page, "/policies")
	must(t, expect.Locator(page.Locator("#cluster-policy")).ToContainText("no cluster policy yet"))
	checkAppearance(t, page, "policy-none")
	c.Apply(t, samplePolicy)
	must(t, expect.Locator(page.Locator("#cluster-policy")).ToContainText("Serves users right now"))
	checkAppearance(t, page, "policy-card")
	open(t, page, policyPath)
	checkAppearance(t, page, "policy-form")
	if n, _ := controls(t, page, "#policy-form"); n > 15 {
		t.Errorf("the form has %d controls in view, want at most 15", n)
	}
	must(t, page.Locator("#class-0-weight").Fill("101"))
	must(t, page.Locator("#class-1-name").Fill(""))
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#form-errors")).ToContainText("2 problems to fix"))
	checkAppearance(t, page, "policy-wrong")
	must(t, page.Locator("#class-0-weight").Fill("80"))
	must(t, page.Locator("#class-1-name").Fill("training"))
	must(t, page.Locator("#idle-FirstComeFirstServe").Check())
	press(t, page, "Review changes")
	must(t, expect.Locator(page.Locator("#review-class-inference")).ToContainText("80"))
	checkAppearance(t, page, "policy-review")
	c.Kubectl(t, "", "patch", "clusterpolicy", "default", "--type=merge", "-p", `{"spec":{"enforcement":"None"}}`)
	press(t, page, "Save policy")
	must(t, expect.Locator(page.Locator("#conflict")).ToContainText("differs"))
	checkAppearance(t, page, "policy-conflict")
	for _, path := range []string{"/instances/pools", "/usage/prices", "/alerts/rules"} {
		open(t, page, path)
		checkAppearance(t, page, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
	}
	open(t, page, "/policies/allocations/new")
	must(t, page.Locator("#row-0-others summary").Click())
	must(t, page.GetByLabel("Licenses").First().Fill("3"))
	must(t, expect.Locator(page.Locator("#row-0-others summary")).ToContainText("3 licenses"))
	checkAppearance(t, page, "allocation-resources")
}

const samplePolicy = `
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default}
spec:
  taskPrioritization: TaskRanking
  priorityClasses:
  - {name: inference, weight: 90, description: Serves users right now}
  - {name: training, weight: 60, description: Planned training runs}
  - {name: experiment, weight: 30}
  idleCompute: {shareUnallocated: true}
  pools:
  - {name: ada, match: {accelerator: L4}}
  resources:
  - {name: example.com/license, label: licenses}
  - {name: google.com/tpu, label: TPUs, accelerator: true}
  alerts:
    receivers:
    - {name: ops, type: Email, secretName: smtp, to: [ops@example.com], severity: warning, notices: Also}
    - {name: chat, type: Teams, secretName: chat, notices: Only}
`
