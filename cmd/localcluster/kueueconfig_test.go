package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var testLocal = kueueLocal{ports: ports{kueueHealth: 1001, kueueMetrics: 1002, kueueWebhook: 1003, kueueVisibility: 1004}, certDir: "/certs"}

func TestOverlaySetsTheSettingsOfThisMachine(t *testing.T) {
	set, err := testLocal.overlay(kueueDefaults, "")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Namespace string
		Health    struct{ HealthProbeBindAddress string }
		Metrics   struct {
			BindAddress                 string
			EnableClusterQueueResources bool
		}
		Webhook struct {
			Host, CertDir string
			Port          int
		}
		VisibilityServer struct {
			BindAddress string
			BindPort    int
		}
		LeaderElection         struct{ LeaderElect *bool }
		FeatureGates           map[string]bool
		InternalCertManagement struct{ Enable *bool }
		FairSharing            any
	}
	if err := yaml.Unmarshal(set.file, &got); err != nil {
		t.Fatal(err)
	}
	if got.Namespace != "kueue-system" || got.Health.HealthProbeBindAddress != "127.0.0.1:1001" || got.Metrics.BindAddress != "127.0.0.1:1002" {
		t.Errorf("addresses are wrong: %+v", got)
	}
	if got.Webhook.Host != "127.0.0.1" || got.Webhook.Port != 1003 || got.Webhook.CertDir != "/certs" {
		t.Errorf("webhook is wrong: %+v", got.Webhook)
	}
	if got.VisibilityServer.BindAddress != "127.0.0.1" || got.VisibilityServer.BindPort != 1004 {
		t.Errorf("visibility server is wrong: %+v", got.VisibilityServer)
	}
	if got.LeaderElection.LeaderElect == nil || *got.LeaderElection.LeaderElect {
		t.Error("leader election is not off")
	}
	if got.InternalCertManagement.Enable == nil || *got.InternalCertManagement.Enable {
		t.Error("Kueue manages its certificates")
	}
	if !got.Metrics.EnableClusterQueueResources || !got.FeatureGates["DisableWaitForPodsReady"] {
		t.Error("settings of the ConfigMap are lost")
	}
	if _, set := got.FeatureGates["VisibilityOnDemand"]; set {
		t.Error("the gate of visibility is set although this user can write its folder")
	}
	if got.FairSharing != nil {
		t.Error("fair sharing is on by default")
	}
}

func TestOverlayKeepsSettingsOfTheConfigMap(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"fair sharing":              {"fairSharing: {preemptionStrategies: [LessThanInitialShare]}", "LessThanInitialShare"},
		"another key of a section":  {"webhook: {port: 9443, extra: 7}", "extra: 7"},
		"a gate beside the set one": {"featureGates: {PriorityBoost: true}", "PriorityBoost: true"},
		"a section set to null":     {"webhook:\nmanageJobsWithoutQueueName: true", "manageJobsWithoutQueueName: true"},
	}
	local := testLocal
	local.noVisibility = true
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := local.overlay(c.text, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{c.want, "VisibilityOnDemand: false", "port: 1003"} {
				if !strings.Contains(string(set.file), want) {
					t.Errorf("no %q in:\n%s", want, set.file)
				}
			}
		})
	}
}

func TestOverlayRefusesInvalidConfigurations(t *testing.T) {
	for name, text := range map[string]string{"not YAML": "a: [", "empty": "", "a section that is text": "webhook: yes please"} {
		if _, err := testLocal.overlay(text, ""); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestOverlayDoesNotSplitFeatureGates(t *testing.T) {
	local := testLocal
	local.noVisibility = true
	set, err := local.overlay("kind: Configuration", "PriorityBoost=true")
	if err != nil {
		t.Fatal(err)
	}
	if set.gates != "PriorityBoost=true,VisibilityOnDemand=false" || strings.Contains(string(set.file), "featureGates") {
		t.Errorf("gates are %q and in:\n%s", set.gates, set.file)
	}
}

// Kueue's webhook for pods gates the pods of these kinds until Kueue admits them.
func TestFrameworksIncludePodsOfKindsOfPods(t *testing.T) {
	for name, c := range map[string]struct{ listed, want string }{
		"none":            {"", "batch/job"},
		"jobs":            {"batch/job, ray.io/rayjob", "batch/job ray.io/rayjob"},
		"StatefulSets":    {"statefulset", "statefulset pod"},
		"with pods":       {"deployment, pod", "deployment pod"},
		"LeaderWorkerSet": {"leaderworkerset.x-k8s.io/leaderworkerset", "leaderworkerset.x-k8s.io/leaderworkerset pod"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := testLocal.overlay("integrations: {frameworks: ["+c.listed+"]}", "")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(set.frameworks, " "); got != c.want {
				t.Errorf("frameworks %q, want %q", got, c.want)
			}
		})
	}
}

func TestWithFrameworksKeepsTheRestOfTheText(t *testing.T) {
	got, err := withFrameworks(kueueDefaults, []string{"ray.io/rayjob", "leaderworkerset.x-k8s.io/leaderworkerset"})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(kueueDefaults, "  frameworks:\n", "  frameworks:\n  - ray.io/rayjob\n  - leaderworkerset.x-k8s.io/leaderworkerset\n", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	set, err := testLocal.overlay(got, "")
	if err != nil {
		t.Fatal(err)
	}
	wantFrameworks := []string{"ray.io/rayjob", "leaderworkerset.x-k8s.io/leaderworkerset", "batch/job", "pod"}
	if diff := cmp.Diff(wantFrameworks, set.frameworks); diff != "" {
		t.Errorf("frameworks (-want +got):\n%s", diff)
	}
	if _, err := withFrameworks("integrations: {frameworks: [batch/job]}", []string{"ray.io/rayjob"}); err == nil {
		t.Error("a configuration without a place for frameworks is accepted")
	}
}
