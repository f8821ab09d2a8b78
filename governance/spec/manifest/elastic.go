package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kueue/pkg/controller/constants"
	"sigs.k8s.io/yaml"
)

var elasticJobName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// CheckElasticJobName returns why the CRD rejects the name of an ElasticJob; empty if it
// accepts it.
func CheckElasticJobName(name string) string {
	switch {
	case len(name) > v1alpha1.MaxElasticJobName:
		return fmt.Sprintf("has %d characters; the name of an elastic task has at most %d", len([]rune(name)), v1alpha1.MaxElasticJobName)
	case !elasticJobName.MatchString(name):
		return "use lower-case letters, digits and hyphens; start with a letter, and end with a letter or digit"
	}
	return ""
}

// CheckElasticPolicy returns what the CRD rejects in a policy. The paths are those of its
// fields, below path.
func CheckElasticPolicy(p *v1alpha1.ElasticPolicy, path string) (problems governance.FieldErrors) {
	report := func(field, format string, args ...any) {
		problems.Addf(document.Child(path, field), format, args...)
	}
	bound := func(field string, value, most int32) {
		if value < 0 || value > most {
			report(field, "must be a whole number of seconds from 0 to %d", most)
		}
	}
	bound("gracefulShutdownTimeoutInSeconds", p.GracefulShutdownTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("scalingTimeoutInSeconds", p.ScalingTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("faultyScaleDownTimeoutInSeconds", p.FaultyScaleDownTimeoutInSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("minStablePeriodSeconds", p.MinStablePeriodSeconds, v1alpha1.MaxTimeoutSeconds)
	bound("backoffMaxSeconds", p.BackoffMaxSeconds, v1alpha1.MaxBackoffSeconds)
	if p.BackoffMaxSeconds < p.MinStablePeriodSeconds {
		report("backoffMaxSeconds", "must be at least minStablePeriodSeconds, %d", p.MinStablePeriodSeconds)
	}
	if p.Growth != "" && p.Growth != v1alpha1.GrowthExistingNodes && p.Growth != v1alpha1.GrowthProvision {
		report("growth", "must be ExistingNodes or Provision")
	}
	if p.ProvisionTimeoutInSeconds < 0 || p.ProvisionTimeoutInSeconds > v1alpha1.MaxTimeoutSeconds {
		report("provisionTimeoutInSeconds", "must be a whole number of seconds from 1 to %d", v1alpha1.MaxTimeoutSeconds)
	}
	problems.Add(document.Child(path, "maxUnscheduledReplicas"), checkUnscheduled(p))
	const pods = "must be a whole number from 1 to 10,000"
	valid := true
	if p.MinReplicas < 1 || p.MinReplicas > v1alpha1.MaxReplicas {
		report("minReplicas", pods)
		valid = false
	}
	switch {
	case p.MaxReplicas < 1 || p.MaxReplicas > v1alpha1.MaxReplicas:
		report("maxReplicas", pods)
		valid = false
	case valid && p.MaxReplicas < p.MinReplicas:
		report("maxReplicas", "is smaller than the minimum of %d pods", p.MinReplicas)
		valid = false
	}
	step, sizes := p.ReplicaIncrementStep, p.ReplicaDiscreteValues
	switch {
	case step != nil && len(sizes) > 0:
		report("replicaDiscreteValues", "give either a step or a list of sizes")
	case step == nil && len(sizes) == 0:
		report("replicaIncrementStep", "give a step, or a list of sizes")
	case step != nil:
		problems.Add(document.Child(path, "replicaIncrementStep"), checkStep(*step, p.MinReplicas, p.MaxReplicas, valid))
	default:
		problems.Add(document.Child(path, "replicaDiscreteValues"), checkSizes(sizes, p.MinReplicas, p.MaxReplicas, valid))
	}
	return problems
}

// checkUnscheduled returns why a limit of pods that wait for nodes is rejected.
func checkUnscheduled(p *v1alpha1.ElasticPolicy) string {
	if p.MaxUnscheduledReplicas == nil {
		return ""
	}
	most, sizes, step := *p.MaxUnscheduledReplicas, slices.Sorted(slices.Values(p.ReplicaDiscreteValues)), int32(0)
	if p.ReplicaIncrementStep != nil {
		step = *p.ReplicaIncrementStep
	}
	for i := 1; i < len(sizes); i++ {
		step = max(step, sizes[i]-sizes[i-1])
	}
	switch {
	case most < 1 || most > v1alpha1.MaxReplicas:
		return "must be a whole number from 1 to 10,000"
	case most < step:
		return fmt.Sprintf("is less than a step of %d pods, which wait together", step)
	}
	return ""
}

// checkStep returns why a step is rejected. comparable reports whether the bounds are
// valid.
func checkStep(step, least, most int32, comparable bool) string {
	switch growth := most - least; {
	case step < 1:
		return "must be a whole number from 1"
	case !comparable:
	case growth%step != 0:
		return fmt.Sprintf("steps of %d from %d do not reach %d; use %s", step, least, most, divisors(growth, step))
	case growth/step >= v1alpha1.MaxSizes:
		return fmt.Sprintf("gives %d sizes, and at most %d are allowed; use %s", growth/step+1, v1alpha1.MaxSizes, divisors(growth, step))
	}
	return ""
}

// divisors returns the allowed steps next to step, in words.
func divisors(growth, step int32) string {
	allowed := func(n int32) bool { return growth%n == 0 && growth/n < v1alpha1.MaxSizes }
	smaller, larger := min(step-1, growth), step+1
	for smaller > 0 && !allowed(smaller) {
		smaller--
	}
	for larger < growth && !allowed(larger) {
		larger++
	}
	switch {
	case smaller < 1:
		return fmt.Sprint(larger)
	case larger > growth:
		return fmt.Sprint(smaller)
	}
	return fmt.Sprintf("%d or %d", smaller, larger)
}

// checkSizes is checkStep for a list of sizes.
func checkSizes(sizes []int32, least, most int32, comparable bool) string {
	if len(sizes) > v1alpha1.MaxSizes {
		return fmt.Sprintf("has %d sizes; at most %d are allowed", len(sizes), v1alpha1.MaxSizes)
	}
	seen := map[int32]bool{}
	for _, size := range sizes {
		switch {
		case size < 1 || size > v1alpha1.MaxReplicas:
			return "each size must be a whole number from 1 to 10,000"
		case seen[size]:
			return fmt.Sprintf("contains %d twice", size)
		case comparable && (size < least || size > most):
			return fmt.Sprintf("%d is not from the minimum of %d to the maximum of %d pods", size, least, most)
		}
		seen[size] = true
	}
	switch {
	case !comparable:
	case !seen[least]:
		return fmt.Sprintf("must contain the minimum, %d", least)
	case !seen[most]:
		return fmt.Sprintf("must contain the maximum, %d", most)
	}
	return ""
}

// SmallestStep returns the smallest step that is allowed from least to most pods.
func SmallestStep(least, most int32) int32 {
	step := int32(1)
	for growth := most - least; step < growth && (growth%step != 0 || growth/step >= v1alpha1.MaxSizes); {
		step++
	}
	return step
}

// JobMetadata is the metadata of an ElasticJob, and of the jobs that are converted to
// one. The annotations and what the API server sets are not decoded.
type JobMetadata struct {
	Name           string            `json:"name"`
	Namespace      string            `json:"namespace"`
	Labels         map[string]string `json:"labels"`
	GenerateName   document.Opaque   `json:"generateName"`
	serverMetadata `json:",inline"`
	Annotations    document.Opaque `json:"annotations"`
}

// ReadElasticJob decodes an ElasticJob. What its CRD rejects is reported and kept: to
// correct it, the reader must see it. Nil means that n is none.
func ReadElasticJob(n *document.Node, path string) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	var o struct {
		APIVersion string                  `json:"apiVersion"`
		Kind       string                  `json:"kind"`
		Metadata   JobMetadata             `json:"metadata"`
		Spec       v1alpha1.ElasticJobSpec `json:"spec"`
		Status     document.Opaque         `json:"status"`
	}
	o.Spec.ElasticPolicy = v1alpha1.DefaultElasticPolicy()
	report := n.Decode(&o, path)
	problems := report.Problems
	if o.APIVersion != v1alpha1.GroupVersion.String() || o.Kind != v1alpha1.ElasticJobKind {
		problems.Addf(document.Child(path, "apiVersion"), "is %s; Kuota reads %s", document.Quote(o.APIVersion), v1alpha1.GroupVersion)
		return nil, problems
	}
	if len(report.Opaque) > 0 {
		problems.Addf(path, "only the name, the labels and the spec were imported, not %s", strings.Join(report.Opaque, ", "))
	}
	e, more := NewElasticJob(o.Metadata, o.Spec, path)
	return e, slices.Concat(problems, more, report.Unreported(CheckElasticJob(e, path)))
}

// NewElasticJob returns an ElasticJob of converted parts. The labels of Kueue are taken
// from the pods if the job has none, and removed there: pods with a queue are tasks of
// their own to Kueue.
func NewElasticJob(meta JobMetadata, spec v1alpha1.ElasticJobSpec, path string) (e *v1alpha1.ElasticJob, problems governance.FieldErrors) {
	e = &v1alpha1.ElasticJob{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticJobKind}, Spec: spec}
	e.Name, e.Namespace, e.Labels = meta.Name, meta.Namespace, maps.Clone(meta.Labels)
	pods := &e.Spec.Template.ObjectMeta
	pods.Labels = maps.Clone(pods.Labels)
	for _, label := range []string{constants.QueueLabel, constants.WorkloadPriorityClassLabel} {
		switch value := pods.Labels[label]; {
		case value == "" || value == e.Labels[label]:
		case e.Labels[label] != "":
			problems.Addf(path, "the pods have another %s, %s; that of the job is used", label, document.Quote(value))
		case e.Labels == nil:
			e.Labels = map[string]string{label: value}
		default:
			e.Labels[label] = value
		}
		delete(pods.Labels, label)
	}
	pods.Name, pods.Namespace = "", "" // those of pods are generated
	return e, problems
}

// CheckElasticJob returns what the CRD rejects in an ElasticJob, except for its pods.
func CheckElasticJob(e *v1alpha1.ElasticJob, path string) (problems governance.FieldErrors) {
	problem := CheckElasticJobName(e.Name)
	if e.Name == "" {
		problem = "is missing: " + problem
	}
	problems.Add(document.Child(path, "metadata.name"), problem)
	spec := document.Child(path, "spec")
	problems = append(problems, CheckElasticPolicy(&e.Spec.ElasticPolicy, document.Child(spec, "elasticPolicy"))...)
	for i, problem := range CheckScaleConfig(e.Spec.ScaleConfig, &e.Spec.ElasticPolicy) {
		problems.Add(document.Index(document.Child(spec, "scaleConfig"), i), problem)
	}
	if len(e.Spec.Template.Spec.Containers) == 0 {
		problems.Addf(document.Child(spec, "template.spec.containers"), "is missing: name the container that trains")
	}
	return problems
}

// CheckScaleConfig returns why the CRD rejects the variables of a size, by index.
func CheckScaleConfig(config []v1alpha1.ScaleConfig, p *v1alpha1.ElasticPolicy) map[int]string {
	problems := map[int]string{}
	for i, c := range config {
		for _, v := range c.Env {
			if !variableName.MatchString(v.Name) {
				problems[i] = fmt.Sprintf("%q is no name of a variable: letters, digits and _, not a digit first", v.Name)
			}
		}
		if c.Replicas < p.MinReplicas || c.Replicas > p.MaxReplicas {
			problems[i] = fmt.Sprintf("%d is not from the minimum to the maximum", c.Replicas)
		}
	}
	return problems
}

// variableName is the pattern of ScaleVariable.Name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)

// podTemplate is a PodTemplateSpec that omits empty metadata.
type podTemplate struct {
	Metadata *metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec     corev1.PodSpec     `json:"spec"`
}

// ElasticJobYAML returns an ElasticJob as YAML, with name, namespace, labels and spec only.
func ElasticJobYAML(e *v1alpha1.ElasticJob) string {
	var w struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace,omitempty"`
			Labels    map[string]string `json:"labels,omitempty"`
		} `json:"metadata"`
		Spec struct {
			v1alpha1.ElasticJobSpec
			Template podTemplate `json:"template"`
		} `json:"spec"`
	}
	w.APIVersion, w.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ElasticJobKind
	w.Metadata.Name, w.Metadata.Namespace, w.Metadata.Labels, w.Spec.ElasticJobSpec = e.Name, e.Namespace, e.Labels, e.Spec
	w.Spec.Template.Spec = e.Spec.Template.Spec
	if pods := e.Spec.Template.ObjectMeta; !equality.Semantic.DeepEqual(pods, metav1.ObjectMeta{}) {
		w.Spec.Template.Metadata = &pods
	}
	text, err := yaml.Marshal(w)
	if err != nil { // specs always encode
		panic(fmt.Sprintf("writing ElasticJob %s: %v", e.Name, err))
	}
	return string(text)
}
