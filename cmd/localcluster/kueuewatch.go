package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// settle is how long the ConfigMap must rest before Kueue is restarted, so that
// two edits in a row cost one restart.
const settle = 200 * time.Millisecond

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// follow restarts Kueue whenever its ConfigMap says something new, as a
// Deployment would be restarted in a cluster. It returns when the context ends.
func (k *kueueUnit) follow(ctx context.Context) {
	texts := make(chan string)
	go k.watchConfig(ctx, texts)
	var pending string
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case pending = <-texts:
			due = time.After(settle)
		case <-due:
			due = nil
			if pending == k.applied {
				continue
			}
			if err := k.reconfigure(ctx, pending); err != nil && ctx.Err() == nil {
				k.sup.say("Kueue's configuration was not taken: %v", err)
			}
		}
	}
}

// reconfigure restarts Kueue with a configuration. One that Kueue refuses does
// not end the cluster: a person wrote it, and is about to write a better one.
func (k *kueueUnit) reconfigure(ctx context.Context, text string) error {
	c := k.comp
	c.op.Lock()
	defer c.op.Unlock()
	before, _ := c.get()
	if err := k.configure(ctx, text); err != nil {
		return err
	}
	if before == stopped { // on purpose: it reads the new file when it is started again
		return nil
	}
	begin := time.Now()
	c.stop(c.grace)
	err := c.start(ctx, k.sup.spawner, k.sup.onExit)
	switch {
	case err == nil:
		k.sup.say("Kueue restarted with its new configuration (%.1f s)", time.Since(begin).Seconds())
		return nil
	case errors.Is(err, errEnded):
		return fmt.Errorf("%w; Kueue starts again once ConfigMap %s/%s changes; the end of %s:\n%s",
			err, kueueNamespace, kueueConfigMap, c.spec.log, logTail(c.spec.log))
	default:
		return err
	}
}

// watchConfig sends the ConfigMap's text whenever it may have changed. It
// outlives absences of the API server.
func (k *kueueUnit) watchConfig(ctx context.Context, texts chan<- string) {
	for ctx.Err() == nil {
		k.watchOnce(ctx, texts)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (k *kueueUnit) watchOnce(ctx context.Context, texts chan<- string) {
	cm := k.api.dyn.Resource(configMaps).Namespace(kueueNamespace)
	only := "metadata.name=" + kueueConfigMap
	list, err := cm.List(ctx, metav1.ListOptions{FieldSelector: only})
	if err != nil {
		return
	}
	for _, item := range list.Items {
		sendText(ctx, texts, &item)
	}
	w, err := cm.Watch(ctx, metav1.ListOptions{FieldSelector: only, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if u, ok := event.Object.(*unstructured.Unstructured); ok && u.GetKind() == "ConfigMap" {
			sendText(ctx, texts, u)
		}
	}
}

func sendText(ctx context.Context, texts chan<- string, u *unstructured.Unstructured) {
	text, found, _ := unstructured.NestedString(u.Object, "data", kueueConfigKey)
	if !found || u.GetDeletionTimestamp() != nil {
		return
	}
	select {
	case texts <- text:
	case <-ctx.Done():
	}
}
