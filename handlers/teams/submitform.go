package teams

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/forms"

	corev1 "k8s.io/api/core/v1"
)

// submitForm contains the form that submits a task, as typed.
type submitForm struct {
	id                         string // of the form, so that sending it twice creates one task
	submitted, resumed         bool
	verify                     bool // simulate it with Kueue's scheduler
	name, kind, share, class   string
	priority                   string // a number, in place of the class
	pool, pods                 string
	accelerators, vcpu, memory string
	profile, count             string
	image, command, least      string
	script, scriptProblem      string // as sent, and why it cannot be read
	limit                      string // how long it may run
	elastic, max, step, sizes  string // of an elastic task, whose minimum is pods
	graceful, scaling          string // in seconds, as the next
	faulty, rest, longest      string
	scale                      string // SIZE NAME=value, one in each line
	env, secrets, volumes      string // one in each line
	shm, account               string // GiB of shared memory, and the service account
	processes, tries           string
	array, after               string   // FIRST-LAST%AT_ONCE, and names of tasks with spaces between
	others                     []string // pools that it may also run in
	serves
	servingInputs
	provisionInputs
}

// emptySubmitForm returns the initial form: one pod, in the first pool of the queue,
// of the lowest priority class, which preempts no other task.
func emptySubmitForm(t submit.Team) submitForm {
	form := submitForm{id: rand.Text(), pods: "1"}
	if kinds := kindChoices(t); len(kinds) > 0 {
		form.kind = string(kinds[0])
	}
	if len(t.Pools) > 0 {
		form.pool = t.Pools[0].Name
	}
	if n := len(t.Classes); n > 0 {
		form.class = t.Classes[n-1].Name
	}
	return form
}

// otherPools is the name of the checkboxes of further pools; at most maxOtherPools are read.
const (
	otherPools    = "other-pools"
	maxOtherPools = 100
)

func readSubmitForm(values url.Values, service serves) submitForm {
	form := submitForm{serves: service}
	if service != "" {
		form.pods = "1" // where its form has no input for them
	}
	form.read(values)
	form.id, form.submitted = values.Get("request-id"), values.Get("submitted") == "true"
	return form
}

// inputs returns the inputs of the form by name.
func (f *submitForm) inputs() map[string]*string {
	all := map[string]*string{
		"name": &f.name, "kind": &f.kind, "share": &f.share, "class": &f.class, "priority": &f.priority, "pool": &f.pool, "pods": &f.pods, "accelerators": &f.accelerators, "vcpu": &f.vcpu, "memory": &f.memory,
		"profile": &f.profile, "count": &f.count, "image": &f.image, "command": &f.command, "least": &f.least, "limit": &f.limit,
		"elastic": &f.elastic, "max": &f.max, "step": &f.step, "sizes": &f.sizes, "graceful": &f.graceful, "scaling": &f.scaling,
		"faulty": &f.faulty, "rest": &f.rest, "longest-rest": &f.longest, "scale": &f.scale,
		"env": &f.env, "secrets": &f.secrets, "volumes": &f.volumes, "shm": &f.shm, "account": &f.account, "processes": &f.processes, "tries": &f.tries, "array": &f.array, "after": &f.after,
	}
	maps.Copy(all, f.servingInputs.inputs())
	maps.Copy(all, f.provisionInputs.inputs())
	return all
}

// read copies the values of inputs.
func (f *submitForm) read(values url.Values) {
	for name, input := range f.inputs() {
		if values.Has(name) {
			*input = strings.TrimSpace(values.Get(name))
		}
	}
	if values.Has("script") || values.Has("script-file") {
		f.script, f.scriptProblem = forms.Script(values)
	}
	if chosen := values[otherPools]; len(chosen) <= maxOtherPools {
		f.others = chosen
	}
}

// kindChoices returns the kinds that the user can choose. An ElasticJob is a Job that is
// elastic.
func kindChoices(t submit.Team) []submit.Kind {
	return slices.DeleteFunc(slices.Clone(t.Kinds), func(k submit.Kind) bool { return k == submit.ElasticJob })
}

// isElastic reports whether the task is elastic: of the kinds that can be chosen only a Job
// can be.
func (f *submitForm) isElastic() bool { return f.elastic == "true" && f.isJob() }

func (f *submitForm) isJob() bool {
	return f.serves == "" && (f.kind == "" || f.kind == string(submit.Job))
}

// do runs the action of a button of the form.
func (f *submitForm) do(action string) {
	if input, ok := strings.CutPrefix(action, "reset:"); ok {
		if value := f.inputs()[input]; value != nil {
			*value = ""
		}
	}
	f.submitted = f.submitted || action == "save"
}

