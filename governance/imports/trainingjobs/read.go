package trainingjobs

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/document"
	"kuota.dev/kuota/governance/spec/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The kinds that are converted.
const (
	KindHyperPod = "HyperPodPyTorchJob"
	KindPyTorch  = "PyTorchJob"
)

// Matches reports whether n is of a kind that Read converts.
func Matches(n *document.Node) bool {
	version, kind := n.Get("apiVersion"), n.Get("kind")
	if version == nil || kind == nil {
		return false
	}
	group, _, _ := strings.Cut(version.Text, "/")
	return group == "sagemaker.amazonaws.com" && kind.Text == KindHyperPod || group == "kubeflow.org" && kind.Text == KindPyTorch
}

// Read converts a job that Matches. It returns nil for a job that is not elastic, or whose
// replicas differ. What the CRD rejects in the result is reported and kept.
func Read(n *document.Node, path string) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	if n.Get("kind").Text == KindHyperPod {
		return readHyperPod(n, path)
	}
	return readPyTorch(n, path)
}

// converter builds an ElasticJob, and collects what is not converted.
type converter struct {
	path     string // of the job
	problems governance.FieldErrors
	spec     v1alpha1.ElasticJobSpec
}

func (c *converter) report(path, format string, args ...any) {
	c.problems.Addf(document.Child(c.path, path), format, args...)
}

func readHyperPod(n *document.Node, path string) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	var job hyperPodJob
	job.Spec.ElasticPolicy = v1alpha1.DefaultElasticPolicy()
	report := n.Decode(&job, path)
	c := converter{path: path, problems: report.Problems}
	c.spec.ElasticPolicy, c.spec.ScaleConfig = job.Spec.ElasticPolicy, job.Spec.ScaleConfig
	var groups []group
	for i := range job.Spec.ReplicaSpecs {
		groups = append(groups, group{&job.Spec.ReplicaSpecs[i], document.Index("spec.replicaSpecs", i)})
	}
	if !c.elastic(n) || !c.merge(groups, "spec.replicaSpecs") {
		return nil, c.problems
	}
	c.bounds(groups)
	c.run(&job.Spec.RunPolicy)
	c.variable("PET_NPROC_PER_NODE", whole(job.Spec.NProcPerNode))
	return c.finish(&job.header, report)
}

func readPyTorch(n *document.Node, path string) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	var job pyTorchJob
	report := n.Decode(&job, path)
	c := converter{path: path, problems: report.Problems}
	elastic, specs := &job.Spec.ElasticPolicy, &job.Spec.ReplicaSpecs
	p := v1alpha1.DefaultElasticPolicy()
	p.MinReplicas, p.MaxReplicas = ptr.Deref(elastic.MinReplicas, p.MinReplicas), ptr.Deref(elastic.MaxReplicas, p.MaxReplicas)
	c.spec.ElasticPolicy = p
	var groups []group
	if specs.Master != nil {
		groups = append(groups, group{specs.Master, "spec.pytorchReplicaSpecs.Master"})
	}
	if specs.Worker != nil {
		groups = append(groups, group{specs.Worker, "spec.pytorchReplicaSpecs.Worker"})
	}
	if !c.elastic(n) || !c.merge(groups, "spec.pytorchReplicaSpecs") {
		return nil, c.problems
	}
	c.bounds(groups)
	c.run(&job.Spec.RunPolicy)
	c.variable("PET_NPROC_PER_NODE", whole(cmp.Or(elastic.NProcPerNode, job.Spec.NProcPerNode)))
	c.rendezvous(elastic)
	return c.finish(&job.header, report)
}

// elastic reports whether the job has an elasticPolicy.
func (c *converter) elastic(n *document.Node) bool {
	if spec := n.Get("spec"); spec.Has("elasticPolicy") && spec.Get("elasticPolicy").Kind == document.Object {
		return true
	}
	instead := "add one, or write the job as a PyTorchJob"
	if n.Get("kind").Text == KindPyTorch {
		instead = "add one, or submit the job as it is on the page of its team, with Submit from a manifest"
	}
	c.report("spec.elasticPolicy", "is missing: the job is not elastic, so nothing was imported; %s", instead)
	return false
}

