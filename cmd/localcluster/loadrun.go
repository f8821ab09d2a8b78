package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// jobClient is the part of client.Client that a load uses.
type jobClient interface {
	Create(ctx context.Context, job client.Object, options ...client.CreateOption) error
	Get(ctx context.Context, key client.ObjectKey, job client.Object, options ...client.GetOption) error
}

// run creates the Jobs of a load, round after round until ctx ends. It skips a
// step while the step's Job of an earlier round has not ended.
func (l *load) run(ctx context.Context, api jobClient, say func(format string, args ...any)) {
	last := make([]*batchv1.Job, len(l.steps))
	for round := 1; ; round++ {
		begin := time.Now()
		for i, s := range l.steps {
			if !sleep(ctx, time.Until(begin.Add(s.at))) {
				return
			}
			job, err := l.create(ctx, api, s, round, last[i])
			if err != nil && ctx.Err() == nil {
				say("the sample task %s of team %s is skipped: %v", s.name, s.team, err)
			}
			if job != nil {
				last[i] = job
			}
		}
		if !sleep(ctx, time.Until(begin.Add(l.repeat))) {
			return
		}
	}
}

// sleep returns after a time, or false once ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// create creates the Job of a step, and returns nil while the previous one has
// not ended.
func (l *load) create(ctx context.Context, api jobClient, s step, round int, previous *batchv1.Job) (created *batchv1.Job, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		unfinished, err := isUnfinished(ctx, api, previous)
		if err != nil || unfinished {
			return err
		}
		job := l.job(s, round)
		if err := client.IgnoreAlreadyExists(api.Create(ctx, job, fieldManager)); err != nil {
			return err
		}
		created = job
		return nil
	}, isTransient)
	return created, err
}

// isUnfinished reports whether a Job exists and has not ended.
func isUnfinished(ctx context.Context, api jobClient, job *batchv1.Job) (bool, error) {
	if job == nil {
		return false, nil
	}
	var current batchv1.Job
	err := api.Get(ctx, client.ObjectKeyFromObject(job), &current)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	for _, c := range current.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return false, err
		}
	}
	return err == nil, err
}

// job returns the Job of a step in a round.
func (l *load) job(s step, round int) *batchv1.Job {
	a, namespace, name := l.accelerators[s.of], "hyperpod-ns-"+s.team, s.name
	if round > 1 {
		name = fmt.Sprintf("%s-%d", name, round)
	}
	labels := map[string]string{"kueue.x-k8s.io/queue-name": namespace + "-localqueue"}
	if s.class != "" {
		labels["kueue.x-k8s.io/priority-class"] = s.class + "-priority"
	}
	requests := corev1.ResourceList{
		corev1.ResourceName(a.Resource): *resource.NewQuantity(s.each, resource.DecimalSI),
		corev1.ResourceCPU:              times(a.CPU, s.each),
		corev1.ResourceMemory:           times(a.Memory, s.each),
	}
	pods := int32(s.pods)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			Suspend: new(true), Parallelism: &pods, Completions: &pods, BackoffLimit: new(int32),
			TTLSecondsAfterFinished: new(int32(l.keep / time.Second)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": s.runs.String()}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					NodeSelector:  map[string]string{corev1.LabelInstanceTypeStable: a.InstanceType},
					Containers: []corev1.Container{{
						Name: "train", Image: "example.com/train:1",
						Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
					}},
				},
			},
		},
	}
}

// times multiplies a quantity, which parseLoad has checked.
func times(quantity string, n int64) resource.Quantity {
	q := resource.MustParse(quantity)
	q.Mul(n)
	return q
}
