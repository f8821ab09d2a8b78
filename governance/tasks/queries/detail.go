package queries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/spec/describe"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/timeline"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// shownAround is how many tasks ahead of and behind a task are shown.
const shownAround = 5

// Detail is the page of one task.
type Detail struct {
	Item
	QueuePosition
	Verdict   *explain.Verdict  // why it does not start, or does not grow; nil if there is nothing to explain
	About     Item              // the task, or its pending increment, that the verdict explains
	Advice    *Advice           // what a simulation adds to the verdict; nil for nothing
	HeldBy    string            // sentences about the window, budget or department that holds its queue; empty for none
	Agreement explain.Agreement // of that verdict with Kueue's reason; empty without a verdict
	Pods      []*index.Pod      // by name
	PodCount  index.PodCount
	Life
	TimeLimit  time.Duration      // how long it may have quota; of an ElasticJob, since its last start; 0 for no limit
	Scaling    *Scaling           // of an ElasticJob; nil for any other task
	Loops      []GuardedLoop      // that it is part of
	Conditions []metav1.Condition // of the Workload that decides its state, redacted
}

// heldBy returns sentences about what holds the queue of a team beside its spec; empty for
// nothing, and while the cache does not answer.
func (s *Service) heldBy(ctx context.Context, team string) string {
	reader, err := s.Cluster.Reader()
	if err != nil || team == "" {
		return ""
	}
	var allocation v1alpha1.ComputeAllocation
	if err := reader.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
		return ""
	}
	var departments v1alpha1.DepartmentList
	if err := cluster.List(ctx, reader, &departments); err != nil {
		return ""
	}
	return describe.HeldBy(&allocation, desired.DepartmentChain(departments.Items, allocation.Spec.Department)...)
}

// Detail returns the page of one task that user may see.
func (s *Service) Detail(ctx context.Context, user governance.User, namespace, kind, name, uid string) (Detail, error) {
	v, t, err := s.find(ctx, user, namespace, kind, name, uid)
	if err != nil {
		return Detail{}, err
	}
	place, standing, err := s.position(ctx, v, t)
	if err != nil {
		return Detail{}, err
	}
	d := Detail{Item: v.item(t, place), QueuePosition: standing}
	if d.Life, err = v.life(ctx, t); err != nil {
		return Detail{}, err
	}
	if d.Scaling, err = v.scaling(ctx, t, cmp.Or(s.InstanceTypeLabel, catalog.InstanceTypeLabel)); err != nil {
		return Detail{}, err
	}
	if d.TimeLimit, err = v.timeLimit(ctx, t); err != nil {
		return Detail{}, err
	}
	if s.Guard != nil {
		for _, l := range v.loops(s.Guard.Loops()) {
			if l.Concerns(t) {
				d.Loops = append(d.Loops, l)
			}
		}
	}
	for _, c := range t.Main.Status.Conditions {
		c.Message = v.names.redact(c.Message)
		d.Conditions = append(d.Conditions, c)
	}
	d.Pods, d.PodCount = v.index.Pods(t)
	d.About = d.Item
	if d.Verdict, err = v.why(ctx, t, d.Pods, d.PodCount); err != nil {
		return Detail{}, err
	}
	if d.Verdict == nil && (t.State == tasks.Running || t.State == tasks.Starting) {
		if next := t.PendingIncrement(); next != nil {
			d.About = v.item(next, 0)
			if d.Verdict, err = v.explainGrowth(ctx, t, next); err != nil {
				return Detail{}, err
			}
		}
	}
	if d.Verdict != nil && d.Verdict.Constraint == explain.QueueStopped && d.Verdict.Detail == "" {
		d.HeldBy = s.heldBy(ctx, d.Team)
	}
	if d.Verdict != nil {
		// Kueue may not have evaluated a task behind others since quota became
		// free.
		behind := d.Verdict.Constraint == explain.PendingEvaluation && d.Position > 1
		// Kueue does not add the usage of the replaced slice when it computes what
		// a queue can ever have.
		slice := d.Verdict.Constraint == explain.ExceedsMax && t.State.UsesQuota() && t.Elastic()
		d.Agreement = d.Verdict.Compare(d.About.Reason)
		// Reasons of other conditions than QuotaReserved are not compared.
		other := d.Verdict.Constraint == explain.LoopHeld || d.Agreement == explain.UnknownReason && !d.About.State.Waiting()
		if other || d.Agreement == explain.Disagrees && (behind || slice) {
			d.Agreement = explain.Agrees
		}
		s.countShown(t, d.Verdict.Constraint, d.Agreement)
		if d.About.Task == t {
			d.Advice = s.advise(v, t, d.Verdict)
		}
	}
	return d, nil
}

// find returns a task that user may see, and the viewer.
func (s *Service) find(ctx context.Context, user governance.User, namespace, kind, name, uid string) (viewer, *tasks.Task, error) {
	v, err := s.view(ctx, user)
	if err != nil {
		return v, nil, err
	}
	var t *tasks.Task
	if v.seesNamespace(namespace) {
		t = s.findOrWait(ctx, v.index, tasks.Address{Namespace: namespace, Kind: kind, Name: name, UID: uid})
	}
	if t == nil {
		return v, nil, &governance.Error{Kind: governance.NotFound, Op: "find task", Message: "Task not found, or you do not have access."}
	}
	return v, t, nil
}

