package submit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/manifest"
)

// maxPods bounds the pods of one request.
const maxPods = 10_000

// maxText bounds an image or a command, in bytes.
const maxText = 4096

// Request is a task to submit: equal pods in one pool.
type Request struct {
	// Kind is the kind of object that the console creates; empty for a Job. That of a service
	// or an elastic task follows from Serving or Elastic.
	Kind  Kind
	Name  string
	Share string // of the team, whose queue is used; empty for the team's own queue
	Class string // name of a WorkloadPriorityClass; empty for none
	Pool  string
	// OtherPools are pools that it may also run in: Kueue chooses, by the order of the
	// queue's flavors. The minimum of an elastic task runs in Pool, its growth in any.
	OtherPools []string
	Pods       int32
	// PerPod contains the requests of a pod; missing ones are completed. Whole instances
	// are not allowed, because a node reserves some resources for itself.
	PerPod v1alpha1.Quantities
	// TimeLimit is how long it may run, in seconds; 0 is the default of the class.
	TimeLimit int32
	Image     string
	Command   string // for sh -c; empty for the image's own
	Script    string // that its containers run instead of a command; it becomes a ConfigMap
	// MinPods is the smallest number of pods that a Job may start with (Kueue's partial
	// admission); 0 means all.
	MinPods int32
	// Elastic makes it an ElasticJob whose minimum is Pods. Its MinReplicas is ignored, and
	// missing sizes are completed. Nil is a Job.
	Elastic *v1alpha1.ElasticPolicy
	// ScaleConfig is the environment of the pods of an elastic task for each size.
	ScaleConfig []v1alpha1.ScaleConfig
	Serving     *Serving // makes it a service; nil for a task that ends
	Array       *Array   // makes it an array, whose Pods and MinPods follow from it; nil for equal pods
	Runtime
}

// kind returns the kind of object that the console creates.
func (r Request) kind() Kind {
	switch {
	case r.Serving != nil:
		return r.Serving.Kind(r.Pods)
	case r.Elastic != nil:
		return ElasticJob
	}
	return cmp.Or(r.Kind, Job)
}

// validate returns the errors of a request; paths are the names of its fields in lower
// case. If complete is set, fields that are needed to create the task must be set.
func (r Request) validate(t Team, complete bool) (wrong governance.FieldErrors) {
	switch {
	case r.Name == "" && complete:
		wrong.Add("name", "give the task a name")
	case r.Name != "" && r.Elastic != nil:
		wrong.Add("name", manifest.CheckElasticJobName(r.Name))
	case r.Name != "":
		wrong.Add("name", r.Kind.checkName(r.Name))
	}
	if _, ok := t.share(r.Share); !ok {
		wrong.Addf("share", "you cannot use the queue of a share %s: the team has none, or you are no member of it", r.Share)
	}
	if r.Serving == nil && r.Elastic == nil && !slices.Contains(t.Kinds, r.Kind) {
		wrong.Addf("kind", "you have no permission to create a %s in the team's namespace, or Kueue does not manage it here", r.Kind)
	}
	if _, ok := t.pool(r.Pool); !ok {
		wrong.Add("pool", noPool(r.Pool, t))
	} else {
		wrong.Add("pool", t.notCovered(r.Share, r.Pool))
	}
	wrong.Add("otherPools", t.checkOtherPools(r))
	if _, ok := t.Class(r.Class); !ok {
		wrong.Add("class", noClass(r.Class, t))
	}
	if r.Kind != Deployment {
		wrong.Add("timeLimit", t.checkTimeLimit(r.Class, int64(r.TimeLimit)))
	}
	if r.Pods < 1 || r.Pods > maxPods {
		wrong.Add("pods", "must be a whole number from 1 to 10,000")
	}
	if r.PerPod.Instances != nil {
		wrong.Add("instances", "give accelerators, vCPU or memory of a pod")
	}
	switch {
	case r.MinPods < 0 || r.MinPods > max(r.Pods, 0):
		wrong.Add("least", "must be a whole number from 1 to the number of pods")
	case r.MinPods > 0 && r.Elastic != nil:
		wrong.Add("least", "an elastic task starts with its minimum")
	case r.MinPods > 0 && r.Serving != nil:
		wrong.Add("least", "the pods of a replica start together")
	case r.MinPods > 0 && r.Kind != Job:
		wrong.Addf("least", "the pods of a %s start together", r.Kind)
	}
	wrong = append(wrong, r.Array.validate(r)...)
	if r.Elastic != nil {
		if !slices.Contains(t.Kinds, ElasticJob) {
			wrong.Add("elastic", "you have no permission to create ElasticJobs in the team's namespace")
		}
		wrong = append(wrong, manifest.CheckElasticPolicy(r.Elastic, "elastic")...)
		for _, problem := range manifest.CheckScaleConfig(r.ScaleConfig, r.Elastic) {
			wrong.Add("elastic.scaleConfig", problem)
		}
		wrong.Add("elastic.growth", t.checkGrowth(r.Elastic))
	}
	switch {
	case r.Image == "" && complete:
		wrong.Add("image", "name the image that its pods run")
	case len(r.Image) > maxText || strings.ContainsFunc(r.Image, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		wrong.Add("image", "must be one name without spaces, such as repository/name:tag")
	}
	if len(r.Command) > maxText || strings.ContainsFunc(r.Command, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }) {
		wrong.Addf("command", "must be text of at most %d bytes", maxText)
	}
	wrong = append(wrong, r.validateScript(t)...)
	if r.Serving != nil {
		wrong = append(wrong, r.validateServing(t)...)
	}
	return append(wrong, r.Runtime.validate()...)
}

