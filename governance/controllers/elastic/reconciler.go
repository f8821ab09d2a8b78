package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/report/accounting"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/queries"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fieldOwner is the field manager of what this package writes.
const fieldOwner = client.FieldOwner(cluster.FieldManager + "-elastic")

const (
	// lookAgain is how often a job below its maximum looks for room, and a job above its
	// minimum for claims.
	lookAgain = 500 * time.Millisecond
	// staleInterval is after how long a job is reconciled again that changed meanwhile.
	staleInterval = 50 * time.Millisecond
	// blockedInterval is how often a Job that cannot be created is tried again.
	blockedInterval = 5 * time.Second
)

// Rooms returns the room for growth now, beside increments.
type Rooms func(ctx context.Context, increments []queries.Proposal) (*queries.Rooms, error)

// Claims returns the growth that waiting tasks are entitled to.
type Claims func(ctx context.Context) ([]queries.Claimed, error)

// Sources returns whose idle compute the growth of a job uses, of whose pods a number has
// quota; nil while that is not known.
type Sources func(ctx context.Context, job *v1alpha1.ElasticJob, pods int32) (*v1alpha1.IdleSources, error)

// Reconciler carries out the decisions about ElasticJobs. It reconciles one at a time,
// so that two jobs do not grow into the same room.
type Reconciler struct {
	client.Client               // reads from the cache of the console, and writes
	APIReader     client.Reader // reads from the API server
	Parts         client.Reader // a cache of Jobs and Services with v1alpha1.LabelElasticJobUID
	Options
	Now func() time.Time

	memory memory
}

// NewReconciler returns a Reconciler whose clock is that of the machine.
func NewReconciler(of client.Client, api, parts client.Reader, options Options) *Reconciler {
	return &Reconciler{Client: of, APIReader: api, Parts: parts, Options: options, Now: time.Now, memory: newMemory()}
}