// group is a group of replicas with its path in the job.
type group struct {
	*replicas
	path string
}

// merge sets the template, which all groups must have.
func (c *converter) merge(groups []group, path string) bool {
	if len(groups) == 0 {
		c.report(path, "is missing, so nothing was imported: it has the pods of the job")
		return false
	}
	for i := range groups {
		g := &groups[i]
		c.restart(g)
		if i > 0 && !equality.Semantic.DeepEqual(g.Template, groups[0].Template) {
			c.report(g.path, "has other pods than %s, so nothing was imported: all pods of an ElasticJob are equal, and torchrun needs no master", groups[0].path)
			return false
		}
	}
	c.spec.Template = groups[0].Template
	return true
}

// restart sets the restart policy of pods that do not set it.
func (c *converter) restart(g *group) {
	switch to := g.RestartPolicy; to {
	case "":
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		if g.Template.Spec.RestartPolicy == "" {
			g.Template.Spec.RestartPolicy = to
		}
	default:
		c.report(document.Child(g.path, "restartPolicy"), "is %s; pods of an ElasticJob are replaced when they fail", document.Quote(string(to)))
	}
}

// bounds completes the sizes from the replicas of all groups.
func (c *converter) bounds(groups []group) {
	p := &c.spec.ElasticPolicy
	var initial, most int64
	for _, g := range groups {
		n := ptr.Deref(g.Replicas, 1)
		initial += int64(n)
		most += int64(ptr.Deref(g.MaxReplicas, n))
	}
	count := func(n int64) int32 { return int32(min(max(n, -1), v1alpha1.MaxReplicas+1)) } // out of bounds either way
	if p.MinReplicas == 0 {
		p.MinReplicas = count(initial)
		c.report("spec.elasticPolicy.minReplicas", "is missing; the number of replicas, %d, is used", p.MinReplicas)
	} else if initial != int64(p.MinReplicas) {
		c.report("", "has %d replicas; an ElasticJob starts with its minimum, %d", initial, p.MinReplicas)
	}
	switch {
	case p.MaxReplicas == 0:
		p.MaxReplicas = max(count(most), p.MinReplicas)
		c.report("spec.elasticPolicy.maxReplicas", "is missing; %d is used", p.MaxReplicas)
	case len(groups) == 1 && groups[0].MaxReplicas != nil && *groups[0].MaxReplicas != p.MaxReplicas:
		c.report(document.Child(groups[0].path, "maxReplicas"), "is %d; that of elasticPolicy, %d, is used", *groups[0].MaxReplicas, p.MaxReplicas)
	}
	if p.ReplicaIncrementStep == nil && len(p.ReplicaDiscreteValues) == 0 {
		p.ReplicaIncrementStep = new(int32(1))
		if p.MinReplicas > 0 && p.MaxReplicas <= v1alpha1.MaxReplicas && p.MinReplicas <= p.MaxReplicas {
			*p.ReplicaIncrementStep = manifest.SmallestStep(p.MinReplicas, p.MaxReplicas)
		}
		if step := *p.ReplicaIncrementStep; step > 1 {
			c.report("spec.elasticPolicy", "allows more than %d sizes; it grows in steps of %d", v1alpha1.MaxSizes, step)
		}
	}
}

// run converts limits on failures and time.
func (c *converter) run(r *runPolicy) {
	c.spec.BackoffLimit, c.spec.ActiveDeadlineSeconds = cmp.Or(r.BackoffLimit, r.MaxRetries), r.ActiveDeadlineSeconds
	if seconds := r.RestartPolicy.ScaleUpSnooze; seconds != nil {
		c.spec.ElasticPolicy.MinStablePeriodSeconds = *seconds
		c.spec.ElasticPolicy.BackoffMaxSeconds = max(c.spec.ElasticPolicy.BackoffMaxSeconds, min(*seconds, v1alpha1.MaxBackoffSeconds))
	}
	if n := c.spec.BackoffLimit; n != nil && *n < 0 {
		c.report("spec.runPolicy", "has a negative number of retries; the default is used")
		c.spec.BackoffLimit = nil
	}
	if n := c.spec.ActiveDeadlineSeconds; n != nil && *n < 1 {
		c.report("spec.runPolicy.activeDeadlineSeconds", "must be 1 or more; ignored")
		c.spec.ActiveDeadlineSeconds = nil
	}
}

