package allocations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/managed"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/quota/effective"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/spec/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationRequest has the ID of the form that created an allocation and a
// digest of its spec. A form that is sent again, because its response was lost,
// finds the allocation that it created.
const AnnotationRequest = "kuota.dev/request-id"

// CreatedBy reports whether the form with this ID created an object.
func CreatedBy(object client.Object, request string) bool {
	id, _, _ := strings.Cut(object.GetAnnotations()[AnnotationRequest], "/")
	return request != "" && id == request
}

// RequestMark returns the value of AnnotationRequest.
func RequestMark(request string, spec any) (string, error) {
	text, err := json.Marshal(spec)
	sum := sha256.Sum256(text)
	return request + "/" + hex.EncodeToString(sum[:8]), err
}

// Create creates an allocation as user, with its annotation AnnotationReason and
// no other. It returns governance.Invalid with all errors, of the allocation
// itself and of conflicts with the cluster. It creates pools first; they stay if
// the allocation is then rejected. request is the ID of the form: if the same
// form created the same allocation before, Create succeeds.
func (s *Service) Create(ctx context.Context, user governance.User, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.WriteLimit)
	defer cancel()
	err := s.create(ctx, user, state, allocation, pools, request)
	switch governance.KindOf(err) {
	case governance.Forbidden, governance.Unavailable:
		s.Audit.Record(audit.Change{User: user, Action: audit.Create, Object: allocation, New: allocation.Spec, Err: err})
	}
	return TranslateUnreachable(err)
}

// TranslateUnreachable adds to an error what the user can do after a save without
// a response.
func TranslateUnreachable(err error) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Your input is kept: save again in a moment, and it is saved only once."
	}
	return err
}

func (s *Service) create(ctx context.Context, user governance.User, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return err
	}
	writer, _, err := s.writer(ctx, user, newAllocation(allocation), "create allocation")
	if err != nil {
		return err
	}
	wanted, err := s.build(ctx, state, allocation, pools)
	if err != nil {
		return err
	}

	mark, err := RequestMark(request, allocation.Spec)
	if err != nil {
		return &governance.Error{Op: "create allocation", Message: "The allocation cannot be encoded.", Err: err}
	}
	// Read from the API server instead of the cache, to find a save whose
	// response was lost.
	var existing v1alpha1.ComputeAllocation
	switch err := writer.Get(ctx, client.ObjectKey{Name: allocation.Name}, &existing); {
	case err == nil && existing.DeletionTimestamp != nil:
		return nameTaken(fmt.Sprintf("team %s is being deleted; wait until it is deleted, or choose another name", allocation.Name))
	case err == nil && existing.Annotations[AnnotationRequest] == mark && request != "":
		// The response was lost, possibly before the audit record.
		s.Audit.Record(audit.Change{User: user, Action: audit.Create, Object: &existing, New: existing.Spec})
		return nil
	case err == nil && CreatedBy(&existing, request):
		return nameTaken(fmt.Sprintf("team %s was already saved with the earlier values of this form; your later changes are not saved", allocation.Name))
	case err == nil:
		return exists(allocation.Name)
	case client.IgnoreNotFound(err) != nil:
		return cluster.Translate("create allocation", err)
	}
	if err := wanted.checkConflicts(ctx, reader, allocation); err != nil {
		return err
	}

	created := newAllocation(allocation)
	if request != "" {
		if created.Annotations == nil {
			created.Annotations = map[string]string{}
		}
		created.Annotations[AnnotationRequest] = mark
	}
	if len(pools) > 0 {
		if err := s.send(ctx, writer, created.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		if err := s.addPools(ctx, user, &allocation.Spec, pools); err != nil {
			return err
		}
	}
	if err := s.send(ctx, writer, created); err != nil {
		return err
	}
	s.Audit.Record(audit.Change{User: user, Action: audit.Create, Object: created, New: created.Spec})
	s.Cluster.WaitForCache(ctx, created)
	return nil
}

// newAllocation returns the object that Create sends.
func newAllocation(allocation *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	created := &v1alpha1.ComputeAllocation{Spec: *allocation.Spec.DeepCopy()}
	created.Name = allocation.Name
	v1alpha1.SetReason(created, allocation.Annotations[v1alpha1.AnnotationReason])
	return created
}

func (s *Service) send(ctx context.Context, writer client.Client, allocation *v1alpha1.ComputeAllocation, options ...client.CreateOption) error {
	err := rejection.Translate("create allocation", writer.Create(ctx, allocation, options...))
	if governance.KindOf(err) == governance.Exists {
		return exists(allocation.Name)
	}
	return err
}

func exists(team string) error {
	return nameTaken(fmt.Sprintf("team %s already has an allocation; choose another name", team))
}

// nameTaken returns the error for a team name that is in use.
func nameTaken(sentence string) error {
	return &governance.Error{
		Kind: governance.Invalid, Op: "create allocation", Message: "The team name is already in use.",
		Fields: []governance.FieldError{{Path: "metadata.name", Message: sentence}},
	}
}

