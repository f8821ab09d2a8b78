package main

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed kueue-host.yaml
var kueueHost string

// hostKey is the label and the taint of the node in kueueHost.
const hostKey = "localcluster.kuota.dev/host"

// shippedObjects are shipped manifests, changed so that a process on this machine
// serves them, in groups that are written one after another.
type shippedObjects struct {
	namespaces, crds, others, webhooks []*unstructured.Unstructured
}

// kueueObjects are Kueue's shipped manifests.
type kueueObjects struct {
	shippedObjects
	apiServices []*unstructured.Unstructured
	deployment  *unstructured.Unstructured
}

// adapt changes Kueue's shipped manifests: besides the changes of redirect, API
// services have the process's port, and KWOK simulates the Deployment's pod, since the
// supervisor runs the process. The supervisor writes the ConfigMap and the Secret itself.
func adapt(install []*unstructured.Unstructured, local kueueLocal, ca []byte, version string) (out kueueObjects, err error) {
	if out.shippedObjects, err = redirect(install, local.kueueWebhook, ca); err != nil {
		return out, err
	}
	shipped := out.others
	out.others = nil
	for _, u := range shipped {
		switch u.GetKind() {
		case "Deployment":
			err = adaptDeployment(u, version)
			out.deployment = u
		case "APIService":
			err = unstructured.SetNestedField(u.Object, int64(local.kueueVisibility), "spec", "service", "port")
			out.apiServices = append(out.apiServices, u)
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
		return out, errors.New("Kueue's manifests have no Deployment")
	}
	if local.noVisibility {
		out.apiServices = nil // an API that never answers makes discovery fail for all clients
	}
	return out, nil
}

// redirect changes copies of shipped manifests so that a process on this machine serves
// them: a Service resolves to localhost, and a webhook has the port of the process and
// the authority of its certificate.
func redirect(manifests []*unstructured.Unstructured, port int, ca []byte) (shippedObjects, error) {
	var out shippedObjects
	for _, u := range manifests {
		u = u.DeepCopy()
		group := &out.others
		var err error
		switch u.GetKind() {
		case "Namespace":
			group = &out.namespaces
		case "CustomResourceDefinition":
			group = &out.crds
			webhook := []string{"spec", "conversion", "webhook"}
			conversion, found, invalid := unstructured.NestedMap(u.Object, webhook...)
			err = invalid
			if found {
				err = errors.Join(setEndpoint(conversion, port, ca), unstructured.SetNestedMap(u.Object, conversion, webhook...))
			}
		case "Service":
			u.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			group = &out.webhooks
			hooks, _, invalid := unstructured.NestedSlice(u.Object, "webhooks")
			err = invalid
			for _, h := range hooks {
				hook, _ := h.(map[string]any)
				err = errors.Join(err, setEndpoint(hook, port, ca))
			}
			err = errors.Join(err, unstructured.SetNestedSlice(u.Object, hooks, "webhooks"))
		}
		if err != nil {
			return out, fmt.Errorf("adapt %s: %w", title(u), err)
		}
		*group = append(*group, u)
	}
	return out, nil
}

// setEndpoint sets the port and the authority of a webhook. Kueue would
// otherwise write the authority into each object, which the API server then
// processes twice.
func setEndpoint(hook map[string]any, port int, ca []byte) error {
	return errors.Join(
		unstructured.SetNestedField(hook, int64(port), "clientConfig", "service", "port"),
		unstructured.SetNestedField(hook, base64.StdEncoding.EncodeToString(ca), "clientConfig", "caBundle"))
}

// adaptDeployment puts the pod on the node of kueueHost. The module's manifest
// names the image of a branch; its tag becomes the version that the process was
// built from, as in a release.
func adaptDeployment(u *unstructured.Unstructured, version string) error {
	pod, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	containers, _ := pod["containers"].([]any)
	i := slices.IndexFunc(containers, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["name"] == kueueContainer
	})
	if i < 0 {
		return fmt.Errorf("it has no container %s", kueueContainer)
	}
	manager := containers[i].(map[string]any)
	image, _ := manager["image"].(string)
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	manager["image"] = image + ":" + version
	pod["nodeSelector"] = map[string]any{hostKey: kueueName}
	pod["tolerations"] = []any{map[string]any{"key": hostKey, "value": kueueName, "effect": "NoSchedule"}}
	return unstructured.SetNestedMap(u.Object, pod, "spec", "template", "spec")
}

// webhooksFor returns the configurations with the webhooks of Kueue's own kinds
// and of the managed kinds of jobs only. A webhook for another kind would only
// make the creation of its objects depend on Kueue.
func webhooksFor(configs []*unstructured.Unstructured, frameworks []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range configs {
		u = u.DeepCopy()
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		hooks = slices.DeleteFunc(hooks, func(h any) bool { return !serves(h, frameworks) })
		if err := errors.Join(err, unstructured.SetNestedSlice(u.Object, hooks, "webhooks")); err != nil {
			return nil, fmt.Errorf("webhooks of %s: %w", u.GetName(), err)
		}
		out = append(out, u)
	}
	return out, nil
}

// serves reports whether a webhook is for a kind of Kueue or of the frameworks.
func serves(hook any, frameworks []string) bool {
	h, _ := hook.(map[string]any)
	rules, _, _ := unstructured.NestedSlice(h, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		for _, group := range groups {
			if group == "kueue.x-k8s.io" || slices.ContainsFunc(resources, func(r string) bool {
				return slices.Contains(frameworks, frameworkName(group, r))
			}) {
				return true
			}
		}
	}
	return false
}

// frameworkName returns the name of a kind of job in Kueue's configuration.
func frameworkName(group, resource string) string {
	resource, _, _ = strings.Cut(resource, "/")
	kind := strings.TrimSuffix(resource, "s")
	if group == "" || group == "apps" {
		return kind
	}
	return group + "/" + kind
}