// rendezvous converts how the workers of a PyTorchJob find each other. An ElasticJob sets
// it itself.
func (c *converter) rendezvous(p *pyTorchElasticPolicy) {
	if p.Backend != "" && !strings.EqualFold(p.Backend, "c10d") {
		c.report("spec.elasticPolicy.rdzvBackend", "is %s; an ElasticJob uses c10d. Set PET_RDZV_BACKEND and PET_RDZV_ENDPOINT in the pods for another", document.Quote(p.Backend))
	}
	if p.Standalone {
		c.report("spec.elasticPolicy.standalone", "is ignored: the pods of an ElasticJob train together")
	}
	if p.MaxRestarts != nil {
		c.report("spec.elasticPolicy.maxRestarts", "is ignored: each change of size can end the workers, so that torchrun may restart them often. Set PET_MAX_RESTARTS in the pods to limit it")
	}
	var config []string
	for _, one := range p.Config {
		config = append(config, one.Key+"="+one.Value)
	}
	c.variable("PET_RDZV_CONF", strings.Join(config, ","))
}

// whole returns a number of processes as torchrun reads it.
func whole(n *intstr.IntOrString) string {
	if n == nil {
		return ""
	}
	return n.String()
}

// variable sets an environment variable of torchrun, unless a container has it.
func (c *converter) variable(name, value string) {
	if value == "" {
		return
	}
	containers := c.spec.Template.Spec.Containers
	for i := range containers {
		if !slices.ContainsFunc(containers[i].Env, func(v corev1.EnvVar) bool { return v.Name == name }) {
			containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
}

// finish returns the ElasticJob, and reports what is not converted.
func (c *converter) finish(h *header, report document.Report) (*v1alpha1.ElasticJob, governance.FieldErrors) {
	e, more := manifest.NewElasticJob(h.Metadata, c.spec, c.path)
	c.problems = append(c.problems, more...)
	for i := range e.Spec.Template.Spec.Containers {
		c.launcher(i, &e.Spec.Template.Spec.Containers[i])
	}
	if len(report.Opaque) > 0 {
		names := slices.Clone(report.Opaque)
		for i := range names {
			names[i] = strings.TrimPrefix(strings.TrimPrefix(names[i], c.path), ".")
		}
		slices.Sort(names)
		verb := "have"
		if len(names) == 1 {
			verb = "has"
		}
		c.problems.Addf(c.path, "%s %s no equivalent in an ElasticJob", strings.Join(names, ", "), verb)
	}
	return e, append(c.problems, report.Unreported(manifest.CheckElasticJob(e, c.path))...)
}

// hyperpodrun is HyperPod's launcher, which needs its operator. It may be in a shell command.
var (
	hyperpodrun = regexp.MustCompile(`(^|[\s/;&|("'])hyperpodrun($|[\s;&|)"'])`)
	ofOperator  = regexp.MustCompile(`(^|\s)--(nnodes|rdzv[-_]backend)[= ]\S+`)
)

// launcher replaces HyperPod's launcher, and reports arguments that do not work in an
// ElasticJob.
func (c *converter) launcher(i int, container *corev1.Container) {
	at := fmt.Sprintf("spec.template.spec.containers[%d]", i)
	has := func(is func(word string) bool) bool {
		return slices.ContainsFunc(container.Command, is) || slices.ContainsFunc(container.Args, is)
	}
	switch {
	case has(hyperpodrun.MatchString):
		container.Command, container.Args = withoutHyperpodrun(container.Command), withoutHyperpodrun(container.Args)
		c.report(at, "runs hyperpodrun, which needs HyperPod's operator: python3 -m kuota.elastic.run takes its place, without --nnodes and --rdzv-backend. Its image needs the package kuota")
	case has(func(w string) bool { return strings.Contains(w, "--nnodes") }):
		c.report(at, "sets --nnodes, which replaces the minimum and the maximum: remove it")
	}
}

// withoutHyperpodrun returns words of a command that start torchrun's equal in package kuota.
func withoutHyperpodrun(words []string) (changed []string) {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case path.Base(word) == "hyperpodrun":
			changed = append(changed, "python3", "-m", "kuota.elastic.run")
		case hyperpodrun.MatchString(word): // of a shell
			changed = append(changed, ofOperator.ReplaceAllString(hyperpodrun.ReplaceAllString(word, "${1}python3 -m kuota.elastic.run$2"), ""))
		case ofOperator.MatchString(word):
		case ofOperator.MatchString(word + " x"): // its value is the next word
			i++
		default:
			changed = append(changed, word)
		}
	}
	return changed
}

