package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const fieldManager = client.FieldOwner("localcluster")

// apiClient writes and reads objects as cluster admin.
type apiClient struct{ client.WithWatch }

func newAPIClient(kubeconfig string) (apiClient, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return apiClient{}, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1 // a start applies some hundred objects at once
	cfg.UserAgent = string(fieldManager)
	c, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		return apiClient{}, fmt.Errorf("create client: %w", err)
	}
	return apiClient{c}, nil
}

// apply applies objects concurrently. They must not depend on each other.
func (a apiClient) apply(ctx context.Context, objs ...*unstructured.Unstructured) error {
	return a.each(ctx, objs, func(ctx context.Context, u *unstructured.Unstructured) error {
		return a.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), fieldManager, client.ForceOwnership)
	})
}

// create creates objects concurrently, and leaves existing ones unchanged.
func (a apiClient) create(ctx context.Context, objs ...*unstructured.Unstructured) error {
	return a.each(ctx, objs, func(ctx context.Context, u *unstructured.Unstructured) error {
		return client.IgnoreAlreadyExists(a.Create(ctx, u.DeepCopy(), fieldManager))
	})
}

// read returns the current state of an object.
func (a apiClient) read(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(u.GroupVersionKind())
	return current, a.Get(ctx, client.ObjectKeyFromObject(u), current)
}

// each calls write for a few objects at a time and returns the first error.
func (a apiClient) each(ctx context.Context, objs []*unstructured.Unstructured, write func(context.Context, *unstructured.Unstructured) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, u := range objs {
		group.Go(func() error {
			if err := write(ctx, u); err != nil {
				return fmt.Errorf("write %s: %w", title(u), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// createCRDs creates definitions and waits until their kinds can be used.
func (a apiClient) createCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	if err := a.create(ctx, crds...); err != nil {
		return err
	}
	return a.waitCRDs(ctx, crds)
}

// waitCRDs waits until discovery has the kinds of these definitions. A client
// that found them before does not ask again.
func (a apiClient) waitCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, u := range crds {
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		err := waitFor(ctx, startLimit, func(context.Context) error {
			_, err := a.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", title(u), err)
		}
	}
	return nil
}

// applyCRDs creates the definitions of a folder, which may be missing.
func applyCRDs(ctx context.Context, api apiClient, dir string) error {
	objs, err := readManifests(dir)
	if err != nil {
		return err
	}
	crds, _ := split(objs, "CustomResourceDefinition")
	return api.createCRDs(ctx, crds)
}

// applyRBAC applies every object of a folder, namespaces first. Members may create the
// kinds of these frameworks, too.
func applyRBAC(ctx context.Context, api apiClient, dir string, frameworks []string) error {
	objs, err := readManifests(dir)
	if err != nil {
		return err
	}
	allowKinds(objs, frameworks)
	namespaces, others := split(objs, "Namespace")
	if err := api.apply(ctx, namespaces...); err != nil {
		return err
	}
	return api.apply(ctx, others...)
}

// allowKinds labels the ClusterRoles of members for the kinds of frameworks, such as
// jobset.x-k8s.io/jobset, as the chart does for its value memberKinds.
func allowKinds(objs []*unstructured.Unstructured, frameworks []string) {
	for _, u := range objs {
		for _, framework := range frameworks {
			if u.GetKind() == "ClusterRole" && u.GetName() == "kuota-team-member-"+path.Base(framework)+"s" {
				u.SetLabels(map[string]string{"kuota.dev/aggregate-to-team-member": "true"})
			}
		}
	}
}

// split separates the objects of a kind from the others.
func split(objs []*unstructured.Unstructured, kind string) (of, others []*unstructured.Unstructured) {
	for _, u := range objs {
		if u.GetKind() == kind {
			of = append(of, u)
		} else {
			others = append(others, u)
		}
	}
	return of, others
}

// retryLimit is how long a write is repeated while the API server or Kueue does
// not answer.
const retryLimit = 30 * time.Second

// retry repeats a write for retryLimit while its error is of a kind that may
// pass.
func retry(ctx context.Context, write func(context.Context) error, passes func(error) bool) error {
	var final error
	err := waitFor(ctx, retryLimit, func(ctx context.Context) error {
		err := write(ctx)
		if err != nil && !passes(err) {
			final = err
			return nil
		}
		return err
	})
	return errors.Join(final, err)
}

// isTransient reports whether a write may succeed when it is repeated: the API
// server or one of Kueue's webhooks did not answer.
func isTransient(err error) bool {
	return apierrors.ReasonForError(err) == "" || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// hasCondition reports whether status.conditions has this type with status True.
func hasCondition(u *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == kind && m["status"] == "True"
	})
}

func title(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return u.GetKind() + " " + ns + "/" + u.GetName()
	}
	return u.GetKind() + " " + u.GetName()
}

// parseManifest reads the objects of a YAML text with several documents.
func parseManifest(b []byte) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objs, nil
		}
		u := &unstructured.Unstructured{}
		if err := errors.Join(err, yaml.Unmarshal(doc, &u.Object)); err != nil {
			return nil, fmt.Errorf("parse YAML: %w", err)
		}
		if len(u.Object) == 0 { // only a comment between two separators
			continue
		}
		if u.GetKind() == "" || u.GetName() == "" && u.GetGenerateName() == "" {
			return nil, fmt.Errorf("an object has no kind or name:\n%s", lastLines(bytes.TrimSpace(doc), 5))
		}
		objs = append(objs, u)
	}
}

func readManifest(path string) ([]*unstructured.Unstructured, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	objs, err := parseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objs, nil
}

// readManifests reads every YAML file of a folder. A folder that does not exist
// has none.
func readManifests(dir string) ([]*unstructured.Unstructured, error) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml")) // sorted
	var objs []*unstructured.Unstructured
	if dir == "" {
		return nil, nil
	}
	for _, f := range files {
		more, err := readManifest(f)
		if err != nil {
			return nil, err
		}
		objs = append(objs, more...)
	}
	return objs, nil
}
