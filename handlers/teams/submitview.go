package teams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/submit"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	teamviews "kuota.dev/kuota/views/teams"

	"github.com/labstack/echo/v4"
)

// submitView renders the form with the typed values, defaults, the verdict on the
// task, and its manifests. refused is the reason why it was not submitted.
func (h *Pages) submitView(c echo.Context, t submit.Team, f submitForm, refused *governance.Error) (teamviews.SubmitForm, error) {
	view := teamviews.SubmitForm{Action: f.serves.url(t.Name), RequestID: f.id, User: console.UserOf(c).Name, Submitted: f.submitted, Resumed: f.resumed}
	request, wrong := f.request(t)
	plan, more := t.Plan(request)
	fits, known := len(wrong) == 0 && len(more) == 0, t.Namespace != ""
	switch {
	case !known: // the cluster does not answer, so that nothing can be validated
		more = nil
	case f.submitted:
		_, more = t.Complete(request)
	}
	for _, w := range more { // each parse error is shown once
		if !hasError(wrong, w.Path) {
			wrong = append(wrong, w)
		}
	}
	if fits && f.name != "" && refused == nil && h.Submit.Taken(t, plan.Kind, f.name) {
		wrong = append(wrong, governance.FieldError{Path: "name", Message: "there is a task of that name already; choose another name"})
	}
	if refused != nil {
		view.Failure = refused.Message
		if len(refused.Fields) > 0 {
			view.Failure = ""
		}
		for _, w := range refused.Fields {
			if w.Path == "" || !hasError(wrong, w.Path) {
				wrong = append(wrong, w)
			}
		}
	}
	may, shown := f.serves.may(t)
	if f.serves == "" {
		view.ManifestURL, view.TemplatesURL = urls.TeamManifest(t.Name), urls.TeamTemplates(t.Name)
	}
	view.CanElastic = f.serves == "" && (!known || t.MaySubmitElastic())
	errs := map[string]string{}
	slices.SortStableFunc(wrong, func(a, b governance.FieldError) int {
		_, i := inputOf(a.Path)
		_, j := inputOf(b.Path)
		return cmp.Compare(i, j)
	})
	for _, w := range wrong {
		input, _ := inputOf(w.Path)
		if input.id == "" || errs[input.id] == "" {
			view.Errors = append(view.Errors, views.Message{Field: input.id, Label: input.label, Text: format.Sentence(w.Message)})
		}
		if input.id != "" && errs[input.id] == "" {
			errs[input.id] = format.Sentence(w.Message)
		}
	}
	if !f.submitted { // no summary of errors while the user types
		view.Errors = nil
	}
	f.fill(&view, t, request, errs)
	switch {
	case !known:
		view.Manifests.Lead, view.Verdict = "Manifests appear once the cluster answers.", unknownVerdict
		return view, nil
	case !shown:
		view.Manifests.Lead = "You cannot create it here, so there are no manifests."
		if f.serves == "" {
			view.Manifests.Lead = "You cannot create tasks of any kind here, so there are no manifests."
		}
		return view, nil
	case len(t.Pools) == 0:
		view.Manifests.Lead = "The team's queue has no pool yet: its allocation is not ready, or has no quota. Manifests appear once it has one."
		return view, nil
	case !fits:
		view.Manifests.Lead = "Fix the marked fields to see the manifests."
		return view, nil
	}
	manifests, err := manifestsOf(plan, may)
	if err != nil {
		return view, err
	}
	view.Manifests = manifests
	if !may {
		return view, nil
	}
	check := h.Submit.Check
	if f.verify {
		check = h.Submit.Verify
	}
	verdict, err := check(c.Request().Context(), console.UserOf(c), plan)
	switch {
	case console.Unavailable(err):
		view.Verdict = unknownVerdict
	case err != nil:
		return view, err
	default:
		view.Verdict = verdictOf(verdict, plan)
		view.Verdict.Verify = !f.verify
	}
	return view, nil
}

