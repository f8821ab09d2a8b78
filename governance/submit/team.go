package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/elastic"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/manifest"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/constants"
)

// Team contains a team's namespace and queue, and the choices for its tasks.
type Team struct {
	Name, DisplayName string
	Namespace, Queue  string      // the queue is a LocalQueue
	Neighbors         []string    // other teams of Namespace, whose tasks its members see
	Pools             []QueuePool // in the order of the queue's flavors, and then those of shares with quota
	Classes           []PriorityClass
	Numbers           []PriorityClass // of priorities by number; none if the policy allows none
	Shares            []Share         // those whose queues the user may use
	DefaultClass      string          // of the tasks of Queue that name no priority class; empty for none
	// Kinds are the kinds that Kuota writes manifests for, Kueue manages, the API server
	// serves, and the user may create in Namespace. If Kueue's configuration is unknown,
	// Kueue is assumed to manage Jobs only.
	Kinds      []Kind
	KindsKnown bool
	Managed    bool // whether Kueue manages one of these kinds
	// ServiceKinds are as Kinds, of services; none if Kueue's configuration is unknown.
	ServiceKinds          []Kind
	MayScript             bool          // whether the user can create ConfigMaps, which a script needs
	MayForward, MayExpose bool          // whether the user can forward ports of pods, and create Services; false without ServiceKinds
	After                 []tasks.After // what the tasks that are planned wait for, see Service.After
	Priority              string        // by number, of the tasks that are planned; empty for their own
	Writes                bool          // whether the console writes
	AdmissionBlocked      bool          // whether Kueue admits no task while pods of another are not ready
	MaySubmit             bool          // whether the console can submit a task: there are Kinds, and the console writes

	ofShares int // how many of Pools, the last ones, the team's own queue does not cover
}

// MaySubmitElastic reports whether the console can submit an elastic task.
func (t Team) MaySubmitElastic() bool { return t.MaySubmit && slices.Contains(t.Kinds, ElasticJob) }

// Share is a share of a team with its queue.
type Share struct {
	Name, Queue string
	Class       string   // of the tasks that name none; empty for none
	Kinds       []string // of the tasks that use the share if they name none
	Pools       []string // of its ClusterQueue; nil for those of the team's
}

// sharesOf returns the shares of a team that user may use: those without members, and those
// that they are a member of. Admission policies check it again.
func (s *Service) sharesOf(a *v1alpha1.ComputeAllocation, user governance.User) (shares []Share) {
	for _, share := range a.Spec.Shares {
		mine := func(m v1alpha1.Member) bool {
			return m.Kind == "User" && m.Name == user.Name || m.Kind == "Group" && slices.Contains(user.Groups, m.Name)
		}
		if len(share.Members) == 0 || slices.ContainsFunc(share.Members, mine) {
			shares = append(shares, Share{Name: share.Name, Queue: s.Naming.ShareQueue(a.Name, share.Name), Class: className(share.DefaultPriorityClass), Kinds: share.Kinds})
		}
	}
	return shares
}

// Class is a priority class, by the object that tasks name.
type PriorityClass = explain.PriorityClass

// QueuePool is a pool of a team's queue.
type QueuePool struct {
	catalog.Pool
	// NodeSelector and Tolerations let a pod run in the pool. Kueue adds the flavor's own
	// tolerations.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	Nodes        []quota.Resources // allocatable of each node, ready or not
}

