package settings_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/handlers/handlerstest"
	"kuota.dev/kuota/views/htmlcheck"
)

func kind(name string, installed, integrated, allowed diagnostics.Answer) diagnostics.KindState {
	k, _ := enforcement.TaskKind(name)
	return diagnostics.KindState{JobKind: k, Installed: installed, Integrated: integrated, Allowed: allowed}
}

func TestSettings(t *testing.T) {
	d := &handlerstest.Backend{Setup: handlers.Setup{Version: "v0.3.0", Revision: "0123456"}}
	d.SettingsBackend.Result = diagnostics.Report{
		Observation: diagnostics.Observation{
			Server: "v1.36.3", Missing: cluster.MissingKinds{Discovered: true}, Install: reconcile.DefaultKueueInstall, CanWrite: diagnostics.Yes,
			Kinds: []diagnostics.KindState{
				kind("Job", diagnostics.Yes, diagnostics.Yes, diagnostics.Yes), kind("JobSet", diagnostics.Yes, diagnostics.No, diagnostics.No),
				kind("RayJob", diagnostics.No, diagnostics.No, diagnostics.No), kind("PyTorchJob", diagnostics.No, diagnostics.Yes, diagnostics.Unknown),
			},
			Kueue: reconcile.KueueState{Current: kueueconfig.Current{Text: "kind: Configuration # <b>", Args: []string{"--config=/x"}}, Account: "system:serviceaccount:kueue-system:kueue"},
		},
		Findings: []diagnostics.Finding{{ID: "pods", Title: "Kueue's pod integration is off", Impact: "Pods run No quota limits single pods.", Fix: "+  - pod\n", Severity: diagnostics.SeverityWarning}, {ID: "x", Title: "Y", Severity: diagnostics.SeverityInfo}},
		Version:  "v0.19.2", Nodes: 1200, Pools: 3, NodesCounted: true, Integrations: []string{"batch/job"},
		Gates: []kueueconfig.Gate{{Name: "A", Supported: true, Enabled: true}, {Name: "B"}, {Name: "C", Explicit: true}},
	}
	address := handlerstest.Serve(t, d)
	response, page := handlerstest.Get(t, address+"/settings")
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{
		"#gap-pods h3": "pod integration is off", "#gap-pods .tag": "Degraded", "#gap-pods .gap-costs": "No quota limits single pods", "details #gap-pods-patch": "+  - pod",
		"#gap-x .tag": "Note", "#settings-gaps .note": "2 problems", "#settings-cluster": "1,200", "#settings-kueue": "v0.19.2",
		"details #settings-config": "kind: Configuration # <b>", "details #settings-args": "--config=/x", "#settings-console": "managed by the cluster policy",
		"#settings-signin": "none: everyone who can reach", "nav [aria-current]": "Settings",
		"#settings-kinds div:nth-child(1)": "Jobinstalled, managed by Kueue; members may create it", "#settings-kinds div:nth-child(2)": "JobSetinstalled; not managed by Kueue: add jobset.x-k8s.io/jobset to integrations.frameworks; members may not create it",
		"#settings-kinds div:nth-child(3):last-child": "PyTorchJobnot installed: its operator is missing; managed by Kueue; not known whether members may create it",
	} {
		if text := page.Find(selector).Text(); !strings.Contains(text, want) {
			t.Errorf("%s shows %q, want %q", selector, text, want)
		}
	}
	if text := page.Find("#settings-console").Text(); !strings.Contains(text, "v0.3.0") || !strings.Contains(text, "0123456") {
		t.Errorf("the console's card shows %q, want its version and revision", text)
	}
	if text := page.Find("#settings-kueue").Text(); !strings.Contains(text, "on, by default") || strings.Contains(text, "B") && strings.Contains(text, "Boff") {
		t.Errorf("the gates are %q", text)
	}
	if strings.TrimSpace(page.Find("#trouble").Text()) != "" {
		t.Error("trouble is told where there is none")
	}
	if _, page = handlerstest.Get(t, address+"/tasks"); page.Find(`nav a[href="/settings"]`).Length() != 1 {
		t.Error("an admin is not shown the way")
	}
}

func TestSettingsShowWhoManagesKueue(t *testing.T) {
	for want, change := range map[string]func(*diagnostics.Observation){
		"managed by the cluster policy":                 func(s *diagnostics.Observation) {},
		"not changed: the console is read-only":         func(s *diagnostics.Observation) { s.ReadOnly = "HyperPod's own task governance runs this cluster." },
		"off (--history=none)":                          func(s *diagnostics.Observation) { s.Install.Manage = false },
		"the console has no permission to change it":    func(s *diagnostics.Observation) { s.CanWrite = diagnostics.No },
		"managed by the cluster policy, if the console": func(s *diagnostics.Observation) { s.CanWrite = diagnostics.Unknown },
	} {
		d := &handlerstest.Backend{}
		d.SettingsBackend.Result.Observation = diagnostics.Observation{Install: reconcile.DefaultKueueInstall, CanWrite: diagnostics.Yes}
		change(&d.SettingsBackend.Result.Observation)
		_, page := handlerstest.Get(t, handlerstest.Serve(t, d)+"/settings")
		if text := page.Find("#settings-console").Text(); !strings.Contains(text, want) || d.SettingsBackend.Result.ReadOnly != "" && strings.Contains(text, "is kept") {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

// A user without permission gets 404 for the settings, and no link to them.
func TestSettingsAreForAdmins(t *testing.T) {
	d := &handlerstest.Backend{}
	d.SettingsBackend.Hidden = true
	d.SettingsBackend.Failure = &governance.Error{Kind: governance.NotFound, Message: "Page not found, or you do not have access."}
	address := handlerstest.Serve(t, d)
	if response, _ := handlerstest.Get(t, address+"/settings"); response.StatusCode != http.StatusNotFound {
		t.Error(response.Status)
	}
	if _, page := handlerstest.Get(t, address+"/tasks"); page.Find(`a[href="/settings"]`).Length() != 0 {
		t.Error("the way there is shown")
	}
}

// TestReplays downloads the snapshot of a contradicted explanation; only those who
// may open the settings get it.
func TestReplays(t *testing.T) {
	d := &handlerstest.Backend{Replays: []live.Replay{{ID: "0a1b", Constraint: "Quota", Time: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Data: []byte("snapshot")}}}
	address := handlerstest.Serve(t, d)
	_, page := handlerstest.Get(t, address+"/settings")
	htmlcheck.Page(t, page)
	link := page.Find("#settings-replays a")
	if href, _ := link.Attr("href"); href != "/settings/replays/0a1b" || !strings.Contains(page.Find("#settings-replays").Text(), "Quota, 1 kB") {
		t.Fatalf("the settings link %q: %s", href, page.Find("#settings-replays").Text())
	}
	get := func(path string) *http.Response {
		t.Helper()
		response, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	response := get("/settings/replays/0a1b")
	if got := response.Header.Get("Content-Disposition"); response.StatusCode != http.StatusOK || got != `attachment; filename="snapshot-0a1b.json.gz"` {
		t.Errorf("%s, %q", response.Status, got)
	}
	if response := get("/settings/replays/other"); response.StatusCode != http.StatusNotFound {
		t.Errorf("a snapshot that is not kept: %s", response.Status)
	}
	d.SettingsBackend.Hidden = true
	if response := get("/settings/replays/0a1b"); response.StatusCode != http.StatusNotFound {
		t.Errorf("for a user who may not open the settings: %s", response.Status)
	}
}
