package handlers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/diagnostics"
	"kuota.dev/kuota/governance/kueueconfig"
	"kuota.dev/kuota/governance/reconcile"
	"kuota.dev/kuota/views/htmlcheck"
)

// settingsDomain is the settings in memory.
type settingsDomain struct {
	state   diagnostics.Report
	failure error
	hidden  bool
}

func (d *settingsDomain) CanView(context.Context, governance.User) bool { return !d.hidden }

func (d *settingsDomain) Report(context.Context, governance.User) (diagnostics.Report, error) {
	return d.state, d.failure
}

func TestSettings(t *testing.T) {
	d := &domain{}
	d.settings.state = diagnostics.Report{
		Observation: diagnostics.Observation{
			Server: "v1.36.3", Missing: cluster.MissingKinds{Discovered: true}, Install: reconcile.DefaultKueueInstall, CanWrite: diagnostics.Yes,
			Kueue: reconcile.KueueState{Current: kueueconfig.Current{Text: "kind: Configuration # <b>", Args: []string{"--config=/x"}}, Account: "system:serviceaccount:kueue-system:kueue"},
		},
		Findings: []diagnostics.Finding{{ID: "pods", Title: "Kueue's pod integration is off", Impact: "Pods run No quota limits single pods.", Fix: "+  - pod\n", Severity: diagnostics.SeverityWarning}, {ID: "x", Title: "Y", Severity: diagnostics.SeverityInfo}},
		Version:  "v0.19.2", Nodes: 1200, Pools: 3, NodesCounted: true, Integrations: []string{"batch/job"},
		Gates: []kueueconfig.Gate{{Name: "A", Supported: true, Enabled: true}, {Name: "B"}, {Name: "C", Explicit: true}},
	}
	address := serve(t, d)
	response, page := get(t, address+"/settings")
	if response.StatusCode != http.StatusOK {
		t.Fatal(response.Status)
	}
	htmlcheck.Page(t, page)
	for selector, want := range map[string]string{
		"#gap-pods h3": "pod integration is off", "#gap-pods .tag": "Degraded", "#gap-pods .gap-costs": "No quota limits single pods", "details #gap-pods-patch": "+  - pod",
		"#gap-x .tag": "Note", "#settings-gaps .note": "2 problems", "#settings-cluster": "1,200", "#settings-kueue": "v0.19.2",
		"details #settings-config": "kind: Configuration # <b>", "details #settings-args": "--config=/x", "#settings-console": "kept as the policy says",
		"#settings-signin": "none: everyone who can reach", "nav [aria-current]": "Settings",
	} {
		if text := page.Find(selector).Text(); !strings.Contains(text, want) {
			t.Errorf("%s says %q, want %q", selector, text, want)
		}
	}
	if text := page.Find("#settings-kueue").Text(); !strings.Contains(text, "on, by default") || strings.Contains(text, "B") && strings.Contains(text, "Boff") {
		t.Errorf("the gates are %q", text)
	}
	if strings.TrimSpace(page.Find("#trouble").Text()) != "" {
		t.Error("trouble is told where there is none")
	}
	if _, page = get(t, address+"/tasks"); page.Find(`nav a[href="/settings"]`).Length() != 1 {
		t.Error("an admin is not shown the way")
	}
}

// What happens to Kueue's configuration is told as it is.
func TestSettingsSayWhoKeepsKueue(t *testing.T) {
	for want, change := range map[string]func(*diagnostics.Observation){
		"kept as the policy says":                    func(s *diagnostics.Observation) {},
		"not changed: the console is read-only":      func(s *diagnostics.Observation) { s.ReadOnly = "HyperPod's own task governance runs this cluster." },
		"off (--history=none)":                       func(s *diagnostics.Observation) { s.Install.Manage = false },
		"the console has no permission to change it": func(s *diagnostics.Observation) { s.CanWrite = diagnostics.No },
		"kept as the policy says, if the console":    func(s *diagnostics.Observation) { s.CanWrite = diagnostics.Unknown },
	} {
		d := &domain{}
		d.settings.state.Observation = diagnostics.Observation{Install: reconcile.DefaultKueueInstall, CanWrite: diagnostics.Yes}
		change(&d.settings.state.Observation)
		_, page := get(t, serve(t, d)+"/settings")
		if text := page.Find("#settings-console").Text(); !strings.Contains(text, want) || d.settings.state.ReadOnly != "" && strings.Contains(text, "is kept") {
			t.Errorf("it says %q, want %q", text, want)
		}
	}
}

// Who may not see the settings finds no such page, and no way to it.
func TestSettingsAreForAdmins(t *testing.T) {
	d := &domain{}
	d.settings.hidden = true
	d.settings.failure = &governance.Error{Kind: governance.NotFound, Message: "Page not found, or you do not have access."}
	address := serve(t, d)
	if response, _ := get(t, address+"/settings"); response.StatusCode != http.StatusNotFound {
		t.Error(response.Status)
	}
	if _, page := get(t, address+"/tasks"); page.Find(`a[href="/settings"]`).Length() != 0 {
		t.Error("the way there is shown")
	}
}

// What keeps the console from working is told on every page.
func TestTroubleIsTold(t *testing.T) {
	d := &domain{trouble: "Kueue is not installed in this cluster."}
	address := serve(t, d)
	for _, path := range []string{"/tasks", "/policies", "/settings", "/policies/cluster/edit", "/nowhere"} {
		_, page := get(t, address+path)
		htmlcheck.Page(t, page)
		if text := page.Find("#trouble").Text(); !strings.Contains(text, d.trouble) {
			t.Errorf("%s says %q", path, text)
		}
		if links := page.Find(`#trouble a[href="/settings"]`).Length(); links != 1 {
			t.Errorf("%s has %d links to the settings", path, links)
		}
	}
}

// Where somebody else governs the cluster, no form is offered, none opens, and
// what is sent is refused with the reason.
func TestReadOnly(t *testing.T) {
	d := &domain{readOnly: "HyperPod's own task governance runs this cluster."}
	address := serve(t, d)
	_, page := get(t, address+"/policies")
	if page.Find(`a[href$="/edit"], a[href$="/new"], a[href$="/delete"]`).Length() != 0 || !strings.Contains(page.Find("#trouble").Text(), d.readOnly) {
		t.Errorf("the page offers a form, or does not say why not: %q", page.Find("main").Text())
	}
	response, page := post(t, address+newURL, form())
	if response.StatusCode != http.StatusForbidden || !strings.Contains(page.Find(".lead").Text(), d.readOnly) || len(d.created) != 0 {
		t.Errorf("a save is answered %s: %q", response.Status, page.Find("main").Text())
	}
	if response, _ := get(t, address+"/policies/cluster/edit"); response.StatusCode != http.StatusForbidden {
		t.Errorf("a form is answered %s", response.Status)
	}
}
