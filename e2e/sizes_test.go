package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	"github.com/playwright-community/playwright-go"
	corev1 "k8s.io/api/core/v1"
)

// highest is how high a main page may be at 1280 × 900, with the sample: two screens.
const highest = 1800

// TestSizes checks that each page with the sample is at most two screens high, and that with the
// longest names and reasons nothing on any page is hidden sideways, at the widths of usual
// screens, of a phone, and at 200 % zoom.
func TestSizes(t *testing.T) {
	c := clustertest.Get(t)
	console(t) // its controllers create the queues
	noPolicy(t)
	for _, team := range []string{"vision", "language", "speech"} {
		deleteTeamAtEnd(t, team)
	}
	for _, file := range []string{"policy", "teams", "tasks"} {
		text, err := os.ReadFile(filepath.Join(clustertest.Root(), "cmd", "localcluster", "samples", file+".yaml"))
		must(t, err)
		if file == "tasks" {
			waitForQueues(t, c, "vision")
			waitForQueues(t, c, "language")
			waitForQueues(t, c, "speech")
		}
		c.Apply(t, string(text))
	}
	const waiting = "/tasks/hyperpod-ns-vision/job/segmentation-sweep"
	address := replica(t, "sizes", signInEnv(c)...) // its history has nothing of other tests
	must(t, waitReady(address))
	as := func(name string, scale float64) playwright.Page {
		page := visitSignedOut(t, playwright.BrowserNewContextOptions{BaseURL: playwright.String(address), DeviceScaleFactor: playwright.Float(scale)})
		must(t, page.Context().AddCookies(cookiesOf(t, user(t, address, name), address)))
		return page
	}
	admin, ada := as("admin", 1), as("ada", 1)
	for _, path := range []string{"/", "/tasks", "/queue", "/tasks?tab=finished", waiting, "/teams", "/teams/vision", "/policies", "/instances", "/usage", "/activity", "/alerts", "/notices", "/settings"} {
		for name, page := range map[string]playwright.Page{"admin": admin, "ada": ada} {
			if path == "/settings" && page == ada {
				continue // not found
			}
			if path == "/usage" && page == admin {
				path += "?team=vision" // other tests have teams too, each with a row
			}
			open(t, page, path)
			must(t, expect.Locator(page.Locator("#checked[data-state=computing]")).ToHaveCount(0))
			height, err := page.Evaluate(`() => document.documentElement.scrollHeight`)
			must(t, err)
			t.Logf("%s as %s: %v px", path, name, height)
			if toInt(height) > highest {
				t.Errorf("%s as %s: got a page of %v px, want at most %d", path, name, height, highest)
			}
		}
	}

	long := makeLong(t, address, admin)
	pages := []string{
		"/", "/tasks", "/tasks?tab=finished", "/queue", long.task("runs"), long.task("waits"), "/teams", "/teams/" + long.team, "/teams/" + long.team + "/submit", "/policies",
		"/policies/allocations/" + long.team, "/policies/allocations/" + long.held, "/policies/allocations/" + long.team + "/edit", "/policies/allocations/" + long.team + "/delete", "/policies/allocations/" + long.held + "/revisions/1",
		"/policies/allocations/new", "/policies/cluster/edit", "/policies/import", "/policies/adopt", "/instances", "/instances/pools", "/usage", "/usage/prices", "/activity", "/alerts", "/notices", "/alerts/rules", "/settings",
	}
	zoomed := as("admin", 2)
	for _, path := range pages {
		open(t, zoomed, path)
		_, err := zoomed.Evaluate(`() => document.querySelectorAll("main details:not(.column-choices)").forEach((d) => { d.open = true; })`)
		must(t, err)
		for _, size := range []playwright.Size{{Width: 1366, Height: 768}, {Width: 1280, Height: 900}, {Width: 640, Height: 450}, {Width: 390, Height: 844}} {
			must(t, zoomed.SetViewportSize(size.Width, size.Height))
			must(t, drawn(zoomed)) // charts follow the width
			fits(t, zoomed, fmt.Sprintf("%s at %d px", path, size.Width))
		}
	}
}

// long are objects whose names are as long as they can be.
type long struct{ team, held, jobs string }

// task returns the address of a job of the team.
func (l long) task(kind string) string {
	return "/tasks/hyperpod-ns-" + l.team + "/job/" + l.job(kind)
}

func (l long) job(kind string) string { return filled(kind+"-"+l.jobs, 63) }

