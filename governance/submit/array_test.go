package submit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestParseArray(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Array{"0-9": {0, 9, 0}, "1-200%20": {1, 200, 20}, " 7-7 ": {7, 7, 0}, "0-3%9": {0, 3, 4}} {
		if got, problem := ParseArray(text); problem != "" || *got != want {
			t.Errorf("%q is %v, %s", text, got, problem)
		}
	}
	for text, want := range map[string]string{"": "FIRST-LAST", "5": "FIRST-LAST", "-1-5": "FIRST-LAST", "1-5%": "FIRST-LAST", "9-1": "before it begins", "0-10000": "at most 10000", "1-2%0": "at least 1", "1-9999999999": "FIRST-LAST"} {
		if got, problem := ParseArray(text); got != nil || !strings.Contains(problem, want) {
			t.Errorf("%q is %v, %q, want %q", text, got, problem, want)
		}
	}
}

// Each index runs by itself, and finds its number wherever the array begins.
func TestArrayJob(t *testing.T) {
	t.Parallel()
	job := func(a Array, r Request) *batchv1.Job {
		pods := a.AtOnce
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &pods, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: r.command()}}}}}}
		a.addTo(j, r)
		return j
	}
	j := job(Array{0, 9, 4}, Request{Command: "train"})
	if c := j.Spec.Template.Spec.Containers[0]; *j.Spec.Completions != 10 || *j.Spec.BackoffLimitPerIndex != 0 || j.Spec.BackoffLimit != nil || c.Env[0].Name != arrayIndex || cmp.Diff(c.Command, []string{"sh", "-c", "train"}) != "" {
		t.Errorf("the Job is %+v", j.Spec)
	}
	for command, r := range map[string]Request{
		"export KUOTA_ARRAY_INDEX=$((JOB_COMPLETION_INDEX+5)); train":                 {Command: "train", Runtime: Runtime{Tries: 3}},
		"export KUOTA_ARRAY_INDEX=$((JOB_COMPLETION_INDEX+5)); exec sh /kuota/script": {Script: "train", Runtime: Runtime{Tries: 3}},
		"export KUOTA_ARRAY_INDEX=$((JOB_COMPLETION_INDEX+5)); exec /kuota/script":    {Script: "#!/bin/python", Runtime: Runtime{Tries: 3}},
	} {
		j := job(Array{5, 9, 4}, r)
		if c := j.Spec.Template.Spec.Containers[0]; *j.Spec.BackoffLimitPerIndex != 2 || c.Command[2] != command || j.Spec.Template.Annotations["kuota.dev/array-first"] != "5" {
			t.Errorf("the Job is %+v", j.Spec)
		}
	}
}
