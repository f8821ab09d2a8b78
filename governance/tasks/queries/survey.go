package queries

import (
	"context"
	"maps"
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// survey reads from the caches what decides over tasks, as of one moment. What many
// tasks share, such as the queues of a cohort, is read once, so that a survey of a
// hundred tasks costs little more than one of a single task. It is short-lived, and
// not safe for concurrent use.
type survey struct {
	viewer
	queues    map[string]*kueue.ClusterQueue // nil until read
	objects   quota.Cohorts
	roots     map[string]string                    // of the trees of the queues, by queue; empty for none
	trees     map[string]*tree                     // by root
	flavors   map[string]*kueue.ResourceFlavorSpec // nil for one that does not exist
	nodes     []explain.Node
	blocked   int
	hasCommon bool            // nodes and blocked are read
	turns     map[string]turn // by ClusterQueue
}

// tree is what the queues of one tree of Cohorts share.
type tree struct {
	queues   map[string]*explain.Queue
	cohorts  map[string]*explain.Cohort  // those with an object
	running  []*tasks.Task               // that use quota of any queue
	exceeds  map[string]bool             // queues that use more than their quota
	admitted []*explain.AdmittedWorkload // of those; see admittedTo
}

func newSurvey(v viewer) *survey {
	return &survey{viewer: v, trees: map[string]*tree{}, flavors: map[string]*kueue.ResourceFlavorSpec{}, turns: map[string]turn{}}
}

// surroundings reads what decides over one task.
func (v viewer) surroundings(ctx context.Context, t *tasks.Task) (*explain.Cluster, error) {
	s := newSurvey(v)
	c, err := s.cluster(ctx, t)
	if err != nil {
		return nil, err
	}
	return c, s.setPriorityClasses(ctx, t, c)
}

// input returns t and its cluster as package explain takes them; nil if there is
// nothing to explain.
func (s *survey) input(ctx context.Context, t *tasks.Task, pods []*index.Pod, count index.PodCount) (*explain.Task, *explain.Cluster, error) {
	if t.State.Finished() || t.State == tasks.Stopping { // Kueue resets its checks meanwhile
		return nil, nil, nil
	}
	q := explainInput(t)
	q.Predecessors = s.predecessors(t)
	placed := !t.NoWorkload && t.State.UsesQuota() && len(q.PendingChecks) == 0
	if placed {
		if !s.index.PodsSynced() {
			return nil, nil, nil
		}
		if q.Pods = placement(t, pods, count); q.Pods == nil {
			return nil, nil, nil
		}
	}
	c, err := s.cluster(ctx, t)
	if err != nil || !placed {
		return &q, c, err
	}
	q.Pods.Terminating = s.index.TerminatingPods()
	if c.ResourceQuotas, err = s.resourceQuotas(ctx, q); err != nil {
		return nil, nil, err
	}
	if q.Pods.Unscheduled == 0 && len(c.ResourceQuotas) == 0 {
		return nil, nil, nil
	}
	return &q, c, nil
}

// predecessors returns the tasks that a task starts after; nil if it waits for something else.
func (s *survey) predecessors(t *tasks.Task) (list []explain.Predecessor) {
	after, others := tasks.AfterOf(t.Main)
	if len(others) > 0 {
		return nil
	}
	for _, a := range after {
		p := explain.Predecessor{Any: a.Any}
		if of := s.index.ByKey(tasks.Key{Namespace: t.Namespace, UID: a.UID}); of != nil {
			p.Kind, p.Name, p.Failed = of.Kind, of.Name, of.State == tasks.Failed || of.TimedOut()
		}
		list = append(list, p)
	}
	return list
}

// cluster reads what decides over a task, without its possible priority classes:
// see setPriorityClasses.
func (s *survey) cluster(ctx context.Context, t *tasks.Task) (*explain.Cluster, error) {
	c := &explain.Cluster{Now: s.index.Now(), LocalQueue: t.Queue, Queues: map[string]*explain.Queue{}, Flavors: map[string]kueue.ResourceFlavorSpec{}}
	if t.NoWorkload {
		return c, s.explainMissingWorkload(ctx, t, c)
	}
	if err := s.queue(ctx, t, c); err != nil {
		return nil, err
	}
	names := t.Pools
	if c.Queue != nil {
		names = slices.Concat(names, c.Queue.Flavors)
	}
	for _, name := range names {
		flavor, err := s.flavor(ctx, name)
		if err != nil {
			return nil, err
		}
		if flavor != nil {
			c.Flavors[name] = *flavor
		}
	}
	if err := s.readCommon(ctx); err != nil {
		return nil, err
	}
	c.Nodes, c.PodsNotReady = s.nodes, s.blocked
	return c, nil
}

// turn is the order of a ClusterQueue.
type turn struct {
	locals     []index.QueueKey // its LocalQueues
	preempting *tasks.Task      // the first one for which Kueue preempts others; nil for none
}

// behind reports whether t waits until a task before it in its ClusterQueue starts: the first
// one of a StrictFIFO queue, or one for which Kueue preempts others.
func (s *survey) behind(ctx context.Context, t *tasks.Task, q *explain.Queue) (bool, error) {
	o, known := s.turns[q.Name]
	if !known {
		var err error
		if o.locals, err = s.siblings(ctx, t); err != nil {
			return false, err
		}
		o.preempting = s.index.FirstWaiting(o.locals, kueue.WorkloadQuotaReservedReasonWaitingForPreemptedWorkloads)
		s.turns[q.Name] = o
	}
	if q.StrictFIFO {
		place, _ := s.index.PositionAcross(t, o.locals)
		return place > 1, nil
	}
	return o.preempting != nil && index.InQueue(o.preempting, t) < 0, nil
}

// readCommon reads what decides over every task.
func (s *survey) readCommon(ctx context.Context) error {
	if s.hasCommon {
		return nil
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, s.reader, &nodes); err != nil {
		return err
	}
	policy, err := clusterstate.Policy(ctx, s.reader)
	if err != nil {
		return err
	}
	if policy != nil && policy.Spec.GangScheduling.Enabled && policy.Spec.GangScheduling.BlockAdmission {
		s.blocked = s.index.CountNotReady()
	}
	s.nodes, s.hasCommon = s.index.Nodes(nodes.Items), true
	return nil
}

// setPriorityClasses reads the priority classes that a task may get.
func (s *survey) setPriorityClasses(ctx context.Context, t *tasks.Task, c *explain.Cluster) error {
	if t.NoWorkload || keepsPriorityClass(t) {
		return nil
	}
	policy, err := clusterstate.Policy(ctx, s.reader)
	if err != nil {
		return err
	}
	if len(s.teams.In(t.Namespace)) == 0 {
		policy = nil
	}
	limit, err := s.timeLimit(ctx, t)
	if err != nil {
		return err
	}
	classes, err := AllowedPriorityClasses(ctx, s.reader, policy)
	c.PriorityClasses = explain.WithTimeLimit(classes, limit)
	return err
}

func (s *survey) flavor(ctx context.Context, name string) (*kueue.ResourceFlavorSpec, error) {
	found, read := s.flavors[name]
	if read {
		return found, nil
	}
	var o kueue.ResourceFlavor
	switch err := s.reader.Get(ctx, client.ObjectKey{Name: name}, &o); {
	case err == nil:
		found = &o.Spec
	case client.IgnoreNotFound(err) != nil:
		return nil, cluster.Translate("read flavor", err)
	}
	s.flavors[name] = found
	return found, nil
}

// queue reads a task's queue, those that share a cohort with it, and the tasks
// that use their quota.
func (s *survey) queue(ctx context.Context, t *tasks.Task, c *explain.Cluster) error {
	var local kueue.LocalQueue
	switch err := s.reader.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Queue}, &local); {
	case client.IgnoreNotFound(err) != nil:
		return cluster.Translate("read queue", err)
	case err != nil:
		c.NoLocalQueue = true
		var all kueue.LocalQueueList
		if err := s.reader.List(ctx, &all, client.InNamespace(t.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return cluster.Translate("list queues", err)
		}
		for i := range all.Items {
			c.LocalQueues = append(c.LocalQueues, all.Items[i].Name)
		}
		slices.Sort(c.LocalQueues)
		return nil
	}
	c.LocalQueueStopped = isStopped(local.Spec.StopPolicy)
	if err := s.readQueues(ctx); err != nil {
		return err
	}
	own := s.queues[string(local.Spec.ClusterQueue)]
	if own == nil {
		return nil
	}
	c.Queue = s.clusterQueue(own)
	var err error
	if c.Queue.NeverBorrows, err = s.neverBorrows(ctx, own.Name); err != nil {
		return err
	}
	if c.Queue.ExcludesNamespace, err = s.excludes(ctx, own, t.Namespace); err != nil {
		return cluster.Translate("read namespace", err)
	}
	if c.Behind, err = s.behind(ctx, t, c.Queue); err != nil {
		return err
	}
	c.FairSharing = own.Status.FairSharing != nil // Kueue writes shares while it shares fairly
	path, cycle := s.objects.Path(string(own.Spec.CohortName))
	if len(path) == 0 || cycle {
		c.Queues[own.Name], c.CohortCycle = c.Queue, path
		c.Admitted = index.AdmittedTo(s.index.SetUsage(c.Queues), map[string]bool{own.Name: true})
		return nil
	}
	shared := s.tree(path[len(path)-1])
	c.Queue.Usage = shared.queues[own.Name].Usage
	c.Queues = maps.Clone(shared.queues)
	c.Queues[own.Name] = c.Queue
	c.Cohorts, c.Admitted = shared.cohorts, shared.admittedTo(own.Name)
	return nil
}

