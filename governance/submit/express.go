package submit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/document"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Express returns the request that comes closest to a plan that was read from a manifest.
// Differences reports what it does not express.
func (p Plan) Express() Request {
	r := Request{Kind: p.Kind, Name: p.Name, Share: p.Share, Class: p.Class, TimeLimit: p.TimeLimit, Pods: p.Pods, Script: p.Script}
	template := podTemplate{}
	switch {
	case p.read != nil:
		policy := p.read.Spec.ElasticPolicy
		r.Elastic, r.ScaleConfig, template.PodTemplateSpec = &policy, p.read.Spec.ScaleConfig, p.read.Spec.Template
		if limit := p.read.Spec.ActiveDeadlineSeconds; limit != nil {
			r.TimeLimit = int32(min(*limit, maxTimeLimit))
		}
	default:
		template = p.templates[0]
		if n, err := strconv.ParseInt(p.source.GetAnnotations()[minPodsAnnotation], 10, 32); err == nil && p.Kind == Job {
			r.MinPods = int32(n)
		}
	}
	spec := template.Spec
	c := spec.Containers[0]
	r.Image, r.ServiceAccount = c.Image, spec.ServiceAccountName
	if len(c.Command) == 3 && c.Command[0] == "sh" && c.Command[1] == "-c" {
		r.Command = c.Command[2]
	}
	r.Pool, r.OtherPools = p.Team.poolsOf(&spec)
	if p.read != nil && p.read.Spec.BaseNodeSelector != nil { // of the minimum
		base := p.Team.selected(p.read.Spec.BaseNodeSelector).Name
		r.OtherPools = slices.DeleteFunc(append([]string{r.Pool}, r.OtherPools...), func(name string) bool { return name == base })
		r.Pool = base
	}
	r.PerPod = perPod(c.Resources.Requests, p.Team, r.Pool)
	for _, v := range c.Env {
		n, err := strconv.ParseInt(v.Value, 10, 32)
		if v.Name == processesVariable && err == nil {
			r.Processes = int32(n)
			continue
		}
		if v.ValueFrom == nil || v.ValueFrom.SecretKeyRef != nil {
			r.Env = append(r.Env, v)
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			r.EnvFrom = append(r.EnvFrom, from)
		}
	}
	volumes := map[string]corev1.Volume{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range c.VolumeMounts {
		switch v := volumes[m.Name]; {
		case v.PersistentVolumeClaim != nil:
			r.Volumes = append(r.Volumes, ClaimMount{Path: m.MountPath, Claim: v.PersistentVolumeClaim.ClaimName, ReadOnly: m.ReadOnly})
		case v.EmptyDir != nil && m.MountPath == sharedMemoryPath:
			r.SharedMemory = v.EmptyDir.SizeLimit
		}
	}
	if p.source != nil {
		p.expressKind(&r)
	}
	p.Team.withoutDefaults(&r)
	return r
}

// maxTimeLimit bounds a time limit, in seconds.
const maxTimeLimit = 1<<31 - 1

// expressKind sets what each kind has elsewhere.
func (p Plan) expressKind(r *Request) {
	at := func(path ...string) any {
		var value any = p.source.Object["spec"]
		for _, name := range path {
			of, _ := value.(map[string]any)
			value = of[name]
		}
		return value
	}
	limit := at("backoffLimit")
	switch p.Kind {
	case PyTorchJob:
		limit = at("runPolicy", "backoffLimit")
		if n, err := strconv.ParseInt(fmt.Sprint(at("nprocPerNode")), 10, 32); err == nil {
			r.Processes = int32(n)
		}
	case RayJob:
		r.Command, _ = at("entrypoint").(string)
		if r.Command == defaultEntrypoint || r.Script != "" {
			r.Command = ""
		}
	case JobSet:
		if jobs, ok := at("replicatedJobs").([]any); ok && len(jobs) > 0 {
			job, _ := jobs[0].(map[string]any)
			template, _ := job["template"].(map[string]any)
			spec, _ := template["spec"].(map[string]any)
			limit = spec["backoffLimit"]
		}
	}
	if n, ok := limit.(int64); ok && n >= 0 && n < 1000 {
		r.Tries = int32(n) + 1
	}
}

// poolsOf returns the pool that pods select, and the others by their affinity.
func (t Team) poolsOf(spec *corev1.PodSpec) (first string, others []string) {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return t.selected(spec.NodeSelector).Name, nil
	}
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		labels := map[string]string{}
		for _, e := range term.MatchExpressions {
			if e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				labels[e.Key] = e.Values[0]
			}
		}
		for _, pool := range t.Pools {
			if maps.Equal(pool.NodeSelector, labels) {
				others = append(others, pool.Name)
			}
		}
	}
	if len(others) == 0 {
		return "", nil
	}
	return others[0], others[1:]
}