// request parses the form. Inputs that cannot be parsed are returned as errors, and
// left out.
func (f *submitForm) request(t submit.Team) (submit.Request, []governance.FieldError) {
	var wrong governance.FieldErrors
	r := submit.Request{Name: f.name, Kind: submit.Kind(f.kind), Share: f.share, Class: f.class, Pool: f.pool, Image: f.image, Command: f.command, Script: f.script}
	wrong.Add("script", f.scriptProblem)
	whole := func(path, text string, least, most int64) *int64 {
		if text == "" {
			return nil
		}
		n, problem := forms.ParseWhole(text, least, most)
		wrong.Add(path, problem)
		return &n
	}
	if number := whole("priority", f.priority, 0, desired.MaxNumber); number != nil {
		r.Class = desired.NumberClass(int(*number))
	}
	if pods := whole("pods", f.pods, 1, 10_000); pods != nil {
		r.Pods = int32(*pods)
	}
	if f.limit != "" {
		var problem string
		r.TimeLimit, problem = forms.ParseTimeLimit(f.limit)
		wrong.Add("timeLimit", problem)
	}
	for _, name := range f.others {
		if name != f.pool {
			r.OtherPools = append(r.OtherPools, name)
		}
	}
	if f.isElastic() {
		r.Elastic, r.ScaleConfig = f.policy(&wrong), f.scaleConfig(&wrong)
	} else if least := whole("least", f.least, 1, 10_000); least != nil && f.isJob() {
		r.MinPods = int32(*least)
	}
	if f.array != "" && f.serves == "" {
		var problem string
		r.Array, problem = submit.ParseArray(f.array)
		wrong.Add("array", problem)
	}
	r.Runtime = f.runtime(&wrong)
	if f.serves != "" {
		f.serving(&r, &wrong)
	}
	var problem string
	r.PerPod.Accelerators = whole("accelerators", f.accelerators, 0, 10_000)
	r.PerPod.VCPU, problem = forms.ParseVCPU(f.vcpu)
	wrong.Add("vCPU", problem)
	r.PerPod.Memory, problem = forms.ParseGiB(f.memory)
	wrong.Add("memory", problem)
	if f.profile != "" {
		r.PerPod.Partition = &v1alpha1.Partition{Profile: f.profile, Count: 1}
		if count := whole("partition.count", f.count, 0, 10_000); count != nil {
			r.PerPod.Partition.Count = *count
		}
	}
	return r, wrong
}

// policy parses the sizes and timeouts of an elastic task.
func (f *submitForm) policy(wrong *governance.FieldErrors) *v1alpha1.ElasticPolicy {
	p := v1alpha1.DefaultElasticPolicy()
	whole := func(value *int32, field, text string, least, most int64) {
		if text == "" {
			return
		}
		n, problem := forms.ParseWhole(text, least, most)
		if wrong.Add("elastic."+field, problem); problem == "" {
			*value = int32(n)
		}
	}
	whole(&p.MaxReplicas, "maxReplicas", f.max, 1, v1alpha1.MaxReplicas)
	if f.step != "" {
		p.ReplicaIncrementStep = new(int32(1))
		whole(p.ReplicaIncrementStep, "replicaIncrementStep", f.step, 1, v1alpha1.MaxReplicas)
	}
	for _, text := range strings.FieldsFunc(f.sizes, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }) {
		size := int32(1)
		whole(&size, "replicaDiscreteValues", text, 1, v1alpha1.MaxReplicas)
		p.ReplicaDiscreteValues = append(p.ReplicaDiscreteValues, size)
	}
	whole(&p.GracefulShutdownTimeoutInSeconds, "gracefulShutdownTimeoutInSeconds", f.graceful, 0, v1alpha1.MaxTimeoutSeconds)
	whole(&p.ScalingTimeoutInSeconds, "scalingTimeoutInSeconds", f.scaling, 0, v1alpha1.MaxTimeoutSeconds)
	whole(&p.FaultyScaleDownTimeoutInSeconds, "faultyScaleDownTimeoutInSeconds", f.faulty, 0, v1alpha1.MaxTimeoutSeconds)
	whole(&p.MinStablePeriodSeconds, "minStablePeriodSeconds", f.rest, 0, v1alpha1.MaxTimeoutSeconds)
	whole(&p.BackoffMaxSeconds, "backoffMaxSeconds", f.longest, 0, v1alpha1.MaxBackoffSeconds)
	if f.longest == "" {
		p.BackoffMaxSeconds = max(p.BackoffMaxSeconds, p.MinStablePeriodSeconds)
	}
	f.provisionInputs.set(&p, whole)
	return &p
}

// scaleConfig parses the variables of sizes.
func (f *submitForm) scaleConfig(wrong *governance.FieldErrors) []v1alpha1.ScaleConfig {
	config, problems := forms.ScaleConfig(f.scale)
	for _, problem := range problems {
		wrong.Add("elastic.scaleConfig", problem)
	}
	return config
}

// submitInput is an input of the form. path is that of its value in a request, and label is
// for the summary of errors.
type submitInput struct{ path, id, label string }