func noPool(name string, t Team) string {
	if len(t.Pools) == 0 {
		return fmt.Sprintf("team %s has quota in no pool yet", t.Name)
	}
	var names []string
	for _, p := range t.Pools {
		names = append(names, p.Name)
	}
	if name == "" {
		return "choose a pool of the team: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("the team's queue has no pool %s; its pools are %s", name, strings.Join(names, ", "))
}

// notCovered returns why a task of a share, or of the team's own queue, cannot use a pool of the
// team.
func (t Team) notCovered(share, pool string) string {
	names, queue := []string{}, "the team's queue"
	for _, p := range t.Pools[:len(t.Pools)-t.ofShares] {
		names = append(names, p.Name)
	}
	if of, _ := governance.Find(t.Shares, func(s Share) bool { return s.Name == share }); of.Pools != nil {
		names, queue = of.Pools, "the queue of share "+share
	}
	if slices.Contains(names, pool) {
		return ""
	}
	var others []string
	for _, s := range t.Shares {
		if slices.Contains(s.Pools, pool) {
			others = append(others, s.Name)
		}
	}
	text := fmt.Sprintf("%s has no quota in pool %s; it has in %s", queue, pool, strings.Join(names, ", "))
	if len(others) > 0 {
		text += ". Share " + strings.Join(others, ", ") + " has"
	}
	return text
}

func noClass(name string, t Team) string {
	if desired.IsNumber(name) {
		return "the cluster policy allows no priorities by number: choose a priority class"
	}
	if len(t.Classes) == 0 {
		return fmt.Sprintf("there is no priority class %s, and the cluster has none", name)
	}
	var names []string
	for _, c := range t.Classes {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("there is no priority class %s; there are %s", name, strings.Join(names, ", "))
}

// checkTimeLimit returns why a task of a class may not have a time limit of so many
// seconds, 0 for none; empty if it may.
func (t Team) checkTimeLimit(class string, seconds int64) string {
	c, _ := t.Class(class)
	if c.MaximumTimeLimit == 0 || seconds > 0 && seconds <= int64(c.MaximumTimeLimit) {
		return ""
	}
	return fmt.Sprintf("must be at most %s in priority class %s", describe.Seconds(&c.MaximumTimeLimit), class)
}

// share returns the queue of a share that the user may use, or the team's own.
func (t Team) share(name string) (queue string, ok bool) {
	if name == "" {
		return t.Queue, true
	}
	share, ok := governance.Find(t.Shares, func(s Share) bool { return s.Name == name })
	return share.Queue, ok
}

// shareOf returns the share with a queue and that queue, or without a queue those of a kind; if
// the user may use none with it, no share and the team's own queue.
func (t Team) shareOf(queue string, kind Kind) (share, its string) {
	for _, s := range t.Shares {
		if queue == s.Queue || queue == "" && slices.Contains(s.Kinds, string(kind)) {
			return s.Name, s.Queue
		}
	}
	return "", t.Queue
}

// defaultClass returns the priority class of the tasks of a share, or of the team's own queue, that
// name none; empty for none.
func (t Team) defaultClass(share string) string {
	class := t.DefaultClass
	if share != "" {
		of, _ := governance.Find(t.Shares, func(s Share) bool { return s.Name == share })
		class = of.Class
	}
	if _, exists := t.Class(class); !exists {
		return ""
	}
	return class
}

func (t Team) pool(name string) (QueuePool, bool) {
	return governance.Find(t.Pools, func(p QueuePool) bool { return p.Name == name })
}

// Class returns the priority class with a name; the zero value for an empty name.
func (t Team) Class(name string) (PriorityClass, bool) {
	if name == "" {
		return PriorityClass{}, true
	}
	if desired.IsNumber(name) {
		return governance.Find(t.Numbers, func(c PriorityClass) bool { return c.Name == name })
	}
	return governance.Find(t.Classes, func(c PriorityClass) bool { return c.Name == name })
}

// takeNumber turns a priority by number among the labels and annotations of a task, or that of t,
// into a priority class, as the API server does from Kubernetes 1.36 on. labels is not nil.
func (t Team) takeNumber(labels, annotations map[string]string) (changed, wrong governance.FieldErrors) {
	if t.Priority != "" {
		labels[desired.PriorityLabel] = t.Priority
		delete(annotations, desired.PriorityLabel)
	}
	for _, place := range []struct {
		name string
		in   map[string]string
	}{{"labels", labels}, {"annotations", annotations}} {
		text, ok := place.in[desired.PriorityLabel]
		if !ok {
			continue
		}
		path := "metadata." + place.name + "[" + desired.PriorityLabel + "]"
		number, err := strconv.ParseUint(text, 10, 16)
		class := desired.NumberClass(int(number))
		switch had := labels[desired.PriorityClassLabel]; {
		case err != nil || number > desired.MaxNumber:
			wrong.Addf(path, "is %s, and must be a whole number from 0 to %d", text, desired.MaxNumber)
		case had != "" && had != class:
			wrong.Addf(path, "is %s, and the task has the priority class %s: remove one of them", text, had)
		default:
			labels[desired.PriorityClassLabel] = class
			delete(place.in, desired.PriorityLabel)
			changed.Addf(path, "becomes the priority class %s", class)
		}
	}
	return changed, wrong
}

// Fill returns the requests of one pod. Like quota.Fill it completes missing amounts in
// proportion to one instance of the pool; without any amount it starts from one
// accelerator, or one vCPU in a pool without accelerators. Errors have the paths of
// quota.Fill.
//
// It differs from quota.Fill because a pod must fit on a node. Completed vCPU and memory
// are at most what the largest node has allocatable. Network devices are requested only
// for several pods, and their share is rounded down; rounded up, a node could run fewer
// pods than it has accelerators.
func Fill(each v1alpha1.Quantities, pods int32, pool QueuePool) (quota.Resources, []governance.FieldError) {
	if each.Instances == nil && each.Accelerators == nil && each.Partition == nil && each.VCPU == nil && each.Memory == nil {
		if pool.Instance.Accelerators > 0 {
			each.Accelerators = new(int64(1))
		} else {
			each.VCPU = new(resources.Amount(1000).Quantity(catalog.CPU))
		}
	}
	filled, wrong := quota.Fill(each, pool.Instance)
	if len(wrong) > 0 {
		return nil, wrong
	}
	filled[catalog.Network] = network(filled, pods, pool)
	if largest := LargestNode(pool.Nodes, filled); largest != nil {
		bound := func(name string, given bool, unit resources.Amount) {
			if most := largest[name].Minus(largest[name] % unit); !given && filled[name] > most {
				filled[name] = most
			}
		}
		bound(catalog.CPU, each.VCPU != nil, 1000)
		bound(catalog.Memory, each.Memory != nil, catalog.GiB)
		bound(catalog.Network, false, 1)
	}
	maps.DeleteFunc(filled, func(_ string, amount resources.Amount) bool { return amount == 0 })
	return filled, nil
}

// FillElastic returns the policy of an elastic task whose minimum is pods. Without a
// maximum it is the largest size, or twice the minimum. Without sizes it grows by as many
// pods as the minimum has, or by fewer if that would miss the maximum.
func FillElastic(p v1alpha1.ElasticPolicy, pods int32) v1alpha1.ElasticPolicy {
	p.MinReplicas = pods
	if p.MaxReplicas == 0 {
		p.MaxReplicas = 2 * pods
		if len(p.ReplicaDiscreteValues) > 0 {
			p.MaxReplicas = slices.Max(p.ReplicaDiscreteValues)
		}
	}
	if p.ReplicaIncrementStep == nil && len(p.ReplicaDiscreteValues) == 0 {
		step, rest := pods, p.MaxReplicas-pods
		for rest > 0 {
			step, rest = rest, step%rest
		}
		p.ReplicaIncrementStep = new(max(step, 1))
	}
	return p
}

// network returns a pod's share of the network devices of an instance, in proportion to
// its accelerators.
func network(each quota.Resources, pods int32, pool QueuePool) resources.Amount {
	instance := pool.Instance
	if pods < 2 || instance.Accelerators == 0 {
		return 0
	}
	return each[instance.AcceleratorResource].Times(int64(instance.NetworkDevices)) / instance.Accelerators
}
