package actions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/tasks"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The limits of the schema of ElasticJobs.
const (
	maxReplicas = 10_000
	maxSizes    = 64
)

// Sizes are the sizes of an ElasticJob, which can change while it runs.
type Sizes struct {
	Min, Max int32
	Step     int32   // 0 if Values are set
	Values   []int32 // the smallest first
	Times    Times

	Growth         v1alpha1.Growth // where it grows
	MaxUnscheduled *int32          // pods that can wait for nodes at once; 0 for those of one step

	Scale []v1alpha1.ScaleConfig // variables by size
}

// Times are the times of an ElasticJob's policy, in seconds, by the names of its fields.
type Times map[SizeField]int32

// The fields of Times.
const (
	GraceField  SizeField = "gracefulShutdownTimeoutInSeconds"
	IdleField   SizeField = "scalingTimeoutInSeconds"
	FaultyField SizeField = "faultyScaleDownTimeoutInSeconds"
	StableField SizeField = "minStablePeriodSeconds"
	MostField   SizeField = "backoffMaxSeconds"
	NodesField  SizeField = "provisionTimeoutInSeconds"
)

// TimeFields returns the fields of Times, in the order in which they are shown, with the most
// seconds that the schema of ElasticJobs allows.
func TimeFields() ([]SizeField, Times) {
	const day = 24 * 60 * 60
	return []SizeField{GraceField, IdleField, FaultyField, StableField, MostField, NodesField}, Times{GraceField: day, IdleField: day, FaultyField: day, StableField: day, MostField: 7 * day, NodesField: day}
}

// SizesOf returns the sizes of an ElasticJob.
func SizesOf(spec *v1alpha1.ElasticJobSpec) Sizes {
	p := spec.ElasticPolicy
	return Sizes{
		Min: p.MinReplicas, Max: p.MaxReplicas, Step: ptr.Deref(p.ReplicaIncrementStep, 0), Values: slices.Sorted(slices.Values(p.ReplicaDiscreteValues)),
		Times: Times{
			GraceField: p.GracefulShutdownTimeoutInSeconds, IdleField: p.ScalingTimeoutInSeconds, FaultyField: p.FaultyScaleDownTimeoutInSeconds,
			StableField: p.MinStablePeriodSeconds, MostField: p.BackoffMaxSeconds, NodesField: cmp.Or(p.ProvisionTimeoutInSeconds, v1alpha1.DefaultElasticPolicy().ProvisionTimeoutInSeconds),
		},
		Growth: cmp.Or(p.Growth, v1alpha1.GrowthExistingNodes), MaxUnscheduled: new(ptr.Deref(p.MaxUnscheduledReplicas, 0)),
		Scale: spec.ScaleConfig,
	}
}

// Over returns sizes whose values replace those of others. What is not set is as in these.
func (z Sizes) Over(others Sizes) Sizes {
	if z.Min == 0 && z.Max == 0 && z.Step == 0 && len(z.Values) == 0 {
		z.Min, z.Max, z.Step, z.Values = others.Min, others.Max, others.Step, others.Values
	}
	times := maps.Clone(others.Times)
	maps.Copy(times, z.Times)
	z.Times, z.Growth = times, cmp.Or(z.Growth, others.Growth)
	if z.MaxUnscheduled == nil {
		z.MaxUnscheduled = others.MaxUnscheduled
	}
	if z.Scale == nil {
		z.Scale = others.Scale
	}
	return z
}

// policy returns the fields of a policy.
func (z Sizes) policy() v1alpha1.ElasticPolicy {
	p := v1alpha1.ElasticPolicy{MinReplicas: z.Min, MaxReplicas: z.Max, ReplicaDiscreteValues: z.Values}
	if z.Step > 0 {
		p.ReplicaIncrementStep = &z.Step
	}
	if ptr.Deref(z.MaxUnscheduled, 0) > 0 {
		p.MaxUnscheduledReplicas = z.MaxUnscheduled
	}
	return p
}

// allowed returns the allowed sizes, the smallest first.
func (z Sizes) allowed() []int32 { return elastic.Sizes(z.policy()) }

// Equal reports whether both are the same sizes.
func (z Sizes) Equal(other Sizes) bool {
	return z.Min == other.Min && z.Max == other.Max && z.Step == other.Step && slices.Equal(z.Values, other.Values) && maps.Equal(z.Times, other.Times) &&
		z.Growth == other.Growth && ptr.Equal(z.MaxUnscheduled, other.MaxUnscheduled) && z.SameScale(other)
}

// SameScale reports whether both have the same variables by size.
func (z Sizes) SameScale(other Sizes) bool {
	return slices.EqualFunc(z.Scale, other.Scale, func(a, b v1alpha1.ScaleConfig) bool { return a.Replicas == b.Replicas && slices.Equal(a.Env, b.Env) })
}

// SizeField is a field of Sizes and Times.
type SizeField string