// Reconcile decides about one ElasticJob and carries out the decision.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &v1alpha1.ElasticJob{}
	if err := r.Get(ctx, request.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	parts, err := r.read(ctx, e)
	if err != nil {
		return ctrl.Result{}, err
	}
	if e.DeletionTimestamp != nil {
		return r.finalize(ctx, e, parts)
	}
	if e.Status.State.Finished() && len(parts) <= 1 {
		return ctrl.Result{}, nil
	}
	if err := r.patchFinalizers(ctx, e, controllerutil.AddFinalizer); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o, err := r.observe(ctx, e, parts)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.setClaimed(ctx, &o); err != nil {
		return ctrl.Result{}, err
	}
	looking, err := r.findRoom(ctx, &o)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := Decide(o, r.Now())
	if len(d.Create) > 0 && r.memory.forgetRooms() { // the room may be gone
		if _, err := r.findRoom(ctx, &o); err != nil {
			return ctrl.Result{}, err
		}
		d = Decide(o, r.Now())
	}
	if err := r.selectNodes(ctx, e, d.Create); err != nil {
		return ctrl.Result{}, err
	}
	if !r.setSources(ctx, o, &d) {
		return ctrl.Result{RequeueAfter: staleInterval}, nil
	}
	err = r.apply(ctx, e, parts, d)
	blocked := asBlocked(err)
	if blocked != nil {
		err = nil
	}
	if err == nil {
		err = r.report(ctx, e, map[string]*blockedError{v1alpha1.ConditionJobsCreated: blocked, v1alpha1.ConditionProvisioning: o.provisionBlocked})
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: staleInterval}, nil // the cache is behind
	case err != nil:
		return ctrl.Result{}, err
	case blocked != nil:
		return ctrl.Result{RequeueAfter: blockedInterval}, nil
	}
	after := d.After
	if (looking || len(o.Increments) > 0) && (after == 0 || after > lookAgain) {
		after = lookAgain
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// setSources records whose idle compute a job has just grown into, in the event about that. It
// returns false while that can become known: the index hears of an admission as the controller
// does, and at times later.
func (r *Reconciler) setSources(ctx context.Context, o Observed, d *Decision) bool {
	all := d.Status.ScaleEvents
	if n := len(all); n == 0 || all[n-1].Cause != v1alpha1.ScaleIdleCompute || equality.Semantic.DeepEqual(all, o.Job.Status.ScaleEvents) {
		return true
	}
	pods := o.Base.Pods
	for _, p := range o.Increments {
		if p.Phase == Admitted {
			pods += p.Pods
		}
	}
	sources, err := r.Sources(ctx, o.Job, pods)
	if err != nil { // the job goes on without
		ctrl.LoggerFrom(ctx).Error(err, "cannot find whose idle compute growth uses")
	}
	if sources == nil && len(d.Delete) == 0 && r.memory.mayWaitForSources(o.Job.UID, r.Now()) {
		return false
	}
	delete(r.memory.grown, o.Job.UID)
	all[len(all)-1].Idle = sources
	return true
}

// setClaimed sets which increments a waiting task is entitled to.
func (r *Reconciler) setClaimed(ctx context.Context, o *Observed) error {
	if len(o.Increments) == 0 {
		return nil
	}
	claims, err := r.memory.claimed(r.Now(), func() ([]queries.Claimed, error) { return r.Claims(ctx) })
	if err != nil {
		return err
	}
	for i := range o.Increments {
		p := &o.Increments[i]
		if j := slices.IndexFunc(claims, func(c queries.Claimed) bool { return c.Growth == p.workload }); j >= 0 && p.Phase == Admitted {
			p.ClaimedBy = claims[j].By
		}
	}
	return nil
}

// findRoom sets which sizes fit, and reports whether the job can grow at all.
func (r *Reconciler) findRoom(ctx context.Context, o *Observed) (looking bool, err error) {
	e := o.Job
	if o.Base == nil || o.Base.Phase != Admitted || e.Spec.Suspend {
		r.memory.forgetFits(e.UID)
		return false, nil
	}
	size := o.Base.Pods
	for _, p := range o.Increments {
		if !p.Deleting && (p.Phase == Admitted || p.Phase == Waiting) {
			size += p.Pods
		}
	}
	most := e.Spec.ElasticPolicy.MaxReplicas - size
	if err := r.setProvision(ctx, o); err != nil {
		return false, err
	}
	if most <= 0 {
		r.memory.forgetFits(e.UID)
		return false, nil
	}
	rooms, err := r.memory.roomsSince(r.Now(), func() (*queries.Rooms, error) {
		increments, err := r.increments(ctx)
		if err != nil {
			return nil, err
		}
		return r.Rooms(ctx, increments)
	})
	if err != nil {
		return false, err
	}
	p := proposal(Increment(e, NewPart{Increment: 1, Pods: most}))
	room, err := rooms.Pods(ctx, p)
	if err != nil {
		return false, err
	}
	uncertain := rooms.Waiting
	for _, part := range append(slices.Clone(o.Increments), *o.Base) { // its pods get these nodes first
		if part.Phase == Admitted && !part.Deleting {
			room -= part.Unscheduled
			uncertain = uncertain || part.Unscheduled > 0 && !part.Provision
		}
	}
	o.FitsSince = r.memory.fitsSince(fitKey{job: e.UID}, e.Spec.ElasticPolicy, size, room, uncertain, r.Now())
	if o.MayProvision {
		if room, err = rooms.QuotaPods(ctx, p); err != nil {
			return false, err
		}
		o.QuotaFitsSince = r.memory.fitsSince(fitKey{e.UID, true}, e.Spec.ElasticPolicy, size, room, rooms.Waiting, r.Now())
	}
	if rooms.Arriving {
		o.FitsSince, o.QuotaFitsSince = nil, nil
	}
	return true, nil
}

// selectNodes sets on which nodes growth that is to be created runs: on the cheapest that have
// room for it.
func (r *Reconciler) selectNodes(ctx context.Context, e *v1alpha1.ElasticJob, parts []NewPart) error {
	i := slices.IndexFunc(parts, func(p NewPart) bool { return !p.Guaranteed }) // there is at most one
	if i < 0 || r.memory.rooms == nil {
		return nil
	}
	policy, err := clusterstate.Policy(ctx, r.Client)
	if err != nil || policy == nil || policy.Spec.Prices == nil {
		return err
	}
	prices, p := accounting.PricesOf(policy.Spec.Prices), proposal(Increment(e, parts[i]))
	parts[i].NodeSelector, err = r.memory.rooms.Cheapest(ctx, p, !parts[i].Provision, func(flavor string) *big.Rat {
		own, _, known := prices.Hour(flavor, p.PodSets[0].Requests, r.Now())
		if !known {
			return nil
		}
		return own
	})
	return err
}

// setProvision sets whether the job can ask for nodes, and why not.
func (r *Reconciler) setProvision(ctx context.Context, o *Observed) error {
	if !o.Job.Spec.ElasticPolicy.Provisions() {
		return nil
	}
	policy, err := clusterstate.Policy(ctx, r.Client)
	if err != nil {
		return err
	}
	wait := policy.PodsReady()
	if wait != nil {
		o.PodsReadyTimeout = wait.Timeout.Duration
	}
	if wait != nil && wait.BlockAdmission {
		o.provisionBlocked = &blockedError{v1alpha1.ReasonAdmissionBlocked, "growth does not ask for nodes: " + AdmissionBlocked}
		return nil
	}
	exists, err := r.memory.classExists(r.Now(), func() error {
		return r.APIReader.Get(ctx, client.ObjectKey{Name: v1alpha1.ProvisionClass}, &schedulingv1.PriorityClass{})
	})
	if err != nil {
		return fmt.Errorf("read PriorityClass %s: %w", v1alpha1.ProvisionClass, err)
	}
	if !exists {
		o.provisionBlocked = &blockedError{v1alpha1.ReasonClassMissing, "growth does not ask for nodes: the PriorityClass " + v1alpha1.ProvisionClass + " does not exist, or the console may not read it. Apply deploy/rbac/provision.yaml and console.yaml, or update the chart"}
		return nil
	}
	o.MayProvision = true
	return nil
}

// increments returns the increments of all ElasticJobs that have not ended.
func (r *Reconciler) increments(ctx context.Context) (list []queries.Proposal, err error) {
	var all batchv1.JobList
	if err := r.Parts.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Jobs of ElasticJobs: %w", err)
	}
	cached := map[types.NamespacedName]bool{}
	workloads := map[string]map[types.UID][]*kueue.Workload{} // by namespace
	for i := range all.Items {
		job := &all.Items[i]
		cached[client.ObjectKeyFromObject(job)] = true
		if job.Labels[v1alpha1.LabelElasticIncrement] == "0" || r.memory.isDeleted(job) || endOf(job) != "" {
			continue
		}
		if workloads[job.Namespace] == nil {
			if workloads[job.Namespace], err = r.workloads(ctx, job.Namespace); err != nil {
				return nil, err
			}
		}
		p := proposal(job)
		for _, w := range workloads[job.Namespace][job.UID] {
			p.Workload = w.UID
		}
		list = append(list, p)
	}
	return append(list, r.memory.createdWithout(func(job types.NamespacedName) bool { return cached[job] }, r.Now())...), nil
}

