package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stepLimit is how long a job is tried to be made, as while the API server or
// Kueue is away, before its step is left out.
const stepLimit = 30 * time.Second

// jobs is where a load makes its jobs.
type jobs interface {
	create(ctx context.Context, u *unstructured.Unstructured) error
	get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// play makes the jobs of a load, round after round until ctx ends. There is never
// more than one job of a step that has not ended: while there is, the step is left
// out.
func (l *load) play(ctx context.Context, api jobs, say func(format string, args ...any)) {
	last := make([]*unstructured.Unstructured, len(l.steps))
	for round := 1; ; round++ {
		began := time.Now()
		for i, s := range l.steps {
			if !sleepUntil(ctx, began.Add(s.at)) {
				return
			}
			made, err := l.make(ctx, api, s, round, last[i])
			if err != nil && ctx.Err() == nil {
				say("the sample task %s of team %s is left out: %v", s.name, s.team, err)
			}
			if made != nil {
				last[i] = made
			}
		}
		if !sleepUntil(ctx, began.Add(l.repeat)) {
			return
		}
	}
}

// sleepUntil returns at a time, or with false when ctx ends before.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// make makes the job of a step, unless that of an earlier round goes on.
func (l *load) make(ctx context.Context, api jobs, s step, round int, before *unstructured.Unstructured) (made *unstructured.Unstructured, err error) {
	job := l.job(s, round)
	var refused error
	err = waitFor(ctx, stepLimit, func(ctx context.Context) error {
		goesOn, err := isUnfinished(ctx, api, before)
		if err == nil && !goesOn {
			if err = api.create(ctx, job); err == nil {
				made = job
			}
		}
		if err != nil && isFinal(err) {
			refused = err
			return nil
		}
		return err
	})
	return made, errors.Join(refused, err)
}

// isUnfinished tells whether a job is there and has not ended. nil is none.
func isUnfinished(ctx context.Context, api jobs, job *unstructured.Unstructured) (bool, error) {
	if job == nil {
		return false, nil
	}
	is, err := api.get(ctx, job)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && !hasCondition(is, "Complete") && !hasCondition(is, "Failed"), err
}

// isFinal tells whether it helps nothing to try again: the API server answered,
// and Kueue's webhooks did.
func isFinal(err error) bool {
	return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err)
}

// job is the Job of a step in a round.
func (l *load) job(s step, round int) *unstructured.Unstructured {
	a, namespace, name := l.accelerators[s.of], "hyperpod-ns-"+s.team, s.name
	if round > 1 {
		name = fmt.Sprintf("%s-%d", name, round)
	}
	labels := map[string]any{"kueue.x-k8s.io/queue-name": namespace + "-localqueue"}
	if s.class != "" {
		labels["kueue.x-k8s.io/priority-class"] = s.class + "-priority"
	}
	amounts := map[string]any{a.Resource: s.each, "cpu": times(a.CPU, s.each), "memory": times(a.Memory, s.each)}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1",
		"kind":       "Job",
		"metadata":   map[string]any{"name": name, "namespace": namespace, "labels": labels},
		"spec": map[string]any{
			"suspend":                 true,
			"parallelism":             s.pods,
			"completions":             s.pods,
			"backoffLimit":            int64(0),
			"ttlSecondsAfterFinished": int64(l.keep / time.Second),
			"template": map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"pod-complete.stage.kwok.x-k8s.io/delay": s.runs.String()}},
				"spec": map[string]any{
					"restartPolicy": "Never",
					"nodeSelector":  map[string]any{"node.kubernetes.io/instance-type": a.InstanceType},
					"containers": []any{map[string]any{
						"name": "train", "image": "example.com/train:1",
						"resources": map[string]any{"requests": amounts, "limits": amounts},
					}},
				},
			},
		},
	}}
}

// times is an amount so many times.
func times(amount string, n int64) string {
	q := resource.MustParse(amount)
	q.Mul(n)
	return q.String()
}