// unknownVerdict is shown while the cluster does not answer.
var unknownVerdict = &teamviews.SubmitVerdict{Tone: "idle", Headline: "Nothing can be said now.", Text: "The cluster cannot be reached, or has not answered yet."}

func hasError(wrong []governance.FieldError, path string) bool {
	return slices.ContainsFunc(wrong, func(w governance.FieldError) bool { return w.Path == path })
}

// fill sets the inputs of the view from the typed and the default values.
func (f *submitForm) fill(view *teamviews.SubmitForm, t submit.Team, r submit.Request, errs map[string]string) {
	text := func(id, value string) views.TextField { return views.TextField{Value: value, Error: errs[id]} }
	view.Name, view.Pods, view.Image, view.Command, view.Least = text("name", f.name), text("pods", f.pods), text("image", f.image), text("command", f.command), text("least", f.least)
	view.Profile, view.Count, view.Elastic = text("profile", f.profile), text("count", f.count), f.isElastic()
	amount := func(id, value string) views.AmountField { return views.AmountField{TextField: text(id, value)} }
	view.Max, view.Step, view.Sizes = amount("max", f.max), amount("step", f.step), text("sizes", f.sizes)
	view.Graceful, view.Scaling = amount("graceful", f.graceful), amount("scaling", f.scaling)
	view.Faulty, view.Rest, view.LongestRest, view.Scale = amount("faulty", f.faulty), amount("rest", f.rest), amount("longest-rest", f.longest), text("scale", f.scale)
	view.Provision = f.provisionInputs.view(errs)
	view.Script, view.MayScript = text("script", f.script), t.MayScript || t.Namespace == ""
	f.fillElastic(view, r)
	if f.serves != "" {
		f.fillServing(view, t, r, text)
	}
	view.Env, view.Secrets, view.Volumes = text("env", f.env), text("secrets", f.secrets), text("volumes", f.volumes)
	view.SharedMemory, view.Account, view.Processes, view.Tries.TextField = text("shm", f.shm), text("account", f.account), text("processes", f.processes), text("tries", f.tries)
	view.Array, view.After = text("array", f.array), text("after", f.after)
	view.Kind = views.SelectField{Error: errs["kind"]}
	if f.serves == "" {
		for _, kind := range kindChoices(t) {
			choose(&view.Kind, f.kind, string(kind), string(kind))
		}
		keep(&view.Kind, f.kind)
	}
	view.Share = views.SelectField{Error: errs["share"]}
	if len(t.Shares) > 0 || f.share != "" {
		none, kind := "None: the team's queue", f.kind
		if r.Serving != nil {
			kind = string(r.Serving.Kind(r.Pods))
		}
		for _, s := range t.Shares {
			if slices.Contains(s.Kinds, kind) {
				none = s.Name + ", for each " + kind
			}
		}
		choose(&view.Share, f.share, "", none)
		for _, s := range t.Shares {
			choose(&view.Share, f.share, s.Name, s.Name)
		}
		keep(&view.Share, f.share)
	}
	view.Tries.Hint = triesHint(f.kind)
	if f.array != "" {
		view.Tries.Hint = "An index fails after so many failed pods. Empty means 1."
	}
	view.Class, view.Pool = views.SelectField{Error: errs["class"]}, views.SelectField{Error: errs["pool"]}
	choose(&view.Class, f.class, "", "No priority class")
	for _, class := range t.Classes {
		choose(&view.Class, f.class, class.Name, fmt.Sprintf("%s · %d", format.ClassName(class.Name), class.Priority))
	}
	if len(t.Numbers) > 0 || f.priority != "" {
		view.Priority = &views.TextField{Value: f.priority, Error: errs["priority"]}
	}
	var pool *submit.QueuePool
	for i := range t.Pools {
		choose(&view.Pool, f.pool, t.Pools[i].Name, t.Pools[i].Name)
		if t.Pools[i].Name == f.pool {
			pool = &t.Pools[i]
		}
	}
	view.OtherPools = views.SelectField{Error: errs[otherPools]}
	for _, name := range f.others { // those that are no pools of the team any more, to remove them
		if name != f.pool && !slices.ContainsFunc(t.Pools, func(p submit.QueuePool) bool { return p.Name == name }) {
			view.OtherPools.Options = append(view.OtherPools.Options, views.Option{Value: name, Label: name, Selected: true})
		}
	}
	for _, p := range t.Pools {
		if p.Name != f.pool {
			view.OtherPools.Options = append(view.OtherPools.Options, views.Option{Value: p.Name, Label: p.Name, Selected: slices.Contains(f.others, p.Name)})
		}
	}
	view.Limit = views.AmountField{TextField: text("limit", f.limit)}
	class, _ := t.Class(cmp.Or(r.Class, f.class))
	if class.MaximumTimeLimit > 0 {
		view.LongestLimit = describe.Seconds(&class.MaximumTimeLimit)
	}
	if class.DefaultTimeLimit > 0 {
		view.Limit.Default = describe.Seconds(&class.DefaultTimeLimit)
	}
	keep(&view.Class, f.class)
	keep(&view.Pool, f.pool)
	view.Unit = "Accelerators"
	view.Accelerators, view.VCPU, view.Memory = views.AmountField{TextField: text("accelerators", f.accelerators)}, views.AmountField{TextField: text("vcpu", f.vcpu)}, views.AmountField{TextField: text("memory", f.memory)}
	if pool == nil {
		return
	}
	resource := pool.Instance.AcceleratorResource
	if resource != "" {
		view.Unit = quota.Unit(resource, 2)
		view.Partitions = pool.Instance.Partitions
	}
	pools := []submit.QueuePool{*pool}
	for _, p := range t.Pools {
		if slices.Contains(r.OtherPools, p.Name) {
			pools = append(pools, p)
		}
	}
	without := func(name string, clear func(*v1alpha1.Quantities)) string {
		each := r.PerPod
		clear(&each)
		gets, wrong := submit.FillAny(each, r.Pods, pools...)
		if len(wrong) > 0 || name == "" {
			return ""
		}
		return quota.Number(name, gets[name])
	}
	view.Accelerators.Default = without(resource, func(a *v1alpha1.Quantities) { a.Accelerators = nil })
	view.VCPU.Default = without(catalog.CPU, func(a *v1alpha1.Quantities) { a.VCPU = nil })
	view.Memory.Default = without(catalog.Memory, func(a *v1alpha1.Quantities) { a.Memory = nil })
	view.NodeCapacity = nodeWords(*pool)
}