// Team is a team that user sees: whose tasks they may list. Any other does not
// exist for them.
func (s *Service) Team(ctx context.Context, user governance.User, name string) (Team, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return Team{}, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return Team{}, err
	}
	var a v1alpha1.ComputeAllocation
	err = cluster.Translate("find team", reader.Get(ctx, client.ObjectKey{Name: name}, &a))
	if err != nil && governance.KindOf(err) != governance.NotFound {
		return Team{}, err
	}
	if err != nil || !scope.Includes(a.Status.Namespace) {
		return Team{}, &governance.Error{Kind: governance.NotFound, Op: "find team", Message: fmt.Sprintf("There is no team %s, or you may not see it.", name)}
	}
	t := Team{Name: a.Name, DisplayName: a.Spec.DisplayName, Namespace: a.Status.Namespace, Queue: cmp.Or(a.Status.LocalQueue, desired.LocalQueueName(&a, s.Naming))}
	t.Shares, t.DefaultClass = s.sharesOf(&a, user), className(a.Spec.DefaultPriorityClass)
	teams, err := clusterstate.ReadTeams(ctx, reader)
	if err != nil {
		return Team{}, err
	}
	t.Neighbors = slices.DeleteFunc(slices.Clone(teams.In(t.Namespace)), func(team string) bool { return team == t.Name })
	policy, err := clusterstate.Policy(ctx, reader)
	if err != nil {
		return Team{}, err
	}
	wait := policy.PodsReady()
	t.AdmissionBlocked = wait != nil && wait.BlockAdmission
	managed, known := kindsOf(policy)
	t.KindsKnown, t.Managed = known, len(managed) > 0
	if t.Kinds, err = s.allowed(ctx, user, managed, t.Namespace); err != nil {
		return Team{}, err
	}
	if !slices.Contains(t.Kinds, Job) { // its pods are tried as a Job first
		t.Kinds = slices.DeleteFunc(t.Kinds, func(k Kind) bool { return k == ElasticJob })
	}
	if err := s.addServices(ctx, user, policy, &t); err != nil {
		return Team{}, err
	}
	if t.MayScript, err = s.Access.May(ctx, user, "create", corev1.SchemeGroupVersion.WithResource("configmaps"), t.Namespace); err != nil {
		return Team{}, err
	}
	classes, err := queries.AllowedPriorityClasses(ctx, reader, policy)
	if err != nil {
		return Team{}, err
	}
	t.Classes, t.Numbers = queries.WithoutNumbers(classes)
	slices.SortStableFunc(t.Classes, func(a, b PriorityClass) int { return cmp.Compare(b.Priority, a.Priority) }) // the highest first
	if err = s.addPools(ctx, reader, &a, &t); err != nil {
		return Team{}, err
	}
	t.Writes = s.Cluster.ReadOnlyReason() == ""
	t.MaySubmit = t.Writes && len(t.Kinds) > 0
	return t, err
}

// addPools adds the pools of a team's ClusterQueue, and of those of its shares.
func (s *Service) addPools(ctx context.Context, reader client.Reader, a *v1alpha1.ComputeAllocation, t *Team) (err error) {
	if t.Pools, err = s.pools(ctx, reader, cmp.Or(a.Status.ClusterQueue, desired.ClusterQueueName(a, s.Naming))); err != nil {
		return err
	}
	for _, status := range a.Status.Shares {
		i := slices.IndexFunc(t.Shares, func(share Share) bool { return share.Name == status.Name })
		if i < 0 {
			continue
		}
		pools, err := s.pools(ctx, reader, status.ClusterQueue)
		if err != nil {
			return err
		}
		for _, pool := range pools {
			if t.Shares[i].Pools = append(t.Shares[i].Pools, pool.Name); !slices.ContainsFunc(t.Pools, func(p QueuePool) bool { return p.Name == pool.Name }) {
				t.Pools = append(t.Pools, pool)
				t.ofShares++
			}
		}
	}
	return nil
}

