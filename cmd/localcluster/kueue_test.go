package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rollout changes Kueue's configuration in an instance as an admin would.
type rollout struct {
	t   *testing.T
	l   layout
	api apiClient
}

// update changes an object of Kueue's namespace. Controllers may write it
// meanwhile, so it has no precondition.
func (r rollout) update(obj client.Object, name string, change func()) {
	r.t.Helper()
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: kueueNamespace, Name: name}, obj); err != nil {
		r.t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := r.api.Patch(r.t.Context(), obj, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func (r rollout) configure(text string) {
	r.t.Helper()
	var config corev1.ConfigMap
	r.update(&config, kueueConfigMap, func() { config.Data[kueueConfigKey] = text })
}

func (r rollout) annotate(value string) {
	r.t.Helper()
	var d appsv1.Deployment
	r.update(&d, kueueDeployment, func() {
		if d.Spec.Template.Annotations == nil {
			d.Spec.Template.Annotations = map[string]string{}
		}
		d.Spec.Template.Annotations["test"] = value
	})
}

func (r rollout) setArgs(args ...string) {
	r.t.Helper()
	var d appsv1.Deployment
	r.update(&d, kueueDeployment, func() { d.Spec.Template.Spec.Containers[0].Args = args })
}

// waitLog waits until the supervisor's log contains a text that often.
func (r rollout) waitLog(text string, times int) {
	r.t.Helper()
	err := waitFor(r.t.Context(), time.Minute, func(context.Context) error {
		b, err := os.ReadFile(r.l.log(ownLog))
		if err == nil && strings.Count(string(b), text) != times {
			err = fmt.Errorf("%q is logged %d times", text, strings.Count(string(b), text))
		}
		return err
	})
	if err != nil {
		r.t.Fatalf("%v in:\n%s", err, logTail(r.l.log(ownLog)))
	}
}

// waitFlavor waits until Kueue has put its finalizer on a new flavor.
func (r rollout) waitFlavor(name string) {
	r.t.Helper()
	flavor := resourceFlavor(name)
	err := waitFor(r.t.Context(), time.Minute, func(ctx context.Context) error {
		if err := r.api.create(ctx, flavor); err != nil {
			return err
		}
		current, err := r.api.read(ctx, flavor)
		if err == nil && len(current.GetFinalizers()) == 0 {
			err = errors.New("Kueue has not reconciled it")
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestKueueFollowsItsDeploymentAndNotItsConfigMap(t *testing.T) {
	const restarted, refused = "Kueue restarted with its new configuration", "Kueue refused its configuration"
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
	if pids := pidsOf(t, l); pids[apiServerName] == 0 || pids[kueueName] != 0 {
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

	// Gates of the arguments reach the process; Kueue accepts gates in one place.
	before, after, _ := strings.Cut(kueueDefaults, "featureGates:")
	if after == "" {
		t.Fatal("the defaults have no gates")
	}
	r.configure(before)
	r.setArgs("--config=/controller_manager_config.yaml", "--feature-gates=DisableWaitForPodsReady=true")
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

func TestSharedPairIsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	var before []byte
	for range 2 {
		if err := sharedPair(dir); err != nil {
			t.Fatal(err)
		}
		pair, err := os.ReadFile(dir + "/tls.crt")
		if err != nil || before != nil && string(before) != string(pair) {
			t.Errorf("the pair changed: %v", err)
		}
		before = pair
	}
	if !pairUsable(dir + "/tls.crt") {
		t.Error("the pair is not usable")
	}
}