// fillElastic sets the defaults of an elastic task.
func (f *submitForm) fillElastic(view *teamviews.SubmitForm, r submit.Request) {
	typed := v1alpha1.DefaultElasticPolicy()
	if r.Elastic != nil {
		typed = *r.Elastic
	}
	whole := func(n int32) string { return strconv.Itoa(int(n)) }
	initial := v1alpha1.DefaultElasticPolicy()
	view.Graceful.Default, view.Scaling.Default, view.Faulty.Default = whole(initial.GracefulShutdownTimeoutInSeconds), whole(initial.ScalingTimeoutInSeconds), whole(initial.FaultyScaleDownTimeoutInSeconds)
	view.Rest.Default, view.LongestRest.Default = whole(initial.MinStablePeriodSeconds), whole(max(initial.BackoffMaxSeconds, typed.MinStablePeriodSeconds))
	if r.Pods < 1 {
		return
	}
	without := typed
	without.ReplicaIncrementStep = nil
	if filled := submit.FillElastic(without, r.Pods); filled.ReplicaIncrementStep != nil {
		view.Step.Default = whole(*filled.ReplicaIncrementStep)
	}
	without = typed
	without.MaxReplicas = 0
	view.Max.Default = whole(submit.FillElastic(without, r.Pods).MaxReplicas)
}