// pools returns the pools of a ClusterQueue.
func (s *Service) pools(ctx context.Context, reader client.Reader, name string) ([]QueuePool, error) {
	var queue kueue.ClusterQueue
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &queue); err != nil {
		return nil, client.IgnoreNotFound(cluster.Translate("read queue", err))
	}
	types, err := clusterstate.Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return nil, err
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, reader, &nodes); err != nil {
		return nil, err
	}
	var pools []QueuePool
	for of := range quota.Flavors(queue.Spec.ResourceGroups) {
		var flavor kueue.ResourceFlavor
		switch err := reader.Get(ctx, client.ObjectKey{Name: string(of.Name)}, &flavor); {
		case client.IgnoreNotFound(err) != nil:
			return nil, cluster.Translate("read flavor", err)
		case err != nil:
			continue // the queue admits nothing while the flavor is missing
		}
		pool, ok := types.Find(flavor.Name)
		if !ok {
			pool = catalog.Pool{Name: flavor.Name, Instance: catalog.Instance{Type: flavor.Name}}
		}
		pools = append(pools, QueuePool{
			Pool: pool, NodeSelector: flavor.Spec.NodeLabels, Tolerations: tolerations(&flavor.Spec), Nodes: sizes(nodes.Items, flavor.Spec.NodeLabels),
		})
	}
	return pools, nil
}

