package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestStopASweep stops the tasks of a sweep in one action, as a member, and its progress survives a
// reload. make bench stops 200.
func TestStopASweep(t *testing.T) {
	t.Parallel()
	tasks := 40
	if os.Getenv("KUOTA_BENCH") != "" {
		tasks = 200
	}
	console(t)
	c := clustertest.Get(t)
	tenant := makeTenant(t, "sweeps", "vision-team")
	namespace := "hyperpod-ns-" + tenant.team
	sweep := clustertest.Name("lr")
	var all []string
	for i := range tasks {
		all = append(all, strings.Replace(jobManifest(tenant.team, fmt.Sprintf("%s-%c-%d", sweep, 'a'+i%2, i), 8), "labels: {", "labels: {sweep: "+sweep+", ", 1))
	}
	token, file := personToken(t, "ada"), filepath.Join(t.TempDir(), "sweep.yaml")
	must(t, os.WriteFile(file, []byte(strings.Join(all, "\n---\n")), 0o600))
	shell := func(args ...string) string {
		t.Helper()
		var out string
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) (err error) { // until her binding is in the cache
			out, _, err = kuota(t, console(t), append(args, "--team", tenant.team, "--token", token)...)
			return err
		})
		return out
	}
	shell("tasks")
	began := time.Now()
	shell("submit", "-f", file)
	fmt.Printf("figure submitted_together %d tasks in %.1f s\n", tasks, time.Since(began).Seconds())
	waiting := func(active bool, want int) func(context.Context) error {
		return func(ctx context.Context) error {
			var list kueue.WorkloadList
			if err := c.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			n := 0
			for i := range list.Items {
				if w := &list.Items[i]; strings.HasPrefix(w.OwnerReferences[0].Name, sweep) && (w.Spec.Active == nil || *w.Spec.Active) == active {
					n++
				}
			}
			if n != want {
				return fmt.Errorf("got %d tasks of the sweep that are active %t, want %d", n, active, want)
			}
			return nil
		}
	}
	clustertest.Eventually(t, clustertest.Patience, waiting(true, tasks))
	shell("stop", sweep+"-a-*", "--yes")
	must(t, waiting(false, tasks/2)(t.Context()))
	tasks /= 2 // the others by one selection on the page

	page := visitAsAda(t, playwright.BrowserNewContextOptions{Viewport: &playwright.Size{Width: 1280, Height: 900}})
	open(t, page, "/tasks?status=Pending&q=sweep%3D"+sweep)
	must(t, expect.Locator(page.Locator("#many")).Not().ToBeVisible())
	must(t, page.Locator(`.row-select[aria-label*="-b-"]`).First().Click()) // those that were stopped may still leave the list
	must(t, page.GetByLabel("All tasks of this list, on every page").Check())
	must(t, button(page, "Stop").Click())
	must(t, expect.Locator(page.Locator("#action-effect")).ToContainText(fmt.Sprintf("%d waiting.", tasks)))
	began = time.Now()
	must(t, button(page, fmt.Sprintf("Stop %d tasks", tasks)).Click())
	must(t, expect.Page(page).ToHaveURL(regexp.MustCompile(`/bulk/`)))
	_, err := page.Reload()
	must(t, err)
	must(t, expect.Locator(page.Locator("#bulk-status")).ToContainText(fmt.Sprintf("All %d.", tasks)))
	fmt.Printf("figure stopped_together %d tasks in %.1f s\n", tasks, time.Since(began).Seconds())
	must(t, waiting(false, 2*tasks)(t.Context()))
	checkAppearance(t, page, "bulk")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // each once, with her name
		for _, action := range []string{"submit", "stop"} {
			entries, before := 0, ""
			for {
				var page struct {
					Entries []struct{ Name, Actor string }
					Next    string
				}
				out := shell("activity", "--action", action, "--actor", "ada@example.com", "-o", "json", "--before", before)
				must(t, json.Unmarshal([]byte(out), &page))
				for _, e := range page.Entries {
					if strings.HasPrefix(e.Name, sweep) && e.Actor == "ada@example.com" {
						entries++
					}
				}
				if before = page.Next; before == "" {
					break
				}
			}
			if entries != 2*tasks {
				return fmt.Errorf("activity has %d times %s, want %d", entries, action, 2*tasks)
			}
		}
		return nil
	})
}

// TestTeamsOfASpreadsheet creates teams from a pasted table, with one review and one save, until
// all have their queues. make bench creates 50.
func TestTeamsOfASpreadsheet(t *testing.T) {
	t.Parallel()
	teams := 5
	if os.Getenv("KUOTA_BENCH") != "" {
		teams = 50
	}
	c := clustertest.Get(t)
	prefix := clustertest.Name("row")
	table := "team\tmembers\tml.g6.12xlarge\n"
	for i := range teams {
		team := fmt.Sprintf("%s-%d", prefix, i)
		deleteTeamAtEnd(t, team)
		table += team + "\tgroup-of-" + team + "\t1\n"
	}
	page := visit(t, playwright.BrowserNewContextOptions{Viewport: &playwright.Size{Width: 1280, Height: 900}})
	began := time.Now()
	open(t, page, "/policies/import")
	must(t, page.Locator("textarea").Fill(table))
	must(t, page.Locator("main form .btn-primary").Click())
	must(t, button(page, fmt.Sprintf("Save %d teams", teams)).Click())
	must(t, expect.Locator(page.Locator("#bulk-status")).ToContainText(fmt.Sprintf("All %d.", teams)))
	for i := range teams {
		waitForQueues(t, c, fmt.Sprintf("%s-%d", prefix, i))
	}
	fmt.Printf("figure teams_of_a_spreadsheet %d teams in %.1f s\n", teams, time.Since(began).Seconds())
}
