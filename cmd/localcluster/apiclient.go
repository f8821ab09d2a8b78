package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const fieldManager = "localcluster"

// apiClient applies and reads objects of any kind, as cluster admin.
type apiClient struct {
	dyn    dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newAPIClient(kubeconfig string) (*apiClient, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS = -1 // a start applies some hundred objects at once
	cfg.UserAgent = fieldManager
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	disc, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &apiClient{dyn: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disc))}, nil
}

// resource is the client for the object's kind and namespace.
func (a *apiClient) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", gvk, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		ns := u.GetNamespace()
		if ns == "" {
			ns = "default"
		}
		return a.dyn.Resource(m.Resource).Namespace(ns), nil
	}
	return a.dyn.Resource(m.Resource), nil
}

// apply writes one object server-side, as the owner of its fields.
func (a *apiClient) apply(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := a.resource(u)
	if err != nil {
		return err
	}
	b, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode %s: %w", title(u), err)
	}
	force := true
	_, err = r.Patch(ctx, u.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("apply %s: %w", title(u), err)
	}
	return nil
}

// applyAll writes objects at the same time; they must not depend on each other.
func (a *apiClient) applyAll(ctx context.Context, objs []*unstructured.Unstructured) error {
	return each(objs, func(u *unstructured.Unstructured) error { return a.apply(ctx, u) })
}

// create posts one object, with its status where the kind allows that.
func (a *apiClient) create(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := a.resource(u)
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", title(u), err)
	}
	return nil
}

// get reads the object again.
func (a *apiClient) get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r, err := a.resource(u)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, u.GetName(), metav1.GetOptions{})
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// applyCRDs writes definitions and waits until their kinds can be used.
func (a *apiClient) applyCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	if err := a.applyAll(ctx, crds); err != nil {
		return err
	}
	err := each(crds, func(u *unstructured.Unstructured) error {
		return waitFor(ctx, time.Minute, func(ctx context.Context) error {
			got, err := a.dyn.Resource(crdResource).Get(ctx, u.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !hasCondition(got, "Established") {
				return fmt.Errorf("%s is not established", u.GetName())
			}
			return nil
		})
	})
	a.mapper.Reset()
	return err
}

// hasCondition tells whether status.conditions has this type with status True.
func hasCondition(u *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m["status"] == "True"
		}
	}
	return false
}

func title(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return u.GetKind() + " " + ns + "/" + u.GetName()
	}
	return u.GetKind() + " " + u.GetName()
}

// each runs f for all items, eight at a time, and returns the first error.
func each[T any](items []T, f func(T) error) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	errs := make(chan error, len(items))
	for _, it := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(it); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