// sizes returns the allocatable, in the resources of quota, of the nodes with these
// labels. A node that reports none yet is omitted.
func sizes(nodes []corev1.Node, with map[string]string) (sizes []quota.Resources) {
	selector := labels.SelectorFromSet(with)
	for i := range nodes {
		if !selector.Matches(labels.Set(nodes[i].Labels)) {
			continue
		}
		size := quota.Resources{}
		for name, amount := range nodes[i].Status.Allocatable {
			if catalog.IsQuotaResource(string(name)) {
				size[string(name)] = resources.AmountFromQuantity(string(name), amount)
			}
		}
		if size[catalog.CPU] > 0 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// tolerations returns the tolerations that a pod needs for a flavor besides the flavor's
// own, which Kueue adds.
func tolerations(flavor *kueue.ResourceFlavorSpec) (needed []corev1.Toleration) {
	for i := range flavor.NodeTaints {
		taint := &flavor.NodeTaints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || scheduling.TolerationsTolerateTaint(klog.Background(), flavor.Tolerations, taint, false) {
			continue
		}
		t := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
		if taint.Value != "" {
			t.Operator, t.Value = corev1.TolerationOpEqual, taint.Value
		}
		needed = append(needed, t)
	}
	return needed
}

// Service checks and submits tasks. It is safe for concurrent use.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Tasks   *queries.Service
	Naming  desired.Naming
	Kueue   func(context.Context) (kueueconfig.Current, error) // reads Kueue's configuration
	// Manifests keeps the manifests of submitted tasks; nil for none.
	Manifests Manifests
}

// Taken reports whether a task of that kind in the team's namespace has the name.
func (s *Service) Taken(t Team, kind Kind, name string) bool {
	return s.Tasks.Index.Find(t.Namespace, string(kind), name, "") != nil
}

// Plan completes r with defaults. If r is invalid it returns no Plan but all errors;
// their paths are the names of the form's fields.
func (t Team) Plan(r Request) (Plan, []governance.FieldError) { return t.plan(r, false) }

// Complete is Plan for a task that is about to be created: a missing name or image is
// an error too.
func (t Team) Complete(r Request) (Plan, []governance.FieldError) { return t.plan(r, true) }

func (t Team) plan(r Request, complete bool) (Plan, []governance.FieldError) {
	if r.Elastic != nil {
		filled := FillElastic(*r.Elastic, r.Pods)
		r.Elastic = &filled
	}
	r.Kind = r.kind()
	if r.Array != nil {
		if r.Pods = r.Array.AtOnce; r.Pods == 0 {
			r.Pods, r.MinPods = r.Array.Count(), max(r.MinPods, 1)
		}
	}
	r = t.withDefaults(r)
	if class, ok := t.Class(r.Class); ok && r.TimeLimit == 0 && r.Kind != Deployment { // Kueue cannot limit those
		r.TimeLimit = class.DefaultTimeLimit
	}
	wrong := r.validate(t, complete)
	p := Plan{Request: r, Team: t}
	p.Team.Queue, _ = t.share(r.Share)
	var ok bool
	if p.QueuePool, ok = t.pool(r.Pool); ok && r.PerPod.Instances == nil {
		p.AnyOf = t.anyOf(r)
		resources, more := FillAny(r.PerPod, r.Pods, append(p.AnyOf, p.QueuePool)...)
		p.PodResources, wrong = resources, append(wrong, more...)
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	return p, nil
}

// withDefaults returns a request with the share of its kind and the priority class of its queue, if
// it names none.
func (t Team) withDefaults(r Request) Request {
	if r.Share == "" {
		r.Share, _ = t.shareOf("", r.kind())
	}
	r.Class = cmp.Or(r.Class, t.defaultClass(r.Share))
	return r
}

// className returns the object of a priority class of the policy; empty for none.
func className(name string) string {
	if name == "" {
		return ""
	}
	return desired.PriorityClassName(name)
}

// PlanElasticJob plans an ElasticJob that was read from a manifest, in the team's
// namespace and queue. changed are the values that the team's replace. If the job is
// invalid it returns no Plan but all errors; their paths are those of the ElasticJob.
func (t Team) PlanElasticJob(e *v1alpha1.ElasticJob) (p Plan, changed, wrong governance.FieldErrors) {
	e = e.DeepCopy()
	replace := func(path string, value *string, by string) {
		if *value != "" && *value != by {
			changed.Addf(path, "is %s; the team's %s is used", *value, by)
		}
		*value = by
	}
	queue := e.Labels[constants.QueueLabel]
	replace("metadata.namespace", &e.Namespace, t.Namespace)
	share, of := t.shareOf(queue, ElasticJob)
	replace("metadata.labels["+constants.QueueLabel+"]", &queue, of)
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	e.Labels[constants.QueueLabel] = queue

	wrong = manifest.CheckElasticJob(e, "")
	wrong.Add("spec.elasticPolicy.growth", t.checkGrowth(&e.Spec.ElasticPolicy))
	more, invalid := t.takeNumber(e.Labels, e.Annotations)
	changed, wrong = append(changed, more...), append(wrong, invalid...)
	if class := t.defaultClass(share); class != "" && e.Labels[constants.WorkloadPriorityClassLabel] == "" {
		e.Labels[constants.WorkloadPriorityClassLabel] = class
	}
	class := e.Labels[constants.WorkloadPriorityClassLabel]
	limits, ok := t.Class(class)
	if !ok {
		wrong.Add("metadata.labels["+constants.WorkloadPriorityClassLabel+"]", noClass(class, t))
	}
	if e.Spec.ActiveDeadlineSeconds == nil && limits.DefaultTimeLimit > 0 {
		e.Spec.ActiveDeadlineSeconds = new(int64(limits.DefaultTimeLimit))
	}
	wrong.Add("spec.activeDeadlineSeconds", t.checkTimeLimit(class, ptr.Deref(e.Spec.ActiveDeadlineSeconds, 0)))
	if len(wrong) > 0 {
		return Plan{}, changed, wrong
	}
	spec := &e.Spec.Template.Spec
	policy := e.Spec.ElasticPolicy
	p = Plan{
		Request:   Request{Kind: ElasticJob, Name: e.Name, Class: class, Pods: policy.MinReplicas, Image: spec.Containers[0].Image, Elastic: &policy},
		Team:      t,
		QueuePool: t.selected(elastic.Base(e).Spec.Template.Spec.NodeSelector), PodResources: quotaRequests(spec), read: e,
	}
	p.Pool, p.Share, p.Team.Queue = p.QueuePool.Name, share, of
	return p, changed, nil
}

// selected returns the only pool of the team that pods with this node selector can run in;
// the zero value if several or none are.
func (t Team) selected(nodes map[string]string) (only QueuePool) {
	found := 0
	for _, pool := range t.Pools {
		matches := true
		for label, value := range pool.NodeSelector {
			if selected, ok := nodes[label]; ok && selected != value {
				matches = false
			}
		}
		if matches {
			only = pool
			found++
		}
	}
	if found != 1 {
		return QueuePool{}
	}
	return only
}