// perPod converts the requests of a container.
func perPod(requests corev1.ResourceList, t Team, pool string) (each v1alpha1.Quantities) {
	of, _ := t.pool(pool)
	for name, amount := range requests {
		switch {
		case name == corev1.ResourceCPU:
			each.VCPU = new(amount.DeepCopy())
		case name == corev1.ResourceMemory:
			each.Memory = new(amount.DeepCopy())
		case string(name) == of.Instance.AcceleratorResource:
			each.Accelerators = new(int64(resources.AmountFromQuantity(string(name), amount)))
		case catalog.IsPartition(string(name)):
			each.Partition = &v1alpha1.Partition{Profile: strings.TrimPrefix(string(name), quota.PartitionResource("")), Count: int64(resources.AmountFromQuantity(string(name), amount))}
		}
	}
	return each
}

// withoutDefaults removes the values of a request that are filled in if they are missing.
func (t Team) withoutDefaults(r *Request) {
	plan, wrong := t.Plan(*r)
	if len(wrong) > 0 {
		return
	}
	for _, clear := range []func(*Request){
		func(r *Request) { r.PerPod.VCPU = nil },
		func(r *Request) { r.PerPod.Memory = nil },
		func(r *Request) { r.PerPod.Accelerators = nil },
		func(r *Request) { r.TimeLimit = 0 },
		func(r *Request) {
			if r.Elastic != nil {
				e := *r.Elastic
				e.MaxReplicas, r.Elastic = 0, &e
			}
		},
		func(r *Request) {
			if r.Elastic != nil {
				e := *r.Elastic
				e.ReplicaIncrementStep, r.Elastic = nil, &e
			}
		},
	} {
		less := *r
		clear(&less)
		if with, wrong := t.Plan(less); len(wrong) == 0 && maps.Equal(with.PodResources, plan.PodResources) && with.TimeLimit == plan.TimeLimit && reflect.DeepEqual(with.Elastic, plan.Elastic) {
			*r = less
		}
	}
}

// maxDifferences bounds the paths of Differences.
const maxDifferences = 10

// Differences returns the paths in the object of a manifest at which the object of p, the plan
// of a form, differs from it; at most ten. Kueue sets whether it is suspended.
func (p Plan) Differences(from Plan) ([]string, error) {
	var objects [2]any
	for i, plan := range []Plan{p, from} {
		object, err := plan.object(plan.Kind)
		if err != nil {
			return nil, manifestError(plan.Kind, err)
		}
		objects[i] = object
	}
	return differences(objects[0], objects[1])
}

func differences(form, from any) (paths []string, err error) {
	trees := [2]any{}
	for i, object := range []any{form, from} {
		if trees[i], err = toTree(object); err != nil {
			return nil, &governance.Error{Op: "compare tasks", Message: "The form cannot be compared with the text.", Err: err}
		}
		spec, _ := trees[i].(fields)["spec"].(fields)
		delete(spec, "suspend")
		policy, _ := spec["runPolicy"].(fields)
		if delete(policy, "suspend"); len(policy) == 0 {
			delete(spec, "runPolicy")
		}
	}
	differ(trees[0], trees[1], "", &paths)
	return paths, nil
}

func differ(a, b any, path string, paths *[]string) {
	x, isObject := a.(fields)
	y, both := b.(fields)
	if isObject && both {
		names := maps.Clone(x)
		maps.Copy(names, y)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			differ(x[name], y[name], document.Child(path, name), paths)
		}
		return
	}
	l, isList := a.([]any)
	m, both := b.([]any)
	if isList && both && len(l) == len(m) {
		for i := range l {
			differ(l[i], m[i], document.Index(path, i), paths)
		}
		return
	}
	if !reflect.DeepEqual(a, b) && !sameQuantity(a, b) && len(*paths) < maxDifferences {
		*paths = append(*paths, path)
	}
}

// sameQuantity reports whether two values are the same amount, such as 64Gi and 65536Mi.
func sameQuantity(a, b any) bool {
	if a == nil || b == nil {
		return false
	}
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	y, wrong := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && wrong == nil && x.Cmp(y) == 0
}