// Task returns a task that user may see, as a list has it.
func (s *Service) Task(ctx context.Context, user governance.User, at tasks.Address, patience time.Duration) (Item, error) {
	v, t, err := s.find(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	if err != nil {
		return Item{}, err
	}
	place, _ := v.index.Position(t)
	items := []Item{v.item(t, place)}
	s.explainAll(ctx, items, []bool{false}, patience, briefAge)
	return items[0], nil
}

// Pods returns the pods of a task that user may see, by name.
func (s *Service) Pods(ctx context.Context, user governance.User, at tasks.Address) ([]*index.Pod, error) {
	v, t, err := s.find(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	if err != nil {
		return nil, err
	}
	pods, _ := v.index.Pods(t)
	return pods, nil
}

// YAML reads the Workloads of a task from the API server, as user, the newest
// first, with messages as pages show them. Of an elastic task it reads the ElasticJob, as kubectl applies it.
func (s *Service) YAML(ctx context.Context, user governance.User, namespace, kind, name, uid string) (string, error) {
	v, t, err := s.find(ctx, user, namespace, kind, name, uid)
	if err != nil {
		return "", err
	}
	reader, err := s.Cluster.ReaderAs(user)
	if err != nil {
		return "", err
	}
	if t.Kind == v1alpha1.ElasticJobKind {
		var e v1alpha1.ElasticJob
		if err := reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, &e); err != nil {
			return "", cluster.Translate("read task", err)
		}
		return manifest.ElasticJobYAML(&e), nil
	}
	text := ""
	for _, part := range t.Parts {
		var w kueue.Workload
		switch err := reader.Get(ctx, client.ObjectKeyFromObject(part), &w); {
		case client.IgnoreNotFound(err) != nil:
			return "", cluster.Translate("read task", err)
		case err != nil:
			continue
		}
		w.ManagedFields = nil
		v.names.redactWorkload(&w)
		w.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
		out, err := yaml.Marshal(&w)
		if err != nil {
			return "", &governance.Error{Op: "read task", Message: "The Workload cannot be written down.", Err: errors.Join(err)}
		}
		if text != "" {
			text += "---\n"
		}
		text += string(out)
	}
	if text == "" {
		return "", &governance.Error{Kind: governance.NotFound, Op: "read task", Message: fmt.Sprintf("%s does not exist any more.", t.Name)}
	}
	return text, nil
}

// Life is what happened to a task until now.
type Life struct {
	Timeline     []timeline.Event
	Omitted      int32             // losses of quota that Timeline does not have
	Sizes        []timeline.Resize // of a task that had more than one
	QuotaSources *QuotaSources     // nil for a task that uses no quota
}

// life returns a task's life as the viewer may see it.
func (v viewer) life(ctx context.Context, t *tasks.Task) (l Life, err error) {
	l.Timeline, l.Sizes = v.index.Timeline(t), v.index.Sizes(t)
	l.Omitted = t.Evictions
	for i := range l.Timeline {
		e := &l.Timeline[i]
		if e.Type.Lost() {
			l.Omitted = max(0, l.Omitted-1-e.Omitted)
		}
		e.Message = v.names.redact(e.Message)
		if e.Preemptor != nil && !v.seesNamespace(e.Preemptor.Namespace) {
			e.Preemptor, e.PreemptorDeleted = nil, false
		}
		if e.Preemptor != nil {
			e.PreemptorTeam = v.team(e.Preemptor.Place())
		}
	}
	l.QuotaSources, err = v.quotaSources(ctx, t)
	return l, err
}

// Scaling is the ElasticJob of a task, and the changes of its size.
type Scaling struct {
	Job    *v1alpha1.ElasticJob // shared with the cache: read only
	Scales []Scale              // the latest changes, the oldest first
	// Nodes is how many nodes of Pool the pods need that wait for nodes; 0 if that is not
	// known, and Pool is empty if they can run in several.
	Nodes int64
	Pool  string
}

// Scale is a change of size, as one viewer sees it.
type Scale struct {
	v1alpha1.ScaleEvent
	For     *tasks.Task // that pods were preempted or withdrawn for; nil if it is not known, or hidden
	ForTeam string      // team of For; empty for none
	Hidden  bool        // the viewer may not see that task
}

// scaling returns how a task scales; nil for one that is no ElasticJob.
func (v viewer) scaling(ctx context.Context, t *tasks.Task, instanceTypeLabel string) (*Scaling, error) {
	job, err := v.elasticJob(ctx, t)
	if job == nil {
		return nil, err
	}
	found := &Scaling{Job: job}
	for _, event := range job.Status.ScaleEvents {
		s := Scale{ScaleEvent: event}
		if event.ForWorkload != "" {
			s.For = v.index.ByWorkload(event.ForWorkload)
		}
		switch {
		case s.For == nil:
		case !v.seesNamespace(s.For.Namespace):
			s.For, s.Hidden = nil, true
		default:
			s.ForTeam = v.team(s.For.Place())
		}
		found.Scales = append(found.Scales, s)
	}
	if s := job.Status.Provisioning; s != nil && s.UnscheduledReplicas > 0 && len(t.Pools) == 1 {
		types, err := clusterstate.Catalog(ctx, v.reader, instanceTypeLabel)
		if err != nil {
			return nil, err
		}
		found.Pool = t.Pools[0]
		if pool, known := types.Find(found.Pool); known {
			found.Nodes = quota.NodesFor(pool, tasks.PodRequests(&job.Spec.Template.Spec), int64(s.UnscheduledReplicas))
		}
	}
	return found, nil
}

// elasticJob returns the ElasticJob that a task is; nil for none, and after it was
// deleted.
func (v viewer) elasticJob(ctx context.Context, t *tasks.Task) (*v1alpha1.ElasticJob, error) {
	if t.Kind != v1alpha1.ElasticJobKind {
		return nil, nil
	}
	job := &v1alpha1.ElasticJob{}
	switch err := v.reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, job, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read ElasticJob", err)
	case err != nil, string(job.UID) != t.UID:
		return nil, nil
	}
	return job, nil
}