// submitInputs are the inputs in the order of the forms.
var submitInputs = []submitInput{
	{"name", "name", "Name"}, {"kind", "kind", "Kind"}, {"replicas", "replicas", "Replicas"}, {"pods", "pods", "Pods"}, {"elastic.minReplicas", "pods", "Pods"},
	{"pool", "pool", "Pool"}, {"class", "class", "Priority class"}, {"priority", "priority", "Priority"}, {"share", "share", "Share"}, {"otherPools", otherPools, "Or any of"},
	{"accelerators", "accelerators", "Accelerators"}, {"vCPU", "vcpu", "vCPU"}, {"memory", "memory", "Memory"},
	{"partition", "profile", "Parts of GPUs"}, {"partition.profile", "profile", "Profile"}, {"partition.count", "count", "How many parts"},
	{"image", "image", "Image"}, {"command", "command", "Command"}, {"least", "least", "Fewest pods"}, {"port", "port", "Port"}, {"timeLimit", "limit", "Time limit"},
	{"home", "home", "Existing claim"}, {"homeSize", "home-size", "Size of a new claim"}, {"homePath", "home-path", "Home mounted at"},
	{"script", "script", "Script"},
	{"env", "env", "Environment"}, {"secrets", "secrets", "From Secrets"}, {"volumes", "volumes", "Volumes"}, {"sharedMemory", "shm", "Shared memory"},
	{"serviceAccount", "account", "Service account"}, {"processes", "processes", "Processes per pod"}, {"tries", "tries", "Tries"}, {"array", "array", "Array"}, {"after", "after", "Start after"},
	{"elastic", "elastic", "Elastic"}, {"elastic.maxReplicas", "max", "Maximum pods"}, {"elastic.replicaIncrementStep", "step", "Step"},
	{"elastic.replicaDiscreteValues", "sizes", "Allowed sizes"}, {"elastic.scalingTimeoutInSeconds", "scaling", "Grows after"},
	{"elastic.gracefulShutdownTimeoutInSeconds", "graceful", "Grace period"}, {"elastic.faultyScaleDownTimeoutInSeconds", "faulty", "Faulty pods"},
	{"elastic.minStablePeriodSeconds", "rest", "Rest"}, {"elastic.backoffMaxSeconds", "longest-rest", "Longest rest"}, {"elastic.scaleConfig", "scale", "Variables by size"},
	{"elastic.growth", "growth", "Ask for nodes"}, {"elastic.maxUnscheduledReplicas", "unscheduled", "Pods that wait"}, {"elastic.provisionTimeoutInSeconds", "provision", "Withdrawn after"},
}

// inputOf returns the input with the value at a path, and its index in submitInputs; -1 for
// none.
func inputOf(path string) (input submitInput, index int) {
	index = slices.IndexFunc(submitInputs, func(i submitInput) bool { return i.path == path })
	if index >= 0 {
		input = submitInputs[index]
	}
	return input, index
}

// formError returns the error that the form shows for err; nil for an internal
// error, or one that has a page of its own.
func formError(err error) *governance.Error {
	var ours *governance.Error
	if !errors.As(err, &ours) {
		return nil
	}
	switch ours.Kind {
	case governance.Invalid, governance.Unavailable, governance.Forbidden, governance.Exists, governance.Conflict:
		return ours
	}
	return nil
}

// runtime parses what containers get besides resources. Lists have one entry in each line.
func (f *submitForm) runtime(wrong *governance.FieldErrors) (r submit.Runtime) {
	r.ServiceAccount = f.account
	forms.EachLine(f.env, func(n int, line string) {
		name, value, found := strings.Cut(line, "=")
		if !found {
			wrong.Add("env", fmt.Sprintf("line %d has no =; write NAME=value", n))
			return
		}
		r.Env = append(r.Env, corev1.EnvVar{Name: strings.TrimSpace(name), Value: value})
	})
	forms.EachLine(f.secrets, func(n int, line string) {
		name, from, found := strings.Cut(line, "=")
		secret, key, keyed := strings.Cut(from, "/")
		switch {
		case !found && !strings.Contains(line, "/"):
			r.EnvFrom = append(r.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: line}}})
		case !found || !keyed:
			wrong.Add("secrets", fmt.Sprintf("line %d is neither NAME=secret/key nor the name of a Secret", n))
		default:
			r.Env = append(r.Env, corev1.EnvVar{Name: strings.TrimSpace(name), ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: strings.TrimSpace(secret)}, Key: strings.TrimSpace(key),
			}}})
		}
	})
	forms.EachLine(f.volumes, func(n int, line string) {
		at, claim, found := strings.Cut(line, "=")
		if !found {
			wrong.Add("volumes", fmt.Sprintf("line %d has no =; write /path=claim", n))
			return
		}
		claim, readOnly := strings.CutSuffix(strings.TrimSpace(claim), ":ro")
		at = strings.TrimSpace(at)
		if path.IsAbs(at) {
			at = path.Clean(at)
		}
		r.Volumes = append(r.Volumes, submit.ClaimMount{Path: at, Claim: claim, ReadOnly: readOnly})
	})
	var problem string
	r.SharedMemory, problem = forms.ParseGiB(f.shm)
	wrong.Add("sharedMemory", problem)
	count := func(path, text string) int32 {
		if text == "" {
			return 0
		}
		n, problem := forms.ParseWhole(text, 1, 1000)
		wrong.Add(path, problem)
		return int32(n)
	}
	r.Processes = count("processes", f.processes)
	if !f.isElastic() {
		r.Tries = count("tries", f.tries)
	}
	return r
}
