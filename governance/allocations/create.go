package allocations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/rejection"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationRequest holds the id of the form that made an allocation, and a
// digest of what it asked for: the same form sent again, because its answer was
// lost, finds what it made.
const AnnotationRequest = "kuota.dev/request-id"

// writeLimit is how long a write may take, all in all, before the person is
// told that the cluster does not answer. It is well below the web server's own
// limit, which would cut the answer off.
const writeLimit = 8 * time.Second

// MadeBy tells whether the form with this id made an allocation.
func CreatedBy(allocation *v1alpha1.ComputeAllocation, request string) bool {
	id, _, _ := strings.Cut(allocation.Annotations[AnnotationRequest], "/")
	return request != "" && id == request
}

// requestMark is the id of a form with a digest of what it asks for.
func requestMark(request string, allocation *v1alpha1.ComputeAllocation) (string, error) {
	spec, err := json.Marshal(allocation.Spec)
	sum := sha256.Sum256(spec)
	return request + "/" + hex.EncodeToString(sum[:8]), err
}

// Create makes an allocation as user, with its annotation AnnotationReason and
// no other. All that is wrong with it, by itself or
// against the cluster, is returned together as governance.Invalid. pools are
// made first; they stay, should the allocation then be refused. request is the
// id of the form: when the same form made the same allocation before, that is
// success.
func (s *Service) Create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	err := s.create(ctx, user, allocation, pools, request)
	switch governance.KindOf(err) {
	case governance.Forbidden, governance.Unavailable:
		s.Audit.Record(audit.Change{User: user, Action: "create", Object: allocation, New: allocation.Spec, Err: err})
	}
	return translateUnreachable(err)
}

// saveAgain tells somebody whose save was answered by silence what to do.
func translateUnreachable(err error) error {
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Message == cluster.Unreachable {
		ours.Message = "The cluster cannot be reached. Your input is kept: save again in a moment, and it is saved only once."
	}
	return err
}

func (s *Service) create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return err
	}
	wanted, err := s.build(ctx, reader, allocation, pools)
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
	// Asked of the API server rather than the cache, so that a save that was
	// answered by silence is found again.
	var existing v1alpha1.ComputeAllocation
	switch err := writer.Get(ctx, client.ObjectKey{Name: allocation.Name}, &existing); {
	case err == nil && existing.DeletionTimestamp != nil:
		return nameTaken(fmt.Sprintf("team %s is being deleted; wait until it is deleted, or choose another name", allocation.Name))
	case err == nil && existing.Annotations[AnnotationRequest] == mark && request != "":
		// Its answer was lost, perhaps before it was recorded.
		s.Audit.Record(audit.Change{User: user, Action: "create", Object: &existing, New: existing.Spec})
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
		if err := s.make(ctx, writer, created.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		if err := s.addPools(ctx, user, &allocation.Spec, pools); err != nil {
			return err
		}
	}
	if err := s.make(ctx, writer, created); err != nil {
		return err
	}
	s.Audit.Record(audit.Change{User: user, Action: "create", Object: created, New: created.Spec})
	return nil
}

// newAllocation is an allocation as it is sent to be made.
func newAllocation(allocation *v1alpha1.ComputeAllocation) *v1alpha1.ComputeAllocation {
	created := &v1alpha1.ComputeAllocation{Spec: *allocation.Spec.DeepCopy()}
	created.Name = allocation.Name
	v1alpha1.SetReason(created, allocation.Annotations[v1alpha1.AnnotationReason])
	return created
}

func (s *Service) make(ctx context.Context, writer client.Client, allocation *v1alpha1.ComputeAllocation, options ...client.CreateOption) error {
	err := rejection.Translate("create allocation", writer.Create(ctx, allocation, options...))
	if governance.KindOf(err) == governance.Exists {
		return exists(allocation.Name)
	}
	return err
}

func exists(team string) error {
	return nameTaken(fmt.Sprintf("team %s already has an allocation; choose another name", team))
}

// refuse says why a team of that name cannot be made.
func nameTaken(sentence string) error {
	return &governance.Error{
		Kind: governance.Invalid, Op: "create allocation", Message: "The team name is already in use.",
		Fields: []governance.FieldError{{Path: "metadata.name", Message: sentence}},
	}
}
