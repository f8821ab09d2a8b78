package handlers

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Handlers answer with what the domain says.
type Handlers struct {
	Allocations Allocations
	Tasks       Tasks
	Contact     Contact
	// AllocationChanges and TaskChanges tell of changes of what those pages show.
	AllocationChanges, TaskChanges Listener

	Naming      desired.Naming
	ClusterName string           // as pages show it
	Now         func() time.Time // the clock
}

// Allocations is what pages ask about compute allocations.
type Allocations interface {
	Ready() error
	State(ctx context.Context, user governance.User) (allocations.State, error)
	MayCreate(ctx context.Context, user governance.User) (bool, error)
	Create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, request string) error
}

// Tasks is what pages ask about tasks.
type Tasks interface {
	List(ctx context.Context, user governance.User) ([]tasks.Item, error)
}

// Contact tells how long ago the cluster answered, and whether it still does.
type Contact interface {
	Age(now time.Time) (age time.Duration, ok bool)
}

// Listener tells of changes until ctx ends.
type Listener interface {
	Listen(ctx context.Context) <-chan struct{}
}

// Register adds all routes to the server.
func (h *Handlers) Register(s *web.Server) {
	s.Public("/healthz", h.healthz)
	s.Public("/readyz", h.readyz)
	s.Page("/", h.home)
	s.Events("/events", h.events(s))
	s.Page("/tasks", h.answer(h.tasks))
	s.Events("/tasks/events", h.tasksEvents(s))
	s.Page("/policies", h.answer(h.policies))
	s.Events("/policies/events", h.policiesEvents(s))
	s.Form("/policies/allocations/new", h.answer(h.newAllocation(s)), h.answer(h.createAllocation))
}

// userOf is who asks, in the domain's words.
func userOf(c echo.Context) governance.User {
	user := web.UserOf(c)
	return governance.User{Name: user.Name, Groups: user.Groups, Local: user.Local, From: user.From}
}