// admittedTo returns what tasks use of a queue and of those that exceed their quota.
func (o *tree) admittedTo(own string) []*explain.AdmittedWorkload {
	if !o.exceeds[own] {
		counts := maps.Clone(o.exceeds)
		counts[own] = true
		return index.AdmittedTo(o.running, counts)
	}
	if o.admitted == nil {
		o.admitted = index.AdmittedTo(o.running, o.exceeds)
	}
	return o.admitted
}

// neverBorrows reports whether the allocation of a ClusterQueue has a strategy without
// borrowing.
func (s *survey) neverBorrows(ctx context.Context, queue string) (bool, error) {
	var allocation v1alpha1.ComputeAllocation
	team := s.teams.OfClusterQueue(queue)
	if team == "" {
		return false, nil
	}
	if err := s.reader.Get(ctx, client.ObjectKey{Name: team}, &allocation); err != nil {
		return false, cluster.Translate("read allocation", client.IgnoreNotFound(err))
	}
	strategy := allocation.Spec.Sharing.Strategy
	return strategy == v1alpha1.Lend || strategy == v1alpha1.DontLend, nil
}

// readQueues reads all ClusterQueues and Cohorts.
func (s *survey) readQueues(ctx context.Context) error {
	if s.queues != nil {
		return nil
	}
	queues, err := cluster.All[kueue.ClusterQueue](ctx, s.reader)
	if err != nil {
		return err
	}
	var cohorts kueue.CohortList
	if err := cluster.List(ctx, s.reader, &cohorts); err != nil {
		return err
	}
	s.queues, s.objects = make(map[string]*kueue.ClusterQueue, len(queues)), quota.NewCohorts(cohorts.Items)
	s.roots = make(map[string]string, len(queues))
	for _, q := range queues {
		s.queues[q.Name], s.roots[q.Name] = q, s.objects.Root(string(q.Spec.CohortName))
	}
	return nil
}

// members returns the queues and the Cohorts of a tree.
func (s *survey) members(root string) *tree {
	o := &tree{queues: map[string]*explain.Queue{}, cohorts: map[string]*explain.Cohort{}, exceeds: map[string]bool{}}
	for _, q := range s.queues {
		if s.roots[q.Name] == root {
			o.queues[q.Name] = s.cohortMember(q)
		}
	}
	for name, c := range s.objects {
		if s.objects.Root(name) == root {
			o.cohorts[name] = &explain.Cohort{Name: name, Title: s.objects.Title(name), Parent: string(c.Spec.ParentName), Weight: weightOf(c.Spec.FairSharing), Limits: limits(c.Spec.ResourceGroups)}
		}
	}
	return o
}

// tree returns a tree of Cohorts, and the tasks that use its quota.
func (s *survey) tree(root string) *tree {
	if found := s.trees[root]; found != nil {
		return found
	}
	o := s.members(root)
	o.running = s.index.SetUsage(o.queues)
	for name, q := range o.queues {
		if q.Borrows() {
			o.exceeds[name] = true
		}
	}
	s.trees[root] = o
	return o
}
