package allocations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/rejection"
	"kuota.dev/kuota/governance/record/audit"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationRequest has the ID of the form that created an allocation and a
// digest of its spec. A form that is sent again, because its response was lost,
// finds the allocation that it created.
const AnnotationRequest = "kuota.dev/request-id"

// CreatedBy reports whether the form with this ID created an allocation.
func CreatedBy(allocation *v1alpha1.ComputeAllocation, request string) bool {
	id, _, _ := strings.Cut(allocation.Annotations[AnnotationRequest], "/")
	return request != "" && id == request
}

// requestMark returns the value of AnnotationRequest.
func requestMark(request string, allocation *v1alpha1.ComputeAllocation) (string, error) {
	spec, err := json.Marshal(allocation.Spec)
	sum := sha256.Sum256(spec)
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
	return translateUnreachable(err)
}

// translateUnreachable adds to an error what the user can do after a save without
// a response.
func translateUnreachable(err error) error {
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
	wanted, err := s.build(ctx, state, allocation, pools)
	if err != nil {
		return err
	}
	writer, err := s.Cluster.ClientAs(user)
	if err != nil {
		return err
	}

	mark, err := requestMark(request, allocation)
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
