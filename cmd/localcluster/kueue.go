package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kueueUnit is Kueue's process together with what it needs in the cluster.
type kueueUnit struct {
	sup     *supervisor
	api     *apiClient
	comp    *component
	place   kueuePlace
	objects kueueObjects
	version string

	config   string // of a new cluster
	template string // of the pod that the process was last started for; the component's op guards it
}

func newKueueUnit(s *supervisor, api *apiClient, bin string, ports map[string]int) (*kueueUnit, error) {
	l := s.layout
	place := kueuePlace{
		health: ports["kueue-health"], metrics: ports["kueue-metrics"],
		webhook: ports["kueue-webhook"], visibility: ports["kueue-visibility"],
		certDir: l.pki("kueue-webhook"),
	}
	config, err := os.ReadFile(kueueConfig(bin))
	switch {
	case errors.Is(err, os.ErrNotExist):
		config = []byte(kueueDefaults)
	case err != nil:
		return nil, fmt.Errorf("Kueue's configuration: %w", err)
	}
	if place.noVisibility = noVisibility(config); place.noVisibility {
		s.say("Kueue runs without its visibility API, as its configuration says")
	} else if err := makeVisibilityCert(visibilityDir); err != nil {
		s.say("this user cannot write %s (%v): Kueue runs without its visibility API (gate VisibilityOnDemand off)", visibilityDir, err)
		place.noVisibility = true
	}
	install, err := readManifest(kueueInstall(bin))
	if err != nil {
		return nil, err
	}
	version, err := os.ReadFile(kueueVersion(bin))
	if err != nil {
		return nil, fmt.Errorf("Kueue's version: %w", err)
	}
	objects, err := adapt(install, place, strings.TrimSpace(string(version)))
	if err != nil {
		return nil, err
	}
	k := &kueueUnit{sup: s, api: api, place: place, objects: objects, version: strings.TrimSpace(string(version)), config: string(config)}
	k.comp = &component{
		name:    kueueName,
		spec:    spec{path: filepath.Join(bin, kueueName)},
		ready:   k.ready(httpOK(healthClient, "http://"+loopback(place.health)+"/readyz")),
		grace:   2 * time.Second,
		ports:   []namedPort{{"health", place.health}, {"metrics", place.metrics}, {"webhook", place.webhook}, {"visibility", place.visibility}},
		prepare: k.prepare,
	}
	return k, nil
}

func (k *kueueUnit) configFile() string { return k.sup.layout.run("kueue-config.yaml") }

// ready also leaves the template that the process runs for where a test can
// see that its rollout has come through.
func (k *kueueUnit) ready(healthy func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := healthy(ctx); err != nil {
			return err
		}
		return os.WriteFile(k.sup.layout.run("kueue-template.json"), []byte(k.template), 0o644)
	}
}

// install writes Kueue's objects and starts the process.
func (k *kueueUnit) install(ctx context.Context) error {
	if err := k.api.applyAll(ctx, k.objects.namespaces); err != nil {
		return err
	}
	if err := k.writeCertificate(ctx); err != nil {
		return err
	}
	if err := k.api.apply(ctx, k.configMap(k.config)); err != nil {
		return err
	}
	if err := k.api.applyCRDs(ctx, k.objects.crds); err != nil {
		return err
	}
	if err := k.api.applyAll(ctx, k.objects.others); err != nil {
		return err
	}
	if err := k.api.apply(ctx, k.objects.deployment); err != nil {
		return err
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	if err := k.sup.run(ctx, k.comp); err != nil {
		return err
	}
	if err := k.waitWebhooks(ctx); err != nil {
		return err
	}
	// Only now, since an API that is announced and does not answer makes
	// discovery fail for everybody, and is asked again only after a while.
	if err := k.api.applyAll(ctx, k.objects.apiServices); err != nil {
		return err
	}
	return k.waitVisibility(ctx)
}

// prepare reads what a pod that starts now would be given, and gives it to the
// next start of the process, and to the webhooks. The caller holds the
// component's op.
func (k *kueueUnit) prepare(ctx context.Context) error {
	pod, err := k.pod(ctx)
	if err != nil {
		return err
	}
	set, err := k.place.overlay(pod.text, pod.gates)
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.configFile(), set.file, 0o644); err != nil {
		return fmt.Errorf("write Kueue's configuration: %w", err)
	}
	hooks, err := webhooksFor(k.objects.webhooks, set.frameworks, k.place.webhook)
	if err != nil {
		return err
	}
	if err := k.api.applyAll(ctx, hooks); err != nil {
		return err
	}
	k.comp.spec.args = []string{
		"--config=" + k.configFile(),
		// The flag, since the visibility server does not look at the variable.
		"--kubeconfig=" + k.sup.layout.componentConfig(kueueName),
	}
	if set.gates != "" {
		k.comp.spec.args = append(k.comp.spec.args, "--feature-gates="+set.gates)
	}
	k.template = pod.template
	return nil
}

func (k *kueueUnit) configMap(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": kueueConfigMap, "namespace": kueueNamespace, "labels": map[string]any{
			"app.kubernetes.io/name":    "kueue",
			"app.kubernetes.io/version": k.version,
		}},
		"data": map[string]any{kueueConfigKey: text},
	}}
}

// waitWebhooks asks for an object without creating it, until the API server
// reaches Kueue: that is a moment after Kueue calls itself ready.
func (k *kueueUnit) waitWebhooks(ctx context.Context) error {
	flavor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
		"metadata": map[string]any{"name": "localcluster-probe"},
	}}
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		r, err := k.api.resource(flavor)
		if err != nil {
			return err
		}
		_, err = r.Create(ctx, flavor, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil { // in case Kueue did not like our certificate and made another
			return errors.Join(err, k.copyCertificate(ctx))
		}
		return nil
	})
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// waitVisibility waits until the aggregated API is used; without it the
// cluster is still of use, so that a failure is only said.
func (k *kueueUnit) waitVisibility(ctx context.Context) error {
	for _, u := range k.objects.apiServices {
		err := waitFor(ctx, 20*time.Second, func(ctx context.Context) error {
			got, err := k.api.dyn.Resource(apiServices).Get(ctx, u.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !hasCondition(got, "Available") {
				return errors.New("not available")
			}
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			k.sup.say("Kueue's visibility API %s: %v", u.GetName(), err)
		}
	}
	return nil
}
