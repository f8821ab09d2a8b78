package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply applies the objects of a manifest like kubectl apply --server-side
// --force-conflicts, but in process, which takes a hundredth of the time. It fails
// the test when the API server rejects an object. It retries while Kueue restarts,
// because Kueue's webhooks do not answer then.
func (c *Cluster) Apply(t testing.TB, manifest string) {
	t.Helper()
	retryWrite(t, "apply", func() (string, error) { return manifest, c.TryApply(t.Context(), manifest) })
}

// CreateNew is Apply for objects that must not exist, like kubectl create.
func (c *Cluster) CreateNew(t testing.TB, manifest string) {
	t.Helper()
	retryWrite(t, "create", func() (string, error) { return manifest, c.TryCreate(t.Context(), manifest) })
}

// retryWrite calls write again while Kueue's webhooks do not answer, and returns its text. It
// fails the test with any other error.
func retryWrite(t testing.TB, what string, write func() (text string, err error)) string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		text, err := write()
		switch {
		case err == nil:
			return text
		case !strings.Contains(err.Error()+text, "failed calling webhook") || time.Since(began) > rollLimit:
			t.Fatalf("%s: %v\n%s", what, err, text)
		}
	}
}

// TryApply is Apply for objects that the API server may reject. It applies the
// objects in order and returns the first error. It does not retry.
func (c *Cluster) TryApply(ctx context.Context, manifest string) error {
	strict := client.WithFieldValidation(c.Client, metav1.FieldValidationStrict)
	return c.each(manifest, func(object *unstructured.Unstructured) error {
		return strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
	})
}

// TryCreate creates the objects of a manifest in order, like kubectl create, and returns
// the first error.
func (c *Cluster) TryCreate(ctx context.Context, manifest string) error {
	strict := client.WithFieldValidation(c.Client, metav1.FieldValidationStrict)
	return c.each(manifest, func(object *unstructured.Unstructured) error { return strict.Create(ctx, object) })
}

// each calls write for each object of a manifest until it returns an error.
func (c *Cluster) each(manifest string, write func(*unstructured.Unstructured) error) error {
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := c.setNamespace(object); err != nil {
			return err
		}
		if err := write(object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

// setNamespace sets the namespace of a namespaced object that has none, as
// kubectl does.
func (c *Cluster) setNamespace(object *unstructured.Unstructured) error {
	if object.GetNamespace() != "" {
		return nil
	}
	mapping, err := c.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return nil
}

// Node creates a simulated node with these labels and allocatable quantities, and
// deletes it when the test ends.
func (c *Cluster) Node(t testing.TB, name string, labels map[string]string, allocatable corev1.ResourceList) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), node) })
	status, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Status().Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.MergePatchType, status)); err != nil {
		t.Fatal(err)
	}
}

// Resources returns quantities by resource name.
func Resources(quantities map[corev1.ResourceName]string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range quantities {
		list[name] = resource.MustParse(quantity)
	}
	return list
}
