package teams

import (
	"fmt"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/forms"

	"github.com/labstack/echo/v4"
	"k8s.io/apimachinery/pkg/api/resource"
)

// formOf returns the form with the values of a request. What an input cannot hold, such as
// a command of several lines, is left out.
func formOf(t submit.Team, r submit.Request) submitForm {
	f := emptySubmitForm(t)
	whole := func(n int32) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(int(n))
	}
	amount := func(name string, q *resource.Quantity) string {
		if q == nil {
			return ""
		}
		return quota.Number(name, resources.AmountFromQuantity(name, *q))
	}
	f.name, f.kind, f.share, f.class, f.pool, f.others, f.image = r.Name, string(r.Kind), r.Share, r.Class, r.Pool, r.OtherPools, r.Image
	if desired.IsNumber(r.Class) {
		f.class, f.priority = emptySubmitForm(t).class, format.ClassName(r.Class)
	}
	f.script = r.Script
	f.pods, f.least, f.elastic = strconv.Itoa(int(r.Pods)), whole(r.MinPods), ""
	if !strings.Contains(r.Command, "\n") {
		f.command = r.Command
	}
	if r.TimeLimit > 0 {
		f.limit = describe.Seconds(&r.TimeLimit)
	}
	if n := r.PerPod.Accelerators; n != nil {
		f.accelerators = strconv.FormatInt(*n, 10)
	}
	f.vcpu, f.memory = amount(catalog.CPU, r.PerPod.VCPU), amount(catalog.Memory, r.PerPod.Memory)
	if part := r.PerPod.Partition; part != nil {
		f.profile, f.count = part.Profile, strconv.FormatInt(part.Count, 10)
	}
	if a := r.Array; a != nil {
		if f.array = fmt.Sprintf("%d-%d", a.First, a.Last); a.AtOnce > 0 {
			f.array += fmt.Sprintf("%%%d", a.AtOnce)
		}
	}
	if e := r.Elastic; e != nil {
		f.kind, f.elastic, f.pods, f.max = string(submit.Job), "true", strconv.Itoa(int(e.MinReplicas)), whole(e.MaxReplicas)
		if e.ReplicaIncrementStep != nil {
			f.step = whole(*e.ReplicaIncrementStep)
		}
		var sizes []string
		for _, size := range e.ReplicaDiscreteValues {
			sizes = append(sizes, whole(size))
		}
		f.sizes = strings.Join(sizes, ", ")
		f.scale = forms.ScaleText(r.ScaleConfig)
		initial := v1alpha1.DefaultElasticPolicy()
		unless := func(initial, n int32) string {
			if n == initial {
				return ""
			}
			return strconv.Itoa(int(n))
		}
		f.graceful = unless(initial.GracefulShutdownTimeoutInSeconds, e.GracefulShutdownTimeoutInSeconds)
		f.scaling = unless(initial.ScalingTimeoutInSeconds, e.ScalingTimeoutInSeconds)
		f.faulty = unless(initial.FaultyScaleDownTimeoutInSeconds, e.FaultyScaleDownTimeoutInSeconds)
		f.rest = unless(initial.MinStablePeriodSeconds, e.MinStablePeriodSeconds)
		f.longest = unless(max(initial.BackoffMaxSeconds, e.MinStablePeriodSeconds), e.BackoffMaxSeconds)
		f.provisionInputs.express(e)
	}
	f.expressRuntime(r.Runtime)
	for _, input := range f.inputs() {
		*input = strings.TrimSpace(*input)
	}
	return f
}

func (f *submitForm) expressRuntime(r submit.Runtime) {
	var env, secrets, volumes []string
	for _, v := range r.Env {
		if v.ValueFrom == nil {
			env = append(env, v.Name+"="+v.Value)
			continue
		}
		ref := v.ValueFrom.SecretKeyRef
		secrets = append(secrets, v.Name+"="+ref.Name+"/"+ref.Key)
	}
	for _, from := range r.EnvFrom {
		secrets = append(secrets, from.SecretRef.Name)
	}
	for _, v := range r.Volumes {
		line := v.Path + "=" + v.Claim
		if v.ReadOnly {
			line += ":ro"
		}
		volumes = append(volumes, line)
	}
	f.env, f.secrets, f.volumes, f.account = strings.Join(env, "\n"), strings.Join(secrets, "\n"), strings.Join(volumes, "\n"), r.ServiceAccount
	if r.SharedMemory != nil {
		f.shm = quota.Number(catalog.Memory, resources.AmountFromQuantity(catalog.Memory, *r.SharedMemory))
	}
	if r.Processes > 0 {
		f.processes = strconv.Itoa(int(r.Processes))
	}
	if r.Tries > 0 {
		f.tries = strconv.Itoa(int(r.Tries))
	}
}

// express returns the form that submits the object of a manifest; missed are the paths of
// what it cannot express.
func (h *Pages) express(c echo.Context, t submit.Team, p submit.Plan) (f submitForm, missed []string, err error) {
	f = formOf(t, p.Express())
	request, wrong := f.request(t)
	plan, more := t.Plan(request)
	for _, w := range append(wrong, more...) {
		input, _ := inputOf(w.Path)
		missed = append(missed, strings.TrimPrefix(input.label+": "+w.Message, ": "))
	}
	if len(missed) > 0 {
		return f, missed, nil
	}
	missed, err = h.Submit.Differences(c.Request().Context(), console.UserOf(c), plan, p)
	return f, missed, err
}
