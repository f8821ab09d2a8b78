package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed kueue-host.yaml
var kueueHost string

const (
	kueueDeployment = "kueue-controller-manager"
	kueueContainer  = "manager"
	hostKey         = "localcluster.kuota.dev/host"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// adaptDeployment puts the pod, which KWOK plays, on the node made for it. The
// module's manifest names the image of a branch; its tag becomes the version
// that the process was built from, as in a release.
func adaptDeployment(u *unstructured.Unstructured, version string) error {
	pod, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	manager := managerOf(pod)
	if manager == nil {
		return fmt.Errorf("it has no container %s", kueueContainer)
	}
	image, _ := manager["image"].(string)
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		image = image[:at]
	}
	manager["image"] = image + ":" + version
	pod["nodeSelector"] = map[string]any{hostKey: kueueName}
	pod["tolerations"] = []any{map[string]any{"key": hostKey, "value": kueueName, "effect": "NoSchedule"}}
	return unstructured.SetNestedMap(u.Object, pod, "spec", "template", "spec")
}

func managerOf(pod map[string]any) map[string]any {
	containers, _ := pod["containers"].([]any)
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok && m["name"] == kueueContainer {
			return m
		}
	}
	return nil
}

// kueuePod is what a pod of the Deployment would be started with.
type kueuePod struct {
	template string // of the pod, as JSON, to tell a rollout from other changes
	gates    string // the value of its argument --feature-gates
	text     string // the ConfigMap's
}

// podOf reads what the Deployment itself says.
func podOf(deployment *unstructured.Unstructured) (kueuePod, error) {
	template, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	b, err := json.Marshal(template)
	if err != nil {
		return kueuePod{}, fmt.Errorf("Kueue's Deployment: %w", err)
	}
	pod, _ := template["spec"].(map[string]any)
	args, _, _ := unstructured.NestedStringSlice(managerOf(pod), "args")
	return kueuePod{template: string(b), gates: gatesOf(args)}, nil
}

// gatesOf finds the argument as Go's flags read it: with one dash or two, in
// one part or two, and the last one wins.
func gatesOf(args []string) string {
	gates := ""
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if name != "--feature-gates" && name != "-feature-gates" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		gates = value
	}
	return gates
}

// pod reads what a pod that starts in this moment would be given.
func (k *kueueUnit) pod(ctx context.Context) (kueuePod, error) {
	deployment, err := k.api.dyn.Resource(deployments).Namespace(kueueNamespace).Get(ctx, kueueDeployment, metav1.GetOptions{})
	if err != nil {
		return kueuePod{}, fmt.Errorf("read Kueue's Deployment: %w", err)
	}
	pod, err := podOf(deployment)
	if err != nil {
		return kueuePod{}, err
	}
	config, err := k.api.dyn.Resource(configMaps).Namespace(kueueNamespace).Get(ctx, kueueConfigMap, metav1.GetOptions{})
	if err != nil {
		return kueuePod{}, fmt.Errorf("read Kueue's configuration: %w", err)
	}
	pod.text, _, _ = unstructured.NestedString(config.Object, "data", kueueConfigKey)
	return pod, nil
}

// waitDeployment waits until the Deployment has its pod, which takes the
// scheduler, KWOK and the node.
func (k *kueueUnit) waitDeployment(ctx context.Context) error {
	return waitFor(ctx, time.Minute, func(ctx context.Context) error {
		u, err := k.api.dyn.Resource(deployments).Namespace(kueueNamespace).Get(ctx, kueueDeployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !hasCondition(u, "Available") {
			return errors.New("Kueue's Deployment is not available")
		}
		return nil
	})
}
