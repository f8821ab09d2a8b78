package allocations

import (
	"context"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Permissions are the actions that the pages offer a user. The API server checks
// each action again.
type Permissions struct {
	Create, Update, Delete bool // of every team
	// Departments are those whose teams an admin of departments may create, update and
	// delete; empty for everyone else.
	Departments access.Governed
}

// Creates reports whether the user may create a team, in some department or in none.
func (p Permissions) Creates() bool { return p.Create || !p.Departments.Empty() }

// Updates reports whether the user may update some team.
func (p Permissions) Updates() bool { return p.Update || !p.Departments.Empty() }

// Deletes reports whether the user may delete some team.
func (p Permissions) Deletes() bool { return p.Delete || !p.Departments.Empty() }

// CreatesIn, UpdatesIn and DeletesIn report the same of the teams of a department; its name is
// empty for teams without one.
func (p Permissions) CreatesIn(department string) bool {
	return p.Create || p.Departments.Includes(department)
}

// UpdatesIn is described at CreatesIn.
func (p Permissions) UpdatesIn(department string) bool {
	return p.Update || p.Departments.Includes(department)
}

// DeletesIn is described at CreatesIn.
func (p Permissions) DeletesIn(department string) bool {
	return p.Delete || p.Departments.Includes(department)
}

// Delegated returns what an admin of departments may do, and nothing of what admins of the
// cluster may. Unlike May it sends no review for a user whom no department names as an admin.
func (s *Service) Delegated(ctx context.Context, user governance.User) (may Permissions, err error) {
	may.Departments, err = s.Access.Delegated(ctx, user)
	return may, err
}

// findFor returns the allocation of a team that user may change as allowed reports, or which is
// in a department that user governs.
func (s *Service) findFor(ctx context.Context, user governance.User, allowed func(context.Context, governance.User) (bool, error), op, team string) (v1alpha1.ComputeAllocation, error) {
	all, err := allowed(ctx, user)
	departments := access.Governed{All: all}
	if err == nil && !all {
		departments, err = s.Access.Delegated(ctx, user)
	}
	if err == nil && departments.Empty() {
		err = access.Forbidden(op)
	}
	if err != nil {
		return v1alpha1.ComputeAllocation{}, err
	}
	allocation, err := s.Find(ctx, user, team)
	if err == nil && !departments.Includes(allocation.Spec.Department) {
		err = access.Forbidden(op)
	}
	return allocation, err
}

// mayReview returns an error if user may not save an allocation, which is new without a
// resourceVersion.
func (s *Service) mayReview(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation) error {
	allowed, op := s.Access.MayCreateAllocations, "create allocation"
	if allocation.ResourceVersion != "" {
		allowed, op = s.Access.MayUpdateAllocations, "update allocation"
	}
	all, err := allowed(ctx, user)
	if err != nil || all {
		return err
	}
	departments, err := s.Access.Delegated(ctx, user)
	if err != nil {
		return err
	}
	if departments.Empty() {
		return access.Forbidden(op)
	}
	return s.within(ctx, user, departments, allocation, op)
}

// within returns an error unless an allocation is, and is to be, in one of the departments that
// user governs. It returns the same for a team that the user cannot see as for none.
func (s *Service) within(ctx context.Context, user governance.User, departments access.Governed, allocation *v1alpha1.ComputeAllocation, op string) error {
	if allocation.ResourceVersion != "" {
		saved, err := s.Find(ctx, user, allocation.Name)
		if err != nil {
			return err
		}
		if !departments.Includes(saved.Spec.Department) {
			return access.Forbidden(op)
		}
	}
	if !departments.Includes(allocation.Spec.Department) {
		return &governance.Error{
			Kind: governance.Invalid, Op: op, Message: "You are not an admin of this department.",
			Fields: []governance.FieldError{{Path: "spec.department", Message: "choose a department that you are an admin of"}},
		}
	}
	return nil
}

// writer returns the client with which user writes an allocation. Admins of departments cannot
// read allocations: once it is decided that one is theirs, the console reads it for them. The
// API server decides about the write. delegated reports that the user is one of them.
func (s *Service) writer(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, op string) (writer client.Client, delegated bool, err error) {
	return s.writerIf(ctx, user, func(departments access.Governed) error { return s.within(ctx, user, departments, allocation, op) })
}

// writerOf is writer for the allocation of a team as it is.
func (s *Service) writerOf(ctx context.Context, user governance.User, team, op string) (writer client.Client, delegated bool, err error) {
	return s.writerIf(ctx, user, func(departments access.Governed) error {
		saved, err := s.Find(ctx, user, team)
		if err == nil && !departments.Includes(saved.Spec.Department) {
			err = access.Forbidden(op)
		}
		return err
	})
}

func (s *Service) writerIf(ctx context.Context, user governance.User, theirs func(access.Governed) error) (writer client.Client, delegated bool, err error) {
	if writer, err = s.Cluster.ClientAs(user); err != nil {
		return nil, false, err
	}
	departments, err := s.Access.Delegated(ctx, user)
	if err != nil || departments.Empty() {
		return writer, false, err
	}
	if err := theirs(departments); err != nil {
		return nil, true, err
	}
	return cluster.ReadingBy(s.Cluster.Manager.GetAPIReader(), writer), true, nil
}