// proposal returns an increment as a task that is not submitted.
func proposal(job *batchv1.Job) queries.Proposal {
	spec, n := &job.Spec.Template.Spec, ptr.Deref(job.Spec.Parallelism, 0)
	return queries.Proposal{
		Namespace: job.Namespace, Queue: job.Labels[tasks.QueueLabel], Priority: desired.GrowthPriority,
		PodSets: []explain.PodSet{{Name: "main", Count: n, MinCount: n, Requests: tasks.PodRequests(spec), Spec: spec}},
	}
}

// apply carries out a decision. The status comes first: it records that growth was taken
// back, which the deleted increment shows no longer.
func (r *Reconciler) apply(ctx context.Context, e *v1alpha1.ElasticJob, parts jobs, d Decision) error {
	if !equality.Semantic.DeepEqual(e.Status, d.Status) {
		before := e.DeepCopy()
		e.Status = d.Status
		if err := r.Status().Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	var failed []error
	for _, deletion := range d.Delete {
		if deletion.Cause == NotAdmitted {
			r.memory.forgetFits(e.UID)
		}
		if deletion.Cause == v1alpha1.ScaleNodeLost { // the others get time to find a node
			for _, job := range parts {
				r.memory.forgetFault(job.UID)
			}
		}
		failed = append(failed, r.deleteJob(ctx, parts[deletion.Increment]))
	}
	if d.DeleteBase {
		failed = append(failed, r.deleteJob(ctx, parts[0]))
	}
	if base := parts[0]; base != nil && !r.memory.isDeleted(base) && !d.DeleteBase && !d.Status.State.Finished() {
		failed = append(failed, r.setActive(ctx, e, base))
		for _, job := range parts {
			failed = append(failed, r.setClass(ctx, e, job))
		}
	}
	if d.CreateBase {
		failed = append(failed, r.create(ctx, e, Service(e)), r.create(ctx, e, Base(e)))
	}
	if len(d.Create) > 0 {
		if err := r.applyGrowthClass(ctx); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	for _, p := range d.Create {
		job := Increment(e, p)
		keepScaleConfig(job, parts[0])
		r.memory.recordCreation(client.ObjectKeyFromObject(job), proposal(job), r.Now())
		r.memory.forgetRooms()
		failed = append(failed, r.create(ctx, e, job))
	}
	return errors.Join(failed...)
}

// deleteJob deletes a Job, and its pods with their grace period.
func (r *Reconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if job == nil || r.memory.isDeleted(job) {
		return nil
	}
	background, uid := metav1.DeletePropagationBackground, job.UID
	err := r.Delete(ctx, job, &client.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict is another Job of the same name
		return fmt.Errorf("delete Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	r.memory.recordDeletion(job.UID, r.Now())
	return nil
}

// setActive activates the Workload of the base, or deactivates it while the job is
// suspended.
func (r *Reconciler) setActive(ctx context.Context, e *v1alpha1.ElasticJob, base *batchv1.Job) error {
	workloads, err := r.workloads(ctx, e.Namespace)
	if err != nil {
		return err
	}
	for _, w := range workloads[base.UID] {
		_, held := loopguard.MarkOf(w) // the loop guard activates it again
		if active := w.Spec.Active == nil || *w.Spec.Active; held || active != e.Spec.Suspend {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"active":%t}}`, !e.Spec.Suspend)
		if err := r.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, patch), fieldOwner); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("set active of Workload %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	return nil
}

// setClass sets the priority class of a Job that is not growth, which Kueue copies to its
// Workload.
func (r *Reconciler) setClass(ctx context.Context, e *v1alpha1.ElasticJob, job *batchv1.Job) error {
	class := e.Labels[desired.PriorityClassLabel]
	if now := job.Labels[desired.PriorityClassLabel]; class == "" || now == class || now == desired.GrowthClass {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": job.UID, "labels": map[string]string{desired.PriorityClassLabel: class}}})
	if err != nil {
		return err
	}
	if err := r.Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, patch), fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set the priority class of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// applyGrowthClass creates the priority class of growth unless it exists.
func (r *Reconciler) applyGrowthClass(ctx context.Context) error {
	var class kueue.WorkloadPriorityClass
	switch err := r.Get(ctx, client.ObjectKey{Name: desired.GrowthClass}, &class); {
	case err == nil && class.Value == desired.GrowthPriority:
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read WorkloadPriorityClass %s: %w", desired.GrowthClass, err)
	}
	if err := r.Apply(ctx, desired.Growth(), client.FieldOwner(cluster.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply WorkloadPriorityClass %s: %w", desired.GrowthClass, err)
	}
	return nil
}

// finalize deletes the parts of a deleted ElasticJob, and then its finalizer. While its
// CustomResourceDefinition is deleted, and in a namespace that is no longer a team's, the
// parts stay.
func (r *Reconciler) finalize(ctx context.Context, e *v1alpha1.ElasticJob, parts jobs) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(e, v1alpha1.ElasticFinalizer) {
		return ctrl.Result{}, nil
	}
	release, err := clusterstate.CRDsDeleted(ctx, r.APIReader, "elasticjobs")
	if err != nil {
		return ctrl.Result{}, err
	}
	if !release {
		var failed []error
		for _, job := range parts {
			failed = append(failed, r.deleteJob(ctx, job))
		}
		failed = append(failed, r.deleteService(ctx, e))
		err := errors.Join(failed...)
		release = apierrors.IsForbidden(err) // the team was deleted: Kuota does not write to its namespace any more
		if err != nil && !release {
			return ctrl.Result{}, err
		}
		if len(parts) > 0 && !release { // an event follows when they are deleted
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
	}
	uids := make([]types.UID, 0, len(parts))
	for _, job := range parts {
		uids = append(uids, job.UID)
	}
	r.memory.forget(e.UID, uids...)
	return ctrl.Result{}, client.IgnoreNotFound(r.patchFinalizers(ctx, e, controllerutil.RemoveFinalizer))
}

// patchFinalizers writes the finalizers that change sets, and nothing else.
func (r *Reconciler) patchFinalizers(ctx context.Context, e *v1alpha1.ElasticJob, change func(client.Object, string) bool) error {
	before := e.DeepCopy()
	if !change(e, v1alpha1.ElasticFinalizer) {
		return nil
	}
	return r.Patch(ctx, e, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
}
