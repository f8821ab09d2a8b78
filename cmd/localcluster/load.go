package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// longestName leaves space for the number of the round after a step's name, and
// for the suffix of a pod's name.
const longestName = 40

// load is the script of the sample teams' Jobs: see samples/load.yaml.
type load struct {
	repeat       time.Duration          // from the start of a round to the start of the next
	keep         time.Duration          // how long an ended Job remains
	accelerators map[string]accelerator // by the name that steps use
	steps        []step                 // ordered by offset
}

// accelerator is what a pod requests for each accelerator.
type accelerator struct {
	InstanceType string // the pod's node selector
	Resource     string // the extended resource
	CPU, Memory  string
}

// step is one Job of each round.
type step struct {
	at    time.Duration // offset from the start of the round
	team  string
	name  string
	class string // priority class; empty for none
	of    string // name of the accelerator
	each  int64  // accelerators per pod
	pods  int64  // parallelism
	runs  time.Duration
}

// loadFile is the file of a load.
type loadFile struct {
	Repeat, Keep string
	Accelerators map[string]accelerator
	Steps        []struct {
		At, Team, Name, Class, Of, Runs string
		Each, Pods                      *int64
	}
}

// readLoad reads a load. Its error lists all mistakes in the file.
func readLoad(path string) (*load, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read load: %w", err)
	}
	l, err := parseLoad(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// mistakes collects what is wrong with a file.
type mistakes []error

func (m *mistakes) add(format string, args ...any) { *m = append(*m, fmt.Errorf(format, args...)) }

func (m *mistakes) duration(field, text string, least time.Duration) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		m.add("%s: %q is not a duration; use one such as 90s or 4m", field, text)
	} else if d < least {
		m.add("%s: %s is too short; use %s or more", field, text, least)
	}
	return d
}

func (m *mistakes) count(field string, value *int64) int64 {
	if value == nil {
		return 1
	}
	if *value < 1 || *value > 100 {
		m.add("%s: %d is not from 1 to 100", field, *value)
	}
	return *value
}

func parseLoad(b []byte) (*load, error) {
	var file loadFile
	if err := yaml.UnmarshalStrict(b, &file); err != nil {
		return nil, fmt.Errorf("not a load: %w", err)
	}
	var wrong mistakes
	l := &load{repeat: wrong.duration("repeat", file.Repeat, time.Minute), keep: wrong.duration("keep", file.Keep, time.Second), accelerators: file.Accelerators}
	if l.keep > l.repeat {
		wrong.add("keep: %s is longer than a round of %s, and the number of Jobs would grow without limit", l.keep, l.repeat)
	}
	for name, a := range l.accelerators {
		if a.InstanceType == "" || a.Resource == "" {
			wrong.add("accelerators.%s: set instanceType and resource", name)
		}
		for field, text := range map[string]string{"cpu": a.CPU, "memory": a.Memory} {
			if _, err := resource.ParseQuantity(text); err != nil {
				wrong.add("accelerators.%s.%s: %q is not a quantity; use one such as 12 or 128Gi", name, field, text)
			}
		}
	}
	if len(file.Steps) == 0 {
		wrong.add("steps: list at least one")
	}
	seen := map[string]bool{}
	for i, f := range file.Steps {
		field := fmt.Sprintf("step %d (%s)", i+1, cmp.Or(f.Name, "without a name"))
		s := step{
			at: wrong.duration(field+": at", f.At, 0), team: f.Team, name: f.Name, class: f.Class, of: f.Of, runs: wrong.duration(field+": runs", f.Runs, time.Second),
			each: wrong.count(field+": each", f.Each), pods: wrong.count(field+": pods", f.Pods),
		}
		if s.at >= l.repeat {
			wrong.add("%s: at %s is after the start of the next round; repeat is %s", field, f.At, file.Repeat)
		}
		for of, name := range map[string]string{"team": s.team, "name": s.name} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > longestName {
				wrong.add("%s: %s %q: use at most %d lower-case letters, digits and hyphens", field, of, name, longestName)
			}
		}
		if job := s.team + "/" + s.name; seen[job] {
			wrong.add("%s: team %s already has a step of this name", field, s.team)
		} else {
			seen[job] = true
		}
		if _, known := l.accelerators[s.of]; !known {
			wrong.add("%s: of %q: use the name of an accelerator above", field, s.of)
		}
		l.steps = append(l.steps, s)
	}
	slices.SortStableFunc(l.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	// Maps have no order, and the same file has to give the same message.
	slices.SortStableFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(wrong...)
}

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
