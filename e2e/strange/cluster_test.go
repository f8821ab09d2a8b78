package strange_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// quietFor is how long no Workload and no queue changes before Kueue counts as done.
const quietFor = 1500 * time.Millisecond

// settleLimit bounds the wait for that. Objects that never rest are checked as they are.
const settleLimit = 15 * time.Second

// cluster makes the objects of a scenario.
type cluster struct {
	client.Client
	prefix     string   // of all names of the scenario
	namespaces []string // of the scenario, that of its allocation too
}

// apply creates the objects. It returns those that the API server took, and why it
// refused the others.
func (c *cluster) apply(ctx context.Context, s *scenario) (made []client.Object, refused []string) {
	for _, o := range s.Apply {
		u, err := toUnstructured(o)
		if err != nil {
			refused = append(refused, err.Error())
			continue
		}
		if u.GetKind() == "Namespace" {
			c.namespaces = append(c.namespaces, u.GetName())
		}
		if u.GetKind() == "ComputeAllocation" {
			c.namespaces = append(c.namespaces, "hyperpod-ns-"+u.GetName())
		}
		if err := c.Create(ctx, u); err != nil {
			refused = append(refused, fmt.Sprintf("%s %s: %v", u.GetKind(), u.GetName(), err))
			continue
		}
		made = append(made, u)
	}
	return made, refused
}

func toUnstructured(o map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}

// vanish deletes objects, and their finalizers.
func (c *cluster) vanish(ctx context.Context, all []vanishing) error {
	for _, v := range all {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(v.APIVersion)
		u.SetKind(v.Kind)
		u.SetNamespace(v.Namespace)
		u.SetName(v.Name)
		if v.Kind == "Workload" {
			var of kueue.WorkloadList
			if err := c.List(ctx, &of, client.InNamespace(v.Namespace)); err != nil {
				return err
			}
			at := slices.IndexFunc(of.Items, func(w kueue.Workload) bool {
				return w.Name == v.Name || len(w.OwnerReferences) > 0 && w.OwnerReferences[0].Name == v.Name
			})
			if at < 0 {
				continue
			}
			u.SetName(of.Items[at].Name)
		}
		if err := c.remove(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) remove(ctx context.Context, o client.Object) error {
	err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil && o.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
		err = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// state identifies what Kueue has written.
func (c *cluster) state(ctx context.Context, workloads []kueue.Workload) (string, error) {
	var queues kueue.ClusterQueueList
	if err := c.List(ctx, &queues); err != nil {
		return "", err
	}
	text := ""
	for _, q := range queues.Items {
		if strings.HasPrefix(q.Name, c.prefix) {
			text += q.Name + q.ResourceVersion + " "
		}
	}
	for _, w := range workloads {
		text += w.Name + w.ResourceVersion + " "
	}
	return text, nil
}

func (c *cluster) workloads(ctx context.Context) (all []kueue.Workload, err error) {
	for _, namespace := range c.namespaces {
		var of kueue.WorkloadList
		if err := c.List(ctx, &of, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		all = append(all, of.Items...)
	}
	return all, nil
}

// settle waits until Kueue has decided.
func (c *cluster) settle(ctx context.Context) error {
	last, since := "", time.Now()
	for began := since; time.Since(began) < settleLimit && time.Since(since) < quietFor; {
		workloads, err := c.workloads(ctx)
		if err != nil {
			return err
		}
		now, err := c.state(ctx, workloads)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// clear deletes all of a scenario, and waits until nothing of it is left.
func (c *cluster) clear(ctx context.Context, made []client.Object) error {
	slices.Reverse(made)
	for _, o := range made {
		if err := c.remove(ctx, o); err != nil {
			return err
		}
	}
	for _, namespace := range c.namespaces {
		var jobs batchv1.JobList
		var workloads kueue.WorkloadList
		var pods corev1.PodList
		for _, list := range []client.ObjectList{&jobs, &workloads, &pods} {
			if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			err := meta.EachListItem(list, func(o runtime.Object) error { return c.remove(ctx, o.(client.Object)) })
			if err != nil {
				return err
			}
		}
	}
	return until(ctx, time.Minute, func() error {
		workloads, err := c.workloads(ctx)
		if err == nil && len(workloads) > 0 {
			err = fmt.Errorf("%d Workloads are left", len(workloads))
		}
		return err
	})
}

// until calls check until it returns nil. It returns the last error after limit.
func until(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(250 * time.Millisecond):
		}
	}
}
