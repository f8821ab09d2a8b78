package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/PuerkitoBio/goquery"
	"github.com/playwright-community/playwright-go"
)

// hostile is text that would run as script, template or formula if a page or a CSV
// did not escape it.
const hostile = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'">{{.}}%s=1+1`

// TestHostileTasks creates tasks with hostile and extreme values through the API
// server. Each is on the list and has a page, and none of its text is executed.
func TestHostileTasks(t *testing.T) {
	t.Parallel()
	c := clustertest.Get(t)
	namespace := clustertest.Name("bad")
	c.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	t.Cleanup(func() { _, _ = c.TryKubectl("", "delete", "namespace", namespace, "--wait=false") })
	podSet := map[string]any{"name": "main", "count": 1, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": hostile, "env": []any{map[string]any{"name": "A", "value": hostile}}}}}}}
	later := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	owned := func(kind, name string) any {
		return []any{map[string]any{"apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": clustertest.Name("uid"), "controller": true}}
	}
	for name, tc := range map[string]struct {
		metadata, spec map[string]any
		conditions     []any
	}{
		"bare":    {},
		"hostile": {metadata: map[string]any{"annotations": map[string]any{"kueue.x-k8s.io/workload-slice-name": hostile, "a": strings.Repeat("x", 200<<10)}, "ownerReferences": owned("Kind"+hostile, "name/../"+hostile)}},
		"reason":  {conditions: []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "SomethingNew", "message": hostile, "lastTransitionTime": later}}},
		"future":  {conditions: []any{map[string]any{"type": "Evicted", "status": "True", "reason": "New", "message": "", "lastTransitionTime": later}, map[string]any{"type": "Requeued", "status": "True", "reason": "New", "message": "", "lastTransitionTime": later}}},
		"huge":    {spec: map[string]any{"priority": 2147483647}, metadata: map[string]any{"ownerReferences": owned("Job", strings.Repeat("n", 5000))}},
	} {
		metadata := map[string]any{"name": name, "namespace": namespace}
		for key, value := range tc.metadata {
			metadata[key] = value
		}
		spec := map[string]any{"queueName": "nowhere", "podSets": []any{podSet}, "active": true}
		for key, value := range tc.spec {
			spec[key] = value
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec})
		must(t, err)
		c.Kubectl(t, string(text), "create", "-f", "-")
		if tc.conditions != nil {
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": tc.conditions}})
			must(t, err)
			c.Kubectl(t, "", "patch", "workload", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", string(patch))
		}
	}
	admin, list := user(t, console(t), "admin"), "/tasks?q="+namespace
	var links []string
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		status, body := fetch(t, admin, console(t)+list)
		page, err := goquery.NewDocumentFromReader(strings.NewReader(body))
		if status != http.StatusOK || err != nil {
			return fmt.Errorf("list: got status %d and error %w, want 200", status, err)
		}
		links = page.Find("#tasks-table a.name").Map(func(_ int, a *goquery.Selection) string { return strings.TrimPrefix(a.AttrOr("href", ""), base) })
		if len(links) != 5 {
			return fmt.Errorf("list: got links %q, want 5", links)
		}
		return nil
	})
	page := visit(t, playwright.BrowserNewContextOptions{})
	for _, address := range append(links, list) {
		open(t, page, address)
		must(t, expect.Locator(page.Locator("h1")).ToBeVisible())
		if title, err := page.Title(); err != nil || strings.Contains(title, "owned'") || title == "owned" {
			t.Errorf("title of %s: got %q and error %v, want no injected title", address, title, err)
		}
		if n, err := page.Locator("main script, main img").Count(); err != nil || n != 0 {
			t.Errorf("%s: got %d injected elements and error %v, want 0", address, n, err)
		}
		if strings.Contains(address, "/future") {
			must(t, expect.Locator(page.Locator("#task")).Not().ToContainText("-"+"1 "))
		}
	}
	for _, suffix := range []string{"/events", "/yaml"} {
		for _, address := range links {
			path, query, _ := strings.Cut(address, "?")
			if suffix == "/events" {
				if status, _ := firstEvents(t, admin, console(t)+path+suffix+"?"+query); status != http.StatusOK {
					t.Errorf("%s%s: got status %d, want 200", path, suffix, status)
				}
			} else if status, _ := fetch(t, admin, console(t)+path+suffix+"?"+query); status != http.StatusOK {
				t.Errorf("%s%s: got status %d, want 200", path, suffix, status)
			}
		}
	}
	if _, csv := fetch(t, admin, console(t)+"/tasks.csv?q="+namespace); strings.Count(csv, namespace) < 5 || strings.Contains(csv, "\n=") {
		t.Errorf("CSV: got %s, want 5 tasks and no formula", csv)
	}
}
