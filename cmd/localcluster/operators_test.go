package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSelectOperators(t *testing.T) {
	for name, c := range map[string]struct{ names, want []string }{
		"none":                          {nil, nil},
		"one":                           {[]string{"ray"}, []string{"ray"}},
		"in the order of the table":     {[]string{"ray", "jobset", "ray"}, []string{"jobset", "ray"}},
		"with those whose kinds it has": {[]string{"trainer"}, []string{"jobset", "trainer"}},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := selectOperators(c.names)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range selected {
				got = append(got, operators[i].name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := selectOperators([]string{"jobset", "slurm"}); err == nil || !strings.Contains(err.Error(), "slurm") || !strings.Contains(err.Error(), "jobset, lws") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// The policies of Kuota know operators by their users.
func TestOperatorsArePinnedAndKnownToKuota(t *testing.T) {
	parameters, err := os.ReadFile("../../governance/kueue/enforcement/parameters.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operators {
		module := filepath.Join("operators", o.name)
		mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err != nil || !strings.Contains(string(mod), "\ntool "+o.pkg+"\n") {
			t.Errorf("%s: go.mod has no tool %s: %v", o.name, o.pkg, err)
		}
		if _, err := os.Stat(filepath.Join(module, "go.sum")); err != nil {
			t.Errorf("%s: %v", o.name, err)
		}
		if user := serviceAccount(o.namespace, o.account).user; !strings.Contains(string(parameters), `"`+user+`"`) {
			t.Errorf("%s is not among the default job controllers of enforcement", user)
		}
	}
}

const shippedOperator = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.example.org}
spec: {group: example.org, conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, namespace: n}}}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: games-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: games-system}
data:
  controller_manager_config.yaml: |
    kind: Configuration
    leaderElection: {leaderElect: true, resourceName: games}
    certs: {enable: true}
---
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: games-system}
---
apiVersion: v1
kind: Service
metadata: {name: webhook, namespace: games-system}
spec: {ports: [{port: 443}], selector: {a: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: games-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: games}
webhooks:
- {name: game, clientConfig: {service: {name: webhook}}, rules: [{apiGroups: [example.org], resources: [games]}]}
---
apiVersion: example.org/v1
kind: Game
metadata: {name: chess}
`

var testOperator = operator{name: "games", namespace: "games-system", account: "manager", certificates: "certs", certDir: true}

func TestAdaptOperator(t *testing.T) {
	shipped, err := parseManifest([]byte(shippedOperator))
	if err != nil {
		t.Fatal(err)
	}
	got, err := testOperator.adapt(shipped, 1003, []byte("CA"))
	if err != nil {
		t.Fatal(err)
	}
	titles := func(objs []*unstructured.Unstructured) (all []string) {
		for _, u := range objs {
			all = append(all, title(u))
		}
		return all
	}
	want := [][]string{
		{"Namespace games-system"},
		{"CustomResourceDefinition games.example.org"},
		{"ServiceAccount games-system/manager", "ConfigMap games-system/config", "Service games-system/webhook"},
		{"ValidatingWebhookConfiguration games"},
		{"Game chess"},
	}
	if diff := cmp.Diff(want, [][]string{titles(got.namespaces), titles(got.crds), titles(got.others), titles(got.webhooks), titles(got.instances)}); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if !slices.Equal(got.hosts, []string{"webhook.games-system.svc"}) {
		t.Errorf("hosts %v", got.hosts)
	}
	hooks, _, _ := unstructured.NestedSlice(got.webhooks[0].Object, "webhooks")
	config, _, _ := unstructured.NestedMap(hooks[0].(map[string]any), "clientConfig")
	if config["service"].(map[string]any)["port"] != int64(1003) || config["caBundle"] != "Q0E=" {
		t.Errorf("the webhook goes to %v", config)
	}

	file, err := testOperator.configuration(got.config, 1001, 1003, "/certs")
	if err != nil {
		t.Fatal(err)
	}
	var cfg map[string]any
	if err := yaml.Unmarshal(file, &cfg); err != nil {
		t.Fatal(err)
	}
	wantConfig := map[string]any{
		"kind":           "Configuration",
		"certs":          map[string]any{"enable": false},
		"health":         map[string]any{"healthProbeBindAddress": "127.0.0.1:1001"},
		"leaderElection": map[string]any{"leaderElect": false, "resourceName": "games"},
		"metrics":        map[string]any{"bindAddress": "0"},
		"webhook":        map[string]any{"host": "127.0.0.1", "port": float64(1003), "certDir": "/certs"},
	}
	if diff := cmp.Diff(wantConfig, cfg); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestAdaptOperatorRefusesManifestsThatAreNotTheRow(t *testing.T) {
	for name, missing := range map[string]string{"without the account": "kind: ServiceAccount", "without a configuration": "kind: ConfigMap"} {
		t.Run(name, func(t *testing.T) {
			shipped, err := parseManifest([]byte(strings.Replace(shippedOperator, missing, "kind: Other", 1)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := testOperator.adapt(shipped, 1, nil); err == nil {
				t.Error("the manifests are accepted")
			}
		})
	}
}

func TestCheckOperatorsNamesWhatToBuild(t *testing.T) {
	bin := t.TempDir()
	if err := checkOperators(bin, nil); err != nil {
		t.Errorf("without kinds: %v", err)
	}
	if err := checkOperators(bin, []string{"trainer"}); err == nil || !strings.Contains(err.Error(), "build --kinds trainer --bin "+bin) {
		t.Errorf("error %v", err)
	}
}
