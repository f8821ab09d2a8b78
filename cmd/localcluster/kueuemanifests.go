package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	kueueNamespace = "kueue-system"
	kueueConfigMap = "kueue-manager-config"
	kueueConfigKey = "controller_manager_config.yaml"
	kueueSecret    = "kueue-webhook-server-cert"
	webhookService = "kueue-webhook-service"
)

// kueueObjects is Kueue's shipped install, changed so that a process on this
// machine serves it, in the groups in which they have to be written.
type kueueObjects struct {
	namespaces, crds, others, webhooks, apiServices []*unstructured.Unstructured
	deployment                                      *unstructured.Unstructured
}

// adapt changes the shipped install: Services that lead to localhost, the
// process's own ports, and a Deployment whose pod is only played, since the
// supervisor runs the process. The ConfigMap and the certificate's Secret are
// written by the supervisor.
func adapt(install []*unstructured.Unstructured, place kueuePlace, version string) (kueueObjects, error) {
	var out kueueObjects
	for _, u := range install {
		u = u.DeepCopy()
		var err error
		switch u.GetKind() {
		case "Deployment":
			err = adaptDeployment(u, version)
			out.deployment = u
		case "Namespace":
			out.namespaces = append(out.namespaces, u)
		case "CustomResourceDefinition":
			err = setConversionPort(u, place.webhook)
			out.crds = append(out.crds, u)
		case "Service":
			u.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
			out.others = append(out.others, u)
		case "APIService":
			err = unstructured.SetNestedField(u.Object, int64(place.visibility), "spec", "service", "port")
			out.apiServices = append(out.apiServices, u)
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			out.webhooks = append(out.webhooks, u)
		case "ConfigMap", "Secret":
			if u.GetName() != kueueConfigMap && u.GetName() != kueueSecret {
				out.others = append(out.others, u)
			}
		default:
			out.others = append(out.others, u)
		}
		if err != nil {
			return out, fmt.Errorf("adapt %s: %w", title(u), err)
		}
	}
	if out.deployment == nil {
		return out, errors.New("Kueue's install has no Deployment")
	}
	if place.noVisibility {
		out.apiServices = nil // an API that never answers makes discovery fail for everybody
	}
	return out, nil
}

func setConversionPort(crd *unstructured.Unstructured, port int) error {
	path := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	if _, found, _ := unstructured.NestedMap(crd.Object, path...); !found {
		return nil
	}
	return unstructured.SetNestedField(crd.Object, int64(port), append(path, "port")...)
}

// webhooksFor keeps the webhooks of Kueue's own kinds and of the enabled kinds
// of jobs, and leads them to the port. One for a kind that Kueue does not manage
// would only make creating such objects depend on Kueue.
func webhooksFor(configs []*unstructured.Unstructured, frameworks []string, port int) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range configs {
		u = u.DeepCopy()
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("webhooks of %s: %w", u.GetName(), err)
		}
		var kept []any
		for _, h := range hooks {
			hook, ok := h.(map[string]any)
			if !ok || !wanted(hook, frameworks) {
				continue
			}
			if err := unstructured.SetNestedField(hook, int64(port), "clientConfig", "service", "port"); err != nil {
				return nil, fmt.Errorf("webhook of %s: %w", u.GetName(), err)
			}
			kept = append(kept, hook)
		}
		if err := unstructured.SetNestedSlice(u.Object, kept, "webhooks"); err != nil {
			return nil, fmt.Errorf("webhooks of %s: %w", u.GetName(), err)
		}
		out = append(out, u)
	}
	return out, nil
}

func wanted(hook map[string]any, frameworks []string) bool {
	rules, _, _ := unstructured.NestedSlice(hook, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		for _, g := range groups {
			if g == "kueue.x-k8s.io" {
				return true
			}
			for _, res := range resources {
				if slices.Contains(frameworks, frameworkName(g, res)) {
					return true
				}
			}
		}
	}
	return false
}

// frameworkName is how Kueue's configuration calls a kind of job.
func frameworkName(group, resource string) string {
	resource, _, _ = strings.Cut(resource, "/")
	kind := strings.TrimSuffix(resource, "s")
	if group == "" || group == "apps" {
		return kind
	}
	return group + "/" + kind
}
