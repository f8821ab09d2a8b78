package elastic_test

import (
	"context"
	"errors"
	"testing"

	"kuota.dev/kuota/governance/cluster/clustertest"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A job that was resized while it was suspended starts with its new sizes: the base and
// torchrun's range are created for them.
func TestResizedWhileSuspended(t *testing.T) {
	l := newLab(t, 3)
	training := l.team("training", 24, nil)
	e := l.elastic(training, "train", "", steps(0))
	l.resize(e, map[string]any{"maxReplicas": 16})
	l.size(e, 16, soon)
	l.suspend(e, true)
	l.size(e, 0, soon)
	var base batchv1.Job
	read := func(ctx context.Context) error {
		return l.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: "train-base"}, &base)
	}
	clustertest.Eventually(t, soon, func(ctx context.Context) error { // a base that Kueue has not stopped stays
		if err := read(ctx); err != nil {
			return err
		}
		if !ptr.Deref(base.Spec.Suspend, false) {
			return errors.New("Kueue has not suspended the base")
		}
		return nil
	})
	l.resize(e, map[string]any{"minReplicas": 16, "maxReplicas": 24})
	l.suspend(e, false)
	l.size(e, 24, soon)
	if e.Status.Minimum != 16 {
		t.Errorf("%d pods are guaranteed, want 16", e.Status.Minimum)
	}
	if err := read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, v := range base.Spec.Template.Spec.Containers[0].Env {
		if v.Name == "PET_NNODES" && v.Value != "16:24" {
			t.Errorf("PET_NNODES is %s, want 16:24", v.Value)
		}
	}
}