// nodeWords describes what a node of a pool has for pods.
func nodeWords(pool submit.QueuePool) string {
	largest := submit.LargestNode(pool.Nodes, quota.Resources{pool.Instance.AcceleratorResource: 1, catalog.CPU: 1, catalog.Memory: 1})
	switch {
	case largest == nil:
		return "There is no node of " + pool.Name + " now."
	case len(pool.Nodes) == 1:
		return fmt.Sprintf("The one node of %s has %s for pods.", pool.Name, nodeAmounts(largest))
	}
	return fmt.Sprintf("The largest of %d nodes of %s has %s for pods.", len(pool.Nodes), pool.Name, nodeAmounts(largest))
}

// nodeAmounts formats the resources of a node that quota counts, in whole GiB.
func nodeAmounts(node quota.Resources) string {
	counted := maps.Clone(node)
	counted[catalog.Memory] = counted[catalog.Memory].Minus(counted[catalog.Memory] % catalog.GiB)
	return format.Amounts(counted)
}

func choose(s *views.SelectField, chosen, value, label string) {
	s.Options = append(s.Options, views.Option{Value: value, Label: label, Selected: value == chosen})
}

// keep adds the chosen value to a select field if it is not among the choices any
// more.
func keep(s *views.SelectField, chosen string) {
	if !slices.ContainsFunc(s.Options, func(o views.Option) bool { return o.Value == chosen }) {
		choose(s, chosen, chosen, chosen)
	}
}

// triesHint describes what a failed pod of a kind does without a number of tries.
func triesHint(kind string) string {
	switch submit.Kind(kind) {
	case submit.PyTorchJob:
		return "The task fails after so many failed pods. Empty means without limit."
	case submit.RayJob:
		return "The task fails after so many tries. Empty means 1."
	}
	return "The task fails after so many failed pods. Empty means 7."
}

// manifestsOf returns the manifests that submit the task with kubectl: that of its kind, or,
// if the console cannot submit it, those of all kinds.
func manifestsOf(p submit.Plan, may bool) (teamviews.SubmitManifests, error) {
	if p.Serving != nil {
		return serviceManifests(p)
	}
	m := teamviews.SubmitManifests{Lead: "Save one as a file for " + p.Kubectl() + ", or paste the command."}
	if p.Name == "" || p.Image == "" {
		m.Lead += " Put your own name and image into it first."
	}
	if !p.Team.KindsKnown {
		m.Lead += " Which kinds Kueue manages here beside Job is not known to this console."
	}
	one, err := p.Manifest()
	all := []submit.Manifest{one}
	if err == nil && !may {
		all, err = p.Manifests()
	}
	if err != nil {
		return m, err
	}
	for _, one := range all {
		m.Sources = append(m.Sources, teamviews.SubmitSource{ID: "manifest-" + strings.ToLower(string(one.Kind)), Title: string(one.Kind), Text: one.Text})
		if one.Kind == submit.RayJob {
			m.Sources[len(m.Sources)-1].Note = "Of a RayJob, Kueue also counts the small pod that submits to it, 0.5 vCPU and 0.2 GiB, wherever the queue has room for it."
		}
	}
	m.Sources = append(m.Sources, teamviews.SubmitSource{ID: "manifest-kubectl", Title: "kubectl, as one command", Text: p.KubectlCommand(all[0])})
	if line, why := p.HyperPodCommand(); (line != "" || why != "") && p.Kind != submit.RayJob && p.Kind != submit.JobSet {
		source := teamviews.SubmitSource{ID: "manifest-hyp", Title: "HyperPod CLI", Text: line, Note: why}
		if line != "" {
			source.Note = "For HyperPod clusters with HyperPod's training operator, which runs it as a HyperPodPyTorchJob."
			if p.Elastic != nil {
				source.Note += " The command has no options for " + submit.HyperPodOmits + ": HyperPod's own values apply."
			}
		}
		if left := p.HyperPodLeavesOut(); line != "" && len(left) > 0 {
			source.Note += " The command leaves out " + strings.Join(left, ", ") + "."
		}
		m.Sources = append(m.Sources, source)
	}
	return m, nil
}
