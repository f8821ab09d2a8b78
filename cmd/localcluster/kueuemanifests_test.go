package main

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const shipped = `
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
# a comment alone
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, namespace: n, path: /convert}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: topologies.kueue.x-k8s.io}
spec: {scope: Cluster}
---
apiVersion: v1
kind: Service
metadata: {name: kueue-webhook-service, namespace: kueue-system}
spec: {ports: [{port: 443, targetPort: 9443}], selector: {a: b}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
---
apiVersion: v1
kind: Secret
metadata: {name: kueue-webhook-server-cert, namespace: kueue-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
spec:
  template:
    spec:
      containers:
      - {name: manager, image: "registry.example:5000/kueue:main", args: [--config=/c.yaml, --feature-gates=A=true, -feature-gates, B=true]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.visibility.kueue.x-k8s.io}
spec: {service: {name: kueue-visibility-server, namespace: kueue-system}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kueue-mutating-webhook-configuration}
webhooks:
- {name: queue, clientConfig: {service: {name: s}}, rules: [{apiGroups: [kueue.x-k8s.io], resources: [clusterqueues]}]}
- {name: queue-status, clientConfig: {service: {name: s}}, rules: [{apiGroups: [kueue.x-k8s.io], resources: [clusterqueues/status]}]}
- {name: job, clientConfig: {service: {name: s}}, rules: [{apiGroups: [batch], resources: [jobs]}]}
- {name: pod, clientConfig: {service: {name: s}}, rules: [{apiGroups: [""], resources: [pods]}]}
- {name: deployment, clientConfig: {service: {name: s}}, rules: [{apiGroups: [apps], resources: [deployments]}]}
- {name: ray, clientConfig: {service: {name: s}}, rules: [{apiGroups: [ray.io], resources: [rayjobs]}]}
`

func adapted(t *testing.T, local kueueLocal) kueueObjects {
	t.Helper()
	install, err := parseManifest([]byte(shipped))
	if err != nil {
		t.Fatal(err)
	}
	got, err := adapt(install, local, []byte("CA"), "v0.19.2")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAdaptDirectsKueueToThisMachine(t *testing.T) {
	got := adapted(t, testLocal)
	if n := []int{len(got.namespaces), len(got.crds), len(got.others), len(got.webhooks), len(got.apiServices)}; !slices.Equal(n, []int{1, 2, 1, 1, 1}) {
		t.Fatalf("groups have %v objects", n)
	}
	service := got.others[0].Object["spec"].(map[string]any)
	if len(service) != 2 || service["type"] != "ExternalName" || service["externalName"] != "localhost" {
		t.Errorf("service is %v", service)
	}
	config, _, _ := unstructured.NestedMap(got.crds[0].Object, "spec", "conversion", "webhook", "clientConfig")
	if config["service"].(map[string]any)["port"] != int64(1003) || config["caBundle"] != "Q0E=" {
		t.Errorf("conversion goes to %v", config)
	}
	if _, found, _ := unstructured.NestedMap(got.crds[1].Object, "spec", "conversion"); found {
		t.Error("a definition without conversion has one")
	}
	if port, _, _ := unstructured.NestedInt64(got.apiServices[0].Object, "spec", "service", "port"); port != 1004 {
		t.Errorf("visibility goes to port %d", port)
	}
}

func TestAdaptPutsTheDeploymentOnItsOwnNode(t *testing.T) {
	deployment := adapted(t, testLocal).deployment
	pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	var typed appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &typed); err != nil {
		t.Fatal(err)
	}
	if image := typed.Spec.Template.Spec.Containers[0].Image; image != "registry.example:5000/kueue:v0.19.2" {
		t.Errorf("the image is %v", image)
	}
	nodes, err := parseManifest([]byte(kueueHost))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	labels := nodes[0].GetLabels()
	for key, value := range pod["nodeSelector"].(map[string]any) {
		if labels[key] != value {
			t.Errorf("the node does not have label %s=%s", key, value)
		}
	}
	if _, has := labels["node.kubernetes.io/instance-type"]; has {
		t.Error("the node has an instance type, so that it would be in a pool")
	}
	taints, _, _ := unstructured.NestedSlice(nodes[0].Object, "spec", "taints")
	if !reflect.DeepEqual(taints, pod["tolerations"]) {
		t.Errorf("the pod tolerates %v, the taints are %v", pod["tolerations"], taints)
	}
	if gates := gatesOf(&typed); gates != "B=true" {
		t.Errorf("the gates are %q", gates)
	}
}

func TestAdaptRegistersNoVisibilityAPIThatIsOff(t *testing.T) {
	local := testLocal
	local.noVisibility = true
	if got := adapted(t, local); len(got.apiServices) != 0 {
		t.Errorf("registered %v", got.apiServices)
	}
}

func TestWebhooksFollowTheFrameworks(t *testing.T) {
	cases := map[string]struct{ frameworks, want []string }{
		"jobs only":          {[]string{"batch/job"}, []string{"queue", "queue-status", "job"}},
		"pods and Ray":       {[]string{"batch/job", "pod", "ray.io/rayjob"}, []string{"queue", "queue-status", "job", "pod", "ray"}},
		"deployments":        {[]string{"deployment"}, []string{"queue", "queue-status", "deployment"}},
		"Kueue's kinds only": {nil, []string{"queue", "queue-status"}},
	}
	configs := adapted(t, testLocal).webhooks
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := webhooksFor(configs, c.frameworks)
			if err != nil {
				t.Fatal(err)
			}
			hooks, _, _ := unstructured.NestedSlice(out[0].Object, "webhooks")
			var got []string
			for _, h := range hooks {
				hook := h.(map[string]any)
				got = append(got, hook["name"].(string))
				if port, _, _ := unstructured.NestedInt64(hook, "clientConfig", "service", "port"); port != 1003 {
					t.Errorf("%s goes to port %d", hook["name"], port)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("webhooks %v, want %v", got, c.want)
			}
		})
	}
}