// The fields.
const (
	MinField    SizeField = "min"
	MaxField    SizeField = "max"
	StepField   SizeField = "step"
	ValuesField SizeField = "values"
	GrowthField SizeField = "growth"
	WaitField   SizeField = "maxUnscheduled"
	ScaleField  SizeField = "scaleConfig"
)

// Problems returns what the API server would reject in sizes: a sentence for each field.
func (z Sizes) Problems() map[SizeField]string {
	wrong := map[SizeField]string{}
	add := func(f SizeField, is bool, format string, args ...any) {
		if is && wrong[f] == "" {
			wrong[f] = fmt.Sprintf(format, args...)
		}
	}
	outside := func(n int32) bool { return n < 1 || n > maxReplicas }
	add(MinField, outside(z.Min), "The minimum is a number from 1 to %d.", maxReplicas)
	add(MaxField, outside(z.Max), "The maximum is a number from 1 to %d.", maxReplicas)
	add(MaxField, z.Max < z.Min, "The maximum is smaller than the minimum %d.", z.Min)
	if len(z.Values) > 0 {
		add(ValuesField, len(z.Values) > maxSizes, "There are %d sizes, and at most %d are possible.", len(z.Values), maxSizes)
		add(ValuesField, !slices.Contains(z.Values, z.Min), "The sizes lack the minimum %d.", z.Min)
		add(ValuesField, !slices.Contains(z.Values, z.Max), "The sizes lack the maximum %d.", z.Max)
		for i, n := range z.Values {
			add(ValuesField, n < z.Min, "The size %d is smaller than the minimum %d: remove it.", n, z.Min)
			add(ValuesField, n > z.Max, "The size %d is larger than the maximum %d: remove it.", n, z.Max)
			add(ValuesField, i > 0 && z.Values[i-1] == n, "The size %d is listed twice.", n)
		}
	} else {
		add(StepField, z.Step < 1, "The step is a number of at least 1.")
		if z.Step > 0 {
			add(StepField, (z.Max-z.Min)%z.Step != 0, "The maximum %d cannot be reached from the minimum %d in steps of %d.", z.Max, z.Min, z.Step)
			add(StepField, (z.Max-z.Min)/z.Step >= maxSizes, "These are more than %d sizes: choose a larger step.", maxSizes)
		}
	}
	fields, most := TimeFields()
	for _, f := range fields {
		add(f, z.Times[f] < 0 || z.Times[f] > most[f], "This is a number of seconds from 0 to %d.", most[f])
	}
	add(NodesField, z.Times[NodesField] == 0, "This is a number of seconds from 1 to %d.", most[NodesField])
	add(GrowthField, z.Growth != "" && z.Growth != v1alpha1.GrowthExistingNodes && z.Growth != v1alpha1.GrowthProvision, "It grows into ExistingNodes, or by Provision.")
	if n, step := ptr.Deref(z.MaxUnscheduled, 0), z.largestStep(); n != 0 {
		add(WaitField, outside(n), "The pods that wait for nodes are a number from 1 to %d.", maxReplicas)
		add(WaitField, n < step, "This is less than a step of %d pods, which wait together.", step)
	}
	add(MostField, z.Times[MostField] < z.Times[StableField], "This is less than the %d seconds that it does not grow at first.", z.Times[StableField])
	policy := z.policy()
	for _, problem := range manifest.CheckScaleConfig(z.Scale, &policy) {
		add(ScaleField, true, "Its variables by size are wrong: %s.", problem)
	}
	return wrong
}

// largestStep returns the largest difference of one allowed size and the next.
func (z Sizes) largestStep() (step int32) {
	step = z.Step
	for i := 1; i < len(z.Values); i++ {
		step = max(step, z.Values[i]-z.Values[i-1])
	}
	return step
}

// Resizing is what Resize can change, and what of it is running.
type Resizing struct {
	Sizes      Sizes
	Generation int64 // of the spec that Sizes are from
	State      v1alpha1.ElasticState
	Pods       int32   // with quota
	Base       int32   // pods of the base, which keeps its size while it runs
	Minimum    int32   // of Pods: those that are not growth
	Growth     []int32 // pods of each increment, in the order in which they are given back
	// Blocked is why it cannot ask for nodes, as the end of a sentence; empty if it can.
	Blocked string
}

// resizing returns what Resize can change of a task.
func (s *Service) resizing(ctx context.Context, t *tasks.Task) (*Resizing, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return nil, err
	}
	var e v1alpha1.ElasticJob
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, &e, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read task", err)
	case err != nil || string(e.UID) != t.UID:
		return nil, nil // deleted meanwhile
	}
	r := &Resizing{
		Sizes: SizesOf(&e.Spec), Generation: e.Generation, State: e.Status.State, Pods: e.Status.Replicas, Minimum: e.Status.Minimum,
	}
	if r.Blocked, err = blocked(ctx, reader); err != nil {
		return nil, err
	}
	r.Base, r.Growth = int32(tasks.ReadPart(t.Main).Pods), increments(t)
	return r, nil
}

