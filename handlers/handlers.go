package handlers

import (
	"context"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/diagnostics"
	"kuota.dev/kuota/governance/history/recorder"
	"kuota.dev/kuota/governance/policy"
	"kuota.dev/kuota/governance/revisions"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Handlers answer with what the domain says.
type Handlers struct {
	Allocations Allocations
	Policy      Policy
	Tasks       Tasks
	Submit      Submit
	Actions     Actions // nil offers nothing
	Revisions   Revisions
	Settings    Settings
	Contact     Contact
	Capacity    Capacity
	Hardware    Hardware              // nil asks no Prometheus
	PodOwners   PodOwners             // whose devices are whose
	IdleBelow   float64               // utilization, 0 to 1, that what is idle never reached
	History     History               // nil keeps none
	Recording   func() recorder.State // how history is written; nil where none is
	// Trouble is a sentence about what keeps the whole console from working;
	// empty for nothing. nil is never.
	Trouble func() string
	// ReadOnly is a sentence about why nothing is written; empty when it is. nil is
	// never.
	ReadOnly func() string
	// AllocationChanges, TaskChanges and CapacityChanges tell of changes of what
	// those pages show.
	AllocationChanges, TaskChanges, CapacityChanges Listener

	Naming      desired.Naming
	ClusterName string           // as pages show it
	Setup       Setup            // as the settings show it
	Now         func() time.Time // the clock

	addresses formAddresses // set by Register
	sums      keptSums
}

// Allocations is what pages ask about compute allocations.
type Allocations interface {
	Ready() error
	State(ctx context.Context, user governance.User) (allocations.State, error)
	May(ctx context.Context, user governance.User) (allocations.Permissions, error)
	Find(ctx context.Context, user governance.User, team string) (v1alpha1.ComputeAllocation, error)
	Review(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error)
	Create(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, request string) error
	Update(ctx context.Context, user governance.User, allocation *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error
	Delete(ctx context.Context, user governance.User, team string, how allocations.Deletion) error
	Activity(ctx context.Context, user governance.User, team string) (allocations.Activity, error)
	Departure(ctx context.Context, user governance.User, team string) (allocations.Departure, error)
	Reclaimable(ctx context.Context, user governance.User, team string) ([]allocations.Over, error)
}

// Policy is what pages ask about the cluster policy.
type Policy interface {
	State(ctx context.Context, user governance.User) (policy.State, error)
	// Nodes counts the nodes that pools would have now, the first match first.
	Nodes(ctx context.Context, pools []v1alpha1.Pool) ([]int64, error)
	Review(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) (policy.Review, error)
	Save(ctx context.Context, user governance.User, policy *v1alpha1.ClusterPolicy) error
}

// Revisions is what pages ask about versions of policies and allocations.
type Revisions interface {
	History(ctx context.Context, user governance.User, of revisions.Owner) ([]revisions.Revision, error)
	Version(ctx context.Context, user governance.User, of revisions.Owner, number int64) (revisions.Version, error)
	// Deleted are the teams with versions that are not among those there are.
	DeletedTeams(existing []v1alpha1.ComputeAllocation) []string
}

// Tasks is what pages ask about tasks.
type Tasks interface {
	// Scope is what a user sees as of now, and ListWithin the list of all who see
	// that.
	Scope(ctx context.Context, user governance.User) (access.Scope, error)
	ListWithin(ctx context.Context, scope access.Scope, q tasks.Query, teams []string) (tasks.List, error)
	// ClassesWithin is a list without its tasks.
	ClassesWithin(ctx context.Context, scope access.Scope, teams []string, within time.Duration) (tasks.List, error)
	// HeadWithin are the first n tasks that wait in a team's queues, and of how many;
	// patience is how long it waits for their explanations.
	HeadWithin(ctx context.Context, scope access.Scope, team string, n int, patience time.Duration) ([]tasks.Item, int, error)
	Detail(ctx context.Context, user governance.User, namespace, kind, name, uid string) (tasks.Detail, error)
	YAML(ctx context.Context, user governance.User, namespace, kind, name, uid string) (string, error)
	// LoopsWithin are the preemption loops that everybody who sees that may know of.
	LoopsWithin(ctx context.Context, scope access.Scope) ([]tasks.GuardedLoop, error)
	// Readable takes names out of a text of Kueue's that are not for this scope.
	Redactor(ctx context.Context, scope access.Scope) (func(text string) string, error)
	Notices(ctx context.Context, user governance.User, namespace, kind, name, uid string) ([]tasks.Notice, error)
}

// Actions is what pages ask about what people do to tasks.
type Actions interface {
	Offers(ctx context.Context, user governance.User, d tasks.Detail) ([]actions.Offer, error)
	Review(ctx context.Context, user governance.User, at tasks.Address, action actions.Action) (actions.Review, error)
	Stop(ctx context.Context, user governance.User, at tasks.Address) error
	Resume(ctx context.Context, user governance.User, at tasks.Address) error
	SetClass(ctx context.Context, user governance.User, at tasks.Address, class string) error
	Delete(ctx context.Context, user governance.User, at tasks.Address) error
}

// Settings is what is asked about how all is set up.
type Settings interface {
	// Shown tells whether somebody is shown the way there.
	CanView(ctx context.Context, user governance.User) bool
	Report(ctx context.Context, user governance.User) (diagnostics.Report, error)
}

// Contact tells how long ago the cluster answered, and whether it still does.
type Contact interface {
	Age(now time.Time) (age time.Duration, ok bool)
}

// Listener tells of changes until ctx ends.
type Listener interface {
	Subscribe(ctx context.Context) <-chan struct{}
}

// Register adds all routes to the server.
func (h *Handlers) Register(s *web.Server) {
	h.addresses = s
	s.Public("/healthz", h.healthz)
	s.Public("/readyz", h.readyz)
	s.Page(dashboardURL, h.answer(h.dashboard))
	s.Events(dashboardEventsURL, h.dashboardEvents(s))
	s.Page(capacityCSVURL, h.answer(h.capacityCSV))
	s.Page(classesCSVURL, h.answer(h.classesCSV))
	s.Page(teamListURL, h.answer(h.teams))
	s.Events(teamEventsURL, h.teamsEvents(s))
	s.Page(teamsCSVURL, h.answer(h.teamsCSV))
	s.Events("/events", h.events(s))
	s.Page(tasksURL, h.answer(h.tasks))
	s.Events(tasksURL+"/events", h.tasksEvents(s))
	s.Page(tasksCSVURL, h.answer(h.tasksCSV))
	s.Page(hardwareCSVURL, h.answer(h.hardwareCSV))
	s.Page(pastURL, h.answer(h.past))
	s.Page(pastCSVURL, h.answer(h.pastCSV))
	s.Page(tasksURL+"/:namespace/:kind/:name", h.answer(h.task))
	s.Events(tasksURL+"/:namespace/:kind/:name/events", h.answer(h.taskEvents(s)))
	s.Page(tasksURL+"/:namespace/:kind/:name/yaml", h.answer(h.taskYAML))
	s.Page(instancesURL, h.answer(h.instances))
	s.Events(instancesURL+"/events", h.instancesEvents(s))
	s.Page(instancesCSVURL, h.answer(h.instancesCSV))
	s.Events(teamsURL+":team/events", h.answer(h.teamEvents(s)))
	s.Page(teamsURL+":team/usage.csv", h.answer(h.teamUsageCSV))
	s.Form(teamsURL+":team", h.answer(h.team(s)), h.answer(h.writing(h.submitTask)))
	h.registerActions(s)
	s.Page(settingsURL, h.answer(h.settings))
	s.Page("/policies", h.answer(h.policies))
	s.Events("/policies/events", h.policiesEvents(s))
	s.Form(importURL, h.answer(h.writing(h.importForm(s))), h.answer(h.writing(h.importObjects)))
	s.Page(policyYAMLURL, h.answer(h.policyYAML))
	s.Form(policyURL, h.answer(h.writing(h.editPolicy(s))), h.answer(h.writing(h.changePolicy)))
	s.Page(reviewURL(policyURL), h.answer(h.writing(h.reviewPolicy)))
	s.Page(policyVersionsURL, h.answer(h.policyVersions))
	s.Page(policyVersionsURL+"/:n", h.answer(h.policyVersion))
	s.Form(newAllocationURL, h.answer(h.writing(h.newAllocation(s))), h.answer(h.writing(h.createAllocation)))
	s.Page(reviewURL(newAllocationURL), h.answer(h.writing(h.reviewNew)))
	s.Page(allocationsURL+":name", h.answer(h.allocation))
	s.Page(allocationsURL+":name/yaml", h.answer(h.allocationYAML))
	s.Events(allocationsURL+":name/events", h.answer(h.allocationEvents(s)))
	s.Page(allocationsURL+":name/revisions", h.answer(h.allocationVersions))
	s.Page(allocationsURL+":name/revisions/:n", h.answer(h.allocationVersion))
	s.Form(allocationsURL+":name/edit", h.answer(h.writing(h.editAllocation(s))), h.answer(h.writing(h.saveAllocation)))
	s.Page(reviewURL(allocationsURL+":name/edit"), h.answer(h.writing(h.reviewEdit)))
	s.Form(allocationsURL+":name/hold", h.answer(h.writing(h.confirmHold)), h.answer(h.writing(h.holdQueue)))
	s.Form(allocationsURL+":name/resume", h.answer(h.writing(h.confirmResume)), h.answer(h.writing(h.resumeQueue)))
	s.Form(allocationsURL+":name/delete", h.answer(h.writing(h.confirmDelete)), h.answer(h.writing(h.deleteAllocation)))
}

// userOf is who asks, in the domain's words.
func userOf(c echo.Context) governance.User {
	user := web.UserOf(c)
	return governance.User{Name: user.Name, Groups: user.Groups, Local: user.Local, From: user.From}
}
