package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// settle is how long the Deployment must rest before Kueue is restarted, so
// that two changes in a row cost one restart.
const settle = 200 * time.Millisecond

// follow restarts Kueue whenever its Deployment rolls out a new pod. Nothing
// else does: Kueue reads its ConfigMap at its start alone, and who changes that
// and forgets the rollout has to notice here as well. It returns when the
// context ends.
func (k *kueueUnit) follow(ctx context.Context) {
	pods := make(chan kueuePod)
	go k.watchDeployment(ctx, pods)
	var pending kueuePod
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-pods:
			if pod.template != pending.template { // else its status only
				pending, due = pod, time.After(settle)
			}
		case <-due:
			due = nil
			if err := k.roll(ctx, pending.template); err != nil && ctx.Err() == nil {
				k.sup.say("Kueue's configuration was not taken: %v", err)
			}
		}
	}
}

// roll restarts Kueue for a new template of its pod, with the configuration of
// this moment. One that Kueue refuses does not end the cluster: a person wrote
// it, and is about to write a better one.
func (k *kueueUnit) roll(ctx context.Context, template string) error {
	c := k.comp
	c.op.Lock()
	defer c.op.Unlock()
	if template == k.template {
		return nil
	}
	k.template = template // tried once, whatever comes of it
	before, _ := c.get()
	if before == stopped { // on purpose: it reads all this when it is started again
		return nil
	}
	if err := k.prepare(ctx); err != nil {
		return err
	}
	begin := time.Now()
	c.stop(c.grace)
	err := c.start(ctx, k.sup.spawner, k.sup.onExit)
	switch {
	case err == nil:
		k.sup.say("Kueue restarted with its new configuration (%.1f s)", time.Since(begin).Seconds())
		return nil
	case errors.Is(err, errEnded):
		return fmt.Errorf("%w; Kueue starts again once Deployment %s/%s rolls out anew; the end of %s:\n%s",
			err, kueueNamespace, kueueDeployment, c.spec.log, logTail(c.spec.log))
	default:
		return err
	}
}

// watchDeployment sends what the Deployment says whenever that may have
// changed. It outlives absences of the API server.
func (k *kueueUnit) watchDeployment(ctx context.Context, pods chan<- kueuePod) {
	for ctx.Err() == nil {
		k.watchOnce(ctx, pods)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (k *kueueUnit) watchOnce(ctx context.Context, pods chan<- kueuePod) {
	r := k.api.dyn.Resource(deployments).Namespace(kueueNamespace)
	only := "metadata.name=" + kueueDeployment
	list, err := r.List(ctx, metav1.ListOptions{FieldSelector: only})
	if err != nil {
		return
	}
	for _, item := range list.Items {
		k.send(ctx, pods, &item)
	}
	w, err := r.Watch(ctx, metav1.ListOptions{FieldSelector: only, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if u, ok := event.Object.(*unstructured.Unstructured); ok && u.GetKind() == "Deployment" {
			k.send(ctx, pods, u)
		}
	}
}

func (k *kueueUnit) send(ctx context.Context, pods chan<- kueuePod, u *unstructured.Unstructured) {
	pod, err := podOf(u)
	if err != nil || u.GetDeletionTimestamp() != nil {
		return
	}
	select {
	case pods <- pod:
	case <-ctx.Done():
	}
}