// blocked returns why elastic tasks cannot ask for nodes; empty if they can.
func blocked(ctx context.Context, reader client.Reader) (string, error) {
	policy, err := clusterstate.Policy(ctx, reader)
	if wait := policy.PodsReady(); err != nil || wait == nil || !wait.BlockAdmission {
		return "", err
	}
	return elastic.AdmissionBlocked, nil
}

// increments returns the pods of each increment of growth that has quota, the newest
// first.
func increments(t *tasks.Task) (pods []int32) {
	list := slices.DeleteFunc(slices.Clone(t.Parts), func(w *kueue.Workload) bool { return !t.IsGrowth(w) || !tasks.ReadPart(w).State.UsesQuota() })
	reserved := func(w *kueue.Workload) int64 {
		if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil {
			return c.LastTransitionTime.Unix()
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *kueue.Workload) int { return cmp.Compare(reserved(b), reserved(a)) })
	for _, w := range list {
		pods = append(pods, int32(tasks.ReadPart(w).Pods)) // an ElasticJob has one set of pods
	}
	return pods
}

// After returns how many pods of a running task stay with other sizes: the newest growth
// ends until the rest is an allowed size, or its minimum.
func (r *Resizing) After(z Sizes) int32 {
	left := r.Minimum
	for _, pods := range r.Growth {
		left += pods
	}
	for _, pods := range r.Growth {
		if left <= r.Minimum || slices.Contains(z.allowed(), left) {
			break
		}
		left -= pods
	}
	return left
}

// Resize sets the sizes of an ElasticJob, as user, if its spec is still of a generation.
func (s *Service) Resize(ctx context.Context, user governance.User, at tasks.Address, z Sizes, generation int64) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	t, writer, err := s.open(ctx, user, at)
	if err != nil {
		return err
	}
	reader, err := s.Cluster.Reader()
	if err != nil {
		return err
	}
	if !Resize.applies(t) {
		return changed(notApplicable(Resize, t))
	}
	for {
		e := &v1alpha1.ElasticJob{}
		if err := writer.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, e); err != nil {
			return translate("resize task", t, err)
		}
		if string(e.UID) != t.UID || e.Generation != generation {
			return changed(t.Name + " was changed meanwhile. Its sizes are shown as they are now: review yours against them.")
		}
		before := SizesOf(&e.Spec)
		z := z.Over(before)
		if before.Equal(z) {
			return nil
		}
		if z.Growth == v1alpha1.GrowthProvision && z.Growth != before.Growth {
			switch why, err := blocked(ctx, reader); {
			case err != nil:
				return translate("resize task", t, err)
			case why != "":
				return &governance.Error{Kind: governance.Invalid, Op: "resize task", Message: "It cannot ask for nodes: " + why + "."}
			}
		}
		p := z.policy()
		policy := map[string]any{
			"growth": z.Growth, "maxUnscheduledReplicas": p.MaxUnscheduledReplicas,
			"minReplicas": p.MinReplicas, "maxReplicas": p.MaxReplicas, "replicaIncrementStep": p.ReplicaIncrementStep, "replicaDiscreteValues": p.ReplicaDiscreteValues,
		}
		for field, seconds := range z.Times {
			policy[string(field)] = seconds
		}
		changes := map[string]any{"elasticPolicy": policy}
		if !z.SameScale(before) {
			changes["scaleConfig"] = z.Scale
		}
		err := writer.Patch(ctx, e, merge(map[string]any{
			"metadata": map[string]any{"uid": e.UID, "resourceVersion": e.ResourceVersion},
			"spec":     changes,
		}))
		if apierrors.IsConflict(err) && ctx.Err() == nil { // its status changes often: the generation decides
			continue
		}
		err = translate("resize task", t, err)
		e.UID, e.Namespace, e.Name = types.UID(t.UID), t.Namespace, t.Name
		s.Audit.Record(audit.Change{User: user, Action: audit.Resize, Object: e, Of: of(t), Old: sizesSpec(before, z), New: sizesSpec(z, before), Err: err})
		return err
	}
}

// sizesSpec returns sizes for the audit log, with the times that differ from others.
func sizesSpec(z, others Sizes) spec {
	p := spec{"minReplicas": z.Min, "maxReplicas": z.Max}
	if z.Step > 0 {
		p["replicaIncrementStep"] = z.Step
	} else {
		p["replicaDiscreteValues"] = z.Values
	}
	if z.Growth != others.Growth {
		p["growth"] = z.Growth
	}
	if !ptr.Equal(z.MaxUnscheduled, others.MaxUnscheduled) {
		p["maxUnscheduledReplicas"] = ptr.Deref(z.MaxUnscheduled, 0)
	}
	for field, seconds := range z.Times {
		if seconds != others.Times[field] {
			p[string(field)] = seconds
		}
	}
	if !z.SameScale(others) {
		return spec{"elasticPolicy": p, "scaleConfig": z.Scale}
	}
	return spec{"elasticPolicy": p}
}