// Opaque fields have no equivalent in an ElasticJob.

// header is the part that all jobs share.
type header struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   manifest.JobMetadata `json:"metadata"`
	Status     document.Opaque      `json:"status"`
}

// hyperPodJob is a HyperPodPyTorchJob.
type hyperPodJob struct {
	header `json:",inline"`
	Spec   struct {
		NProcPerNode  *intstr.IntOrString    `json:"nprocPerNode"`
		ReplicaSpecs  []replicas             `json:"replicaSpecs"`
		RunPolicy     runPolicy              `json:"runPolicy"`
		ElasticPolicy v1alpha1.ElasticPolicy `json:"elasticPolicy"`
		ScaleConfig   []v1alpha1.ScaleConfig `json:"scaleConfig"`
		LogMonitoring document.Opaque        `json:"logMonitoringConfiguration"`
	} `json:"spec"`
}

// replicas is a group of equal pods.
type replicas struct {
	Name          string                 `json:"name"`
	Replicas      *int32                 `json:"replicas"`
	MaxReplicas   *int32                 `json:"maxReplicas"`
	RestartPolicy corev1.RestartPolicy   `json:"restartPolicy"`
	Spares        document.Opaque        `json:"spares"`
	Template      corev1.PodTemplateSpec `json:"template"`
}

type runPolicy struct {
	BackoffLimit          *int32          `json:"backoffLimit"`
	MaxRetries            *int32          `json:"jobMaxRetryCount"`
	ActiveDeadlineSeconds *int64          `json:"activeDeadlineSeconds"`
	CleanPodPolicy        document.Opaque `json:"cleanPodPolicy"`
	TTL                   document.Opaque `json:"ttlSecondsAfterFinished"`
	Suspend               document.Opaque `json:"suspend"` // Kueue sets it
	ManagedBy             document.Opaque `json:"managedBy"`
	SchedulingPolicy      document.Opaque `json:"schedulingPolicy"`
	WorkloadMode          document.Opaque `json:"workloadMode"`
	RestartPolicy         struct {
		// ScaleUpSnooze is how long a job does not grow after a restart.
		ScaleUpSnooze *int32          `json:"scaleUpSnoozeTimeInSeconds"`
		Restarts      document.Opaque `json:"numRestartBeforeFullJobRestart"`
		MaxRestarts   document.Opaque `json:"maxFullJobRestarts"`
		EvalPeriod    document.Opaque `json:"evalPeriodSeconds"`
	} `json:"restartPolicy"`
}

// pyTorchJob is a PyTorchJob of Kubeflow.
type pyTorchJob struct {
	header `json:",inline"`
	Spec   struct {
		NProcPerNode *intstr.IntOrString `json:"nprocPerNode"`
		ReplicaSpecs struct {
			Master *replicas `json:"Master"`
			Worker *replicas `json:"Worker"`
		} `json:"pytorchReplicaSpecs"`
		RunPolicy     runPolicy            `json:"runPolicy"`
		ElasticPolicy pyTorchElasticPolicy `json:"elasticPolicy"`
	} `json:"spec"`
}

type pyTorchElasticPolicy struct {
	MinReplicas  *int32              `json:"minReplicas"`
	MaxReplicas  *int32              `json:"maxReplicas"`
	NProcPerNode *intstr.IntOrString `json:"nProcPerNode"`
	Backend      string              `json:"rdzvBackend"`
	Config       []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"rdzvConf"`
	Standalone  bool            `json:"standalone"`
	MaxRestarts *int32          `json:"maxRestarts"`
	Port        document.Opaque `json:"rdzvPort"`
	Host        document.Opaque `json:"rdzvHost"`
	ID          document.Opaque `json:"rdzvId"`
	Metrics     document.Opaque `json:"metrics"`
}
