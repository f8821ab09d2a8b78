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
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"

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
func MadeBy(allocation *v1alpha1.ComputeAllocation, request string) bool {
	id, _, _ := strings.Cut(allocation.Annotations[AnnotationRequest], "/")
	return request != "" && id == request
}

// requestMark is the id of a form with a digest of what it asks for.
func requestMark(request string, allocation *v1alpha1.ComputeAllocation) (string, error) {
	spec, err := json.Marshal(allocation.Spec)
	sum := sha256.Sum256(spec)
	return request + "/" + hex.EncodeToString(sum[:8]), err
}

// Service answers the pages about allocations.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Naming  desired.Naming
}

// State is the cluster as one person may see it at one moment.
type State struct {
	Allocations []v1alpha1.ComputeAllocation // those that the person may see, by name
	Types       catalog.Catalog
	Given       Given // by all allocations, seen or not
	Others      Given // by those that the person may not see
	All         bool  // whether the person may see every team, of now and later
}

// Ready is nil once there is something to show.
func (s *Service) Ready() error {
	_, err := s.Cluster.Reader()
	return err
}

// MayCreate tells whether user is shown the way to make an allocation. The API
// server decides again when they do.
func (s *Service) MayCreate(ctx context.Context, user governance.User) (bool, error) {
	return s.Access.MayCreateAllocations(ctx, user)
}

// State reads the allocations that user may see, and the catalog, from the
// cache. The allocations are shared with it: read only.
func (s *Service) State(ctx context.Context, user governance.User) (State, error) {
	reader, err := s.Cluster.Reader()
	if err != nil {
		return State{}, err
	}
	scope, err := s.Access.Scope(ctx, user)
	if err != nil {
		return State{}, err
	}
	var list v1alpha1.ComputeAllocationList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return State{}, cluster.Translate("list allocations", err)
	}
	types, err := Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return State{}, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ComputeAllocation) int { return strings.Compare(a.Name, b.Name) })
	state := State{Allocations: list.Items, Types: types, Given: GivenOut(list.Items, types, "")}
	if state.All = scope.All; state.All {
		return state, nil
	}
	var others []v1alpha1.ComputeAllocation
	state.Allocations = nil
	for _, allocation := range list.Items {
		if scope.Sees(allocation.Status.Namespace) {
			state.Allocations = append(state.Allocations, allocation)
		} else {
			others = append(others, allocation)
		}
	}
	state.Others = GivenOut(others, types, "")
	if len(state.Allocations) > 0 {
		return state, nil
	}
	// What all teams have together is for those who are in one, and for whoever
	// may make them.
	may, err := s.MayCreate(ctx, user)
	if err == nil && !may {
		err = access.Outside()
	}
	return state, err
}

// Teams are the teams by the namespaces that are theirs, as the controller
// says: labels of a namespace may be somebody's who is in it.
func Teams(ctx context.Context, reader client.Reader) (map[string]string, error) {
	var list v1alpha1.ComputeAllocationList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, cluster.Translate("list allocations", err)
	}
	teams := make(map[string]string, len(list.Items))
	for i := range list.Items {
		if namespace := list.Items[i].Status.Namespace; namespace != "" {
			teams[namespace] = list.Items[i].Name
		}
	}
	return teams, nil
}

// Create makes an allocation as user. All that is wrong with it, by itself or
// against the cluster, is returned together as governance.Invalid. request is
// the id of the form: when the same form made the same allocation before, that
// is success.
func (s *Service) Create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, request string) error {
	err := s.create(ctx, user, allocation, request)
	switch governance.KindOf(err) {
	case governance.Forbidden, governance.Unavailable:
		s.Audit.Record(audit.Change{User: user, Action: "create", Object: allocation, New: allocation.Spec, Err: err})
	}
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Unavailable {
		ours.Message = "The cluster cannot be reached. Nothing you typed is lost: save again in a moment. It is saved once, even if it arrived already."
	}
	return err
}

func (s *Service) create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, request string) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	reader, err := s.Cluster.Reader()
	if err != nil {
		return err
	}
	types, err := Catalog(ctx, reader, s.Naming.InstanceTypeLabel)
	if err != nil {
		return err
	}
	objects, wrong := desired.Build(allocation, types, s.Naming)
	if len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "create allocation", Message: "Some values need another look.", Fields: wrong}
	}
	writer, err := s.Cluster.As(user)
	if err != nil {
		return err
	}

	mark, err := requestMark(request, allocation)
	if err != nil {
		return &governance.Error{Op: "create allocation", Message: "The allocation could not be written down.", Err: err}
	}
	// Asked of the API server rather than the cache, so that a save that was
	// answered by silence is found again.
	var existing v1alpha1.ComputeAllocation
	switch err := writer.Get(ctx, client.ObjectKey{Name: allocation.Name}, &existing); {
	case err == nil && existing.DeletionTimestamp != nil:
		return refuse(fmt.Sprintf("team %s is being deleted; wait until it is gone, or choose another name", allocation.Name))
	case err == nil && existing.Annotations[AnnotationRequest] == mark && request != "":
		// Its answer was lost, perhaps before it was recorded.
		s.Audit.Record(audit.Change{User: user, Action: "create", Object: &existing, New: existing.Spec})
		return nil
	case err == nil && MadeBy(&existing, request):
		return refuse(fmt.Sprintf("team %s was saved already, with what stood in this form then; what you changed since is not saved", allocation.Name))
	case err == nil:
		return exists(allocation.Name)
	case client.IgnoreNotFound(err) != nil:
		return cluster.Translate("create allocation", err)
	}
	obstacles, err := Obstacles(ctx, reader, allocation, objects)
	if err != nil {
		return err
	}
	if len(obstacles) > 0 {
		return &governance.Error{Kind: governance.Invalid, Op: "create allocation", Message: "Something in the cluster stands in the way.", Fields: obstacles}
	}

	created := allocation.DeepCopy()
	if request != "" {
		created.Annotations = map[string]string{AnnotationRequest: mark}
	}
	err = cluster.Translate("create allocation", writer.Create(ctx, created))
	if err == nil {
		s.Audit.Record(audit.Change{User: user, Action: "create", Object: created, New: created.Spec})
	}
	var ours *governance.Error
	if errors.As(err, &ours) && ours.Kind == governance.Exists {
		return exists(allocation.Name)
	}
	return err
}

func exists(team string) error {
	return refuse(fmt.Sprintf("team %s has an allocation already; choose another name", team))
}

// refuse says why a team of that name cannot be made.
func refuse(sentence string) error {
	return &governance.Error{
		Kind: governance.Invalid, Op: "create allocation", Message: "The team's name cannot be used.",
		Fields: []governance.FieldError{{Path: "metadata.name", Message: sentence}},
	}
}