// wanted are the objects of an allocation, in the catalog with the pools that
// are created with it.
type wanted struct {
	types     catalog.Catalog
	objects   desired.Objects
	namespace string // of the allocation as it is; empty for a new one
}

// build returns the objects of an allocation under a state, or governance.Invalid with all its
// errors.
func (s *Service) build(ctx context.Context, state State, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (wanted, error) {
	types, saved := state.Types.With(pools...), state.find(allocation.Name)
	errs, err := s.checkPools(ctx, &allocation.Spec, pools)
	if err != nil {
		return wanted{}, err
	}
	var before client.Object
	if saved != nil && allocation.ResourceVersion != "" {
		before = saved
	}
	errs = append(errs, schema.ComputeAllocation.Validate(allocation, before)...)
	errs = append(errs, effective.Problems(&allocation.Spec, time.Now())...)
	errs = append(errs, quota.CheckWindows(&allocation.Spec, types)...)
	objects, more := desired.Build(withActive(allocation, saved), types, s.Naming.Under(state.Policy).In(state.departments), desired.RankingOf(state.Policy))
	if errs = append(errs, more...); len(errs) == 0 {
		errs = append(state.Refused(allocation, saved, types), state.Departments.CheckTeam(allocation, saved)...)
	}
	if len(errs) > 0 {
		return wanted{}, invalid("Some values are not valid. Correct the marked fields.", errs)
	}
	if saved != nil {
		return wanted{types, objects, saved.Status.Namespace}, nil
	}
	return wanted{types, objects, ""}, nil
}

// Refused returns the quota that raises the sum of all teams beyond what the policy allows,
// with paths by row and by window from spec. saved is nil for a new allocation. It is pure.
func (s State) Refused(allocation, saved *v1alpha1.ComputeAllocation, types catalog.Catalog) (errs governance.FieldErrors) {
	if s.Policy == nil || len(s.Policy.Spec.OverAllocationLimits) == 0 {
		return nil
	}
	others := quota.Allocated(s.all, types, allocation.Name)
	sum := func(spec *v1alpha1.ComputeAllocationSpec) (quota.PoolResources, quota.Resolved) {
		all := quota.PoolResources{}
		for pool, amounts := range others {
			all.Add(pool, amounts)
		}
		resolved, _ := quota.Resolve(spec, types)
		all.AddNominal(resolved)
		return all, resolved
	}
	was := &v1alpha1.ComputeAllocationSpec{}
	if saved != nil {
		was = &saved.Spec
	}
	before, _ := sum(was)
	after, resolved := sum(&allocation.Spec)
	refused := quota.Refused(s.Policy, before, after, types)
	for row, pool := range resolved.Total().Pools { // of the team's rows, and then of shares
		of := slices.DeleteFunc(slices.Clone(refused), func(e quota.Excess) bool { return e.Pool != pool.Name })
		path := "spec.shares"
		if row < len(resolved.Pools) {
			path = fmt.Sprintf("spec.quota[%d]", row)
		}
		errs.Add(path, quota.DescribeRefused(of))
	}
	for i, window := range allocation.Spec.Windows {
		in, now := effective.InWindow(was, window.Name), effective.InWindow(&allocation.Spec, window.Name)
		before, _ := sum(&in)
		if after, _ := sum(&now); len(refused) == 0 && len(window.Quota) > 0 {
			errs.Add(fmt.Sprintf("spec.windows[%d].quota", i), quota.DescribeRefused(quota.Refused(s.Policy, before, after, types)))
		}
	}
	return errs
}

// find returns the saved allocation of a team; nil for none.
func (s State) find(team string) *v1alpha1.ComputeAllocation {
	i := slices.IndexFunc(s.all, func(a v1alpha1.ComputeAllocation) bool { return a.Name == team })
	if i < 0 {
		return nil
	}
	return &s.all[i]
}

// withActive returns an allocation with what is active now. saved is nil for a new one.
func withActive(allocation, saved *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	now := *allocation
	if saved != nil {
		now.Status.Budget = saved.Status.Budget
	}
	in, _ := effective.At(&now, time.Now())
	return effective.Allocation(&now, in)
}

// checkConflicts returns governance.Invalid if existing objects conflict with the
// allocation.
func (w wanted) checkConflicts(ctx context.Context, reader client.Reader, allocation *v1alpha1.ComputeAllocation) error {
	of := *allocation
	of.Status.Namespace = w.namespace
	conflicts, err := managed.Conflicts(ctx, reader, &of, w.objects)
	if err == nil && len(conflicts) > 0 {
		err = invalid("Objects in the cluster conflict with this. See the marked fields.", conflicts)
	}
	return err
}

func invalid(message string, errs []governance.FieldError) error {
	return &governance.Error{Kind: governance.Invalid, Op: "check allocation", Message: message, Fields: errs}
}

// namespaceOf returns the namespace of the tasks of a team.
func (s *Service) namespaceOf(allocation *v1alpha1.ComputeAllocation) string {
	return desired.NamespaceName(allocation, s.Naming)
}
