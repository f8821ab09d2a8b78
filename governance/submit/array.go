package submit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/tasks"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Array makes a Job run once for each index, so that a failed index ends no other one: AtOnce at a
// time, or, if that is 0, as many as fit when it starts.
type Array struct{ First, Last, AtOnce int32 }

// Variables of the containers of an array: the index, and its place from 0, which Kubernetes sets.
const (
	arrayIndex = "KUOTA_ARRAY_INDEX"
	jobIndex   = "JOB_COMPLETION_INDEX"
)

var arrayText = regexp.MustCompile(`^(\d{1,9})-(\d{1,9})(?:%(\d{1,9}))?$`)

// ParseArray reads an array such as 1-200%20: indexes 1 to 200, 20 at once. problem is why
// it cannot be read.
func ParseArray(text string) (a *Array, problem string) {
	match := arrayText.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return nil, "must be FIRST-LAST or FIRST-LAST%AT_ONCE, such as 1-200%20: indexes 1 to 200, 20 at once"
	}
	number := func(digits string) int32 {
		n, _ := strconv.ParseInt(digits, 10, 32) // at most nine digits
		return int32(n)
	}
	a = &Array{First: number(match[1]), Last: number(match[2])}
	if match[3] != "" {
		a.AtOnce = min(number(match[3]), max(a.Count(), 1))
	}
	switch {
	case a.Last < a.First:
		return nil, fmt.Sprintf("ends with index %d, before it begins with %d", a.Last, a.First)
	case a.Count() > maxPods:
		return nil, fmt.Sprintf("has %d indexes, want at most %d", a.Count(), maxPods)
	case match[3] != "" && a.AtOnce == 0:
		return nil, "runs 0 at once, want at least 1"
	}
	return a, ""
}

// Count returns the number of indexes.
func (a Array) Count() int32 { return a.Last - a.First + 1 }

// addTo makes a Job of equal pods an array.
func (a Array) addTo(job *batchv1.Job, r Request) {
	count, tries := a.Count(), max(r.Tries, 1)
	job.Spec.Completions, job.Spec.CompletionMode = &count, new(batchv1.IndexedCompletion)
	job.Spec.BackoffLimit, job.Spec.BackoffLimitPerIndex = nil, new(tries-1)
	c := &job.Spec.Template.Spec.Containers[0]
	if a.First == 0 {
		c.Env = append(c.Env, corev1.EnvVar{Name: arrayIndex, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"},
		}})
		return
	}
	job.Spec.Template.Annotations = map[string]string{tasks.ArrayFirstAnnotation: strconv.Itoa(int(a.First))}
	run := r.Command
	if run == "" {
		run = "exec " + strings.Join(c.Command, " ") // of a script
	}
	c.Command = []string{"sh", "-c", fmt.Sprintf("export %s=$((%s+%d)); %s", arrayIndex, jobIndex, a.First, run)}
}

// validate returns the errors of an array.
func (a *Array) validate(r Request) (wrong governance.FieldErrors) {
	switch {
	case a == nil:
	case r.Kind != Job:
		wrong.Add("array", "only a Job can be an array")
	case a.First > 0 && r.Command == "" && r.Script == "":
		wrong.Add("array", "begins with 0 for an image with its own command: its place from 0 is in "+jobIndex)
	}
	return wrong
}

// onlyIndex makes the Job of an array one of a single index. problem is why it cannot.
func onlyIndex(object *unstructured.Unstructured, index int32) (problem string) {
	templates, wrong := templatesOf(object.Object)
	spec, _ := object.Object["spec"].(map[string]any)
	if len(wrong) > 0 || len(templates) != 1 || spec["completionMode"] != string(batchv1.IndexedCompletion) || spec["backoffLimitPerIndex"] == nil {
		return "is of a task that is no array"
	}
	first, _ := strconv.ParseInt(templates[0].Annotations[tasks.ArrayFirstAnnotation], 10, 32)
	count, _ := spec["completions"].(int64)
	place := int64(index) - first
	if place < 0 || place >= count {
		return fmt.Sprintf("is %d, want %d to %d", index, first, first+count-1)
	}
	for field, value := range map[string]any{"completions": int64(1), "parallelism": int64(1), "backoffLimit": spec["backoffLimitPerIndex"]} {
		if spec[field] = value; value == nil {
			delete(spec, field)
		}
	}
	for _, field := range []string{"completionMode", "backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"} {
		delete(spec, field)
	}
	annotations := object.GetAnnotations()
	delete(annotations, minPodsAnnotation)
	object.SetAnnotations(annotations)
	rules, _, _ := unstructured.NestedSlice(spec, "podFailurePolicy", "rules")
	for _, one := range rules {
		if rule, ok := one.(map[string]any); ok && rule["action"] == string(batchv1.PodFailurePolicyActionFailIndex) {
			rule["action"] = string(batchv1.PodFailurePolicyActionFailJob)
		}
	}
	if len(rules) > 0 {
		_ = unstructured.SetNestedSlice(spec, rules, "podFailurePolicy", "rules")
	}
	for _, field := range []string{"annotations", "labels"} { // which a pod may read its index from
		_ = unstructured.SetNestedField(templates[0].object, strconv.FormatInt(place, 10), "metadata", field, batchv1.JobCompletionIndexAnnotation)
	}
	pod, _ := templates[0].object["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := pod[list].([]any)
		for _, one := range containers {
			if c, ok := one.(map[string]any); ok {
				setVariable(c, jobIndex, place)
				setVariable(c, arrayIndex, int64(index))
			}
		}
	}
	return ""
}

// setVariable sets a variable of a container.
func setVariable(container map[string]any, name string, value int64) {
	env, _ := container["env"].([]any)
	env = slices.DeleteFunc(slices.Clone(env), func(v any) bool {
		variable, _ := v.(map[string]any)
		return variable["name"] == name
	})
	container["env"] = append(env, map[string]any{"name": name, "value": strconv.FormatInt(value, 10)})
}