// filled returns a name of n characters, which has no place for a line break but its hyphens.
func filled(prefix string, n int) string { return prefix + strings.Repeat("w", n-len(prefix)) }

// makeLong creates a pool with a node, teams, tasks, an alert, a silence and a change, with names of 63
// characters, or as many as they can have, and reasons of 300.
func makeLong(t *testing.T, address string, page playwright.Page) long {
	t.Helper()
	c := clustertest.Get(t)
	l := long{team: filled(clustertest.Name("long"), 40), held: filled(clustertest.Name("held"), 40), jobs: clustertest.Name("j")}
	pool, person, reason := filled(clustertest.Name("ml.pool"), 63), filled("person-", 63), strings.Repeat("because of a reason ", 15)
	node := filled(clustertest.Name("node"), 63)
	c.Node(t, node, map[string]string{corev1.LabelInstanceTypeStable: pool, corev1.LabelHostname: node}, clustertest.Resources(map[corev1.ResourceName]string{
		"nvidia.com/gpu": "8", "cpu": "96", "memory": "1Ti", "pods": "110",
	}))
	deleteTeamAtEnd(t, l.team)
	deleteTeamAtEnd(t, l.held)
	replaced := strings.NewReplacer("TEAM", l.team, "HELD", l.held, "POOL", pool, "PERSON", person, "REASON", reason, "DISPLAY", filled("Display", 63), "CLASS", filled("class", 40), "RECEIVER", filled("receiver", 40))
	c.Apply(t, replaced.Replace(`
apiVersion: v1
kind: Secret
metadata: {name: alert-receiver, namespace: kuota-system}
stringData: {url: "http://127.0.0.1:1/"}
---
apiVersion: kuota.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: default, annotations: {kuota.dev/change-reason: "REASON"}}
spec:
  taskPrioritization: TaskRanking
  priorityClasses: [{name: CLASS, weight: 95, description: "REASON"}, {name: training, weight: 60}, {name: experiment, weight: 30}]
  alerts:
    rules: [{rule: task-waits, after: 1s}, {rule: own-quota-waits, after: 1s}]
    receivers: [{name: RECEIVER, secretName: alert-receiver}]
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: TEAM, annotations: {kuota.dev/change-reason: "REASON"}}
spec:
  displayName: DISPLAY
  description: "REASON"
  quota: [{instanceType: POOL, accelerators: 8}, {instanceType: ml.p5.48xlarge, accelerators: 1}]
  members: [{kind: User, name: PERSON}, {kind: Group, name: vision-team}]
---
apiVersion: kuota.dev/v1alpha1
kind: ComputeAllocation
metadata: {name: HELD}
spec:
  displayName: DISPLAY
  quota: [{instanceType: POOL, accelerators: 16}]
`))
	waitForLocalQueue(t, l.team)
	for kind, gpus := range map[string]int{"runs": 4, "waits": 64} {
		job := strings.Replace(jobManifest(l.team, l.job(kind), gpus), "queue-name:", "priority-class: "+filled("class", 40)+"-priority, kueue.x-k8s.io/queue-name:", 1)
		clustertest.Eventually(t, clustertest.Patience, func(context.Context) error { // until enforcement knows the class
			if out, err := c.TryKubectl(job, "create", "-f", "-", "--as", person, "--as-group", "system:masters"); err != nil {
				return fmt.Errorf("create %s: %w: %s", l.job(kind), err, out)
			}
			return nil
		})
	}
	runsSoon(t, l.team, l.job("runs"))
	c.Kubectl(t, "", "patch", "computeallocation", l.held, "--type=merge", "-p", `{"metadata": {"annotations": {"kuota.dev/change-reason": "`+reason+`"}}, "spec": {"activation": "Hold"}}`)
	admin := user(t, address, "admin")
	clustertest.Eventually(t, clustertest.Patience, func(context.Context) error {
		if _, body := fetch(t, admin, address+"/alerts.json"); !strings.Contains(body, l.team) {
			return fmt.Errorf("alerts: got no %s, want one", l.team)
		}
		return nil
	})
	open(t, page, "/alerts")
	for id, value := range map[string]string{"rule": "task-waits", "team": l.team} {
		_, err := page.Locator("#alert-silences #" + id).SelectOption(playwright.SelectOptionValues{Values: &[]string{value}})
		must(t, err)
	}
	must(t, page.Locator("#reason").Fill(reason))
	must(t, page.Locator("#alert-silences .btn[value=silence]").Click())
	must(t, expect.Locator(page.Locator("#alert-silences-table")).ToContainText("because of"))
	return l
}
