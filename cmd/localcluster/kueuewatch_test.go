package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// rollout changes Kueue's configuration in an instance as a person would.
type rollout struct {
	t   *testing.T
	l   layout
	api *apiClient
}

func (r rollout) patch(resource schema.GroupVersionResource, name string, body map[string]any) {
	r.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.api.dyn.Resource(resource).Namespace(kueueNamespace).Patch(r.t.Context(), name, types.MergePatchType, b, metav1.PatchOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r rollout) configure(text string) {
	r.t.Helper()
	r.patch(configMaps, kueueConfigMap, map[string]any{"data": map[string]any{kueueConfigKey: text}})
}

func (r rollout) annotate(value string) {
	r.t.Helper()
	r.patch(deployments, kueueDeployment, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"test": value}}}}})
}

// waitLog waits until the supervisor has said something that often.
func (r rollout) waitLog(what string, times int) {
	r.t.Helper()
	err := waitFor(r.t.Context(), time.Minute, func(context.Context) error {
		b, err := os.ReadFile(r.l.log(ownLog))
		if err == nil && strings.Count(string(b), what) != times {
			err = fmt.Errorf("%q is there %d times", what, strings.Count(string(b), what))
		}
		return err
	})
	if err != nil {
		r.t.Fatalf("%v in:\n%s", err, logTail(r.l.log(ownLog)))
	}
}

// waitFlavor sees that Kueue is at work: it puts its finalizer on a flavor.
func (r rollout) waitFlavor(name string) {
	r.t.Helper()
	flavor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": map[string]any{"name": name},
	}}
	err := waitFor(r.t.Context(), time.Minute, func(ctx context.Context) error {
		if err := r.api.create(ctx, flavor); err != nil {
			return err
		}
		got, err := r.api.get(ctx, flavor)
		if err == nil && len(got.GetFinalizers()) == 0 {
			err = errors.New("Kueue has not seen it")
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestKueueFollowsItsDeploymentAndNotItsConfigMap(t *testing.T) {
	const restarted, refused = "Kueue restarted with its new configuration", "Kueue's configuration was not taken"
	l := startInstance(t)
	api, err := newAPIClient(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	r := rollout{t, l, api}
	first := pidsOf(t, l)[kueueName]

	r.configure("this: is no configuration")
	r.waitFlavor("untouched")
	if pid := pidsOf(t, l)[kueueName]; pid != first {
		t.Fatal("the ConfigMap alone restarted Kueue")
	}

	r.annotate("broken")
	r.waitLog(refused, 1)
	if pids := pidsOf(t, l); pids[apiServer] == 0 || pids[kueueName] != 0 {
		t.Errorf("with a configuration that Kueue refuses, these run: %v", pids)
	}

	r.configure(kueueDefaults + "\nfairSharing: {preemptionStrategies: [LessThanInitialShare]}\n")
	r.annotate("mended")
	r.waitLog(restarted, 1)
	r.waitFlavor("mended")
	second := pidsOf(t, l)[kueueName]
	file, _ := os.ReadFile(l.run("kueue-config.yaml"))
	if second == 0 || second == first || !strings.Contains(string(file), "fairSharing") {
		t.Errorf("pid %d, then %d, with:\n%s", first, second, file)
	}

	// Gates of the arguments are passed on; Kueue takes none in two places.
	before, after, _ := strings.Cut(kueueDefaults, "featureGates:")
	if after == "" {
		t.Fatal("the defaults have no gates")
	}
	r.configure(before)
	r.patchArgs("--config=/controller_manager_config.yaml", "--feature-gates=DisableWaitForPodsReady=true")
	r.waitLog(restarted, 2)
	r.waitFlavor("arguments")
	if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pidsOf(t, l)[kueueName])); !strings.Contains(string(command), "--feature-gates=DisableWaitForPodsReady=true") {
		t.Errorf("Kueue runs as %q", command)
	}

	for _, verb := range []string{"stop", "start"} {
		if out, err := program(t, verb, kueueName, "--dir", l.dir); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
	}
	r.waitFlavor("again")
	r.waitLog(restarted, 2)
	r.waitLog(refused, 1)
}

func (r rollout) patchArgs(args ...string) {
	r.t.Helper()
	got, err := r.api.dyn.Resource(deployments).Namespace(kueueNamespace).Get(r.t.Context(), kueueDeployment, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	containers[0].(map[string]any)["args"] = list
	r.patch(deployments, kueueDeployment, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}})
}
