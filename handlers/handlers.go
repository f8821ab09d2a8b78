package handlers

import (
	"context"
	_ "embed"
	"net/http"
	"time"

	governancealerts "kuota.dev/kuota/governance/alerts"
	governancebulk "kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/cluster/leader"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/recorder"
	"kuota.dev/kuota/handlers/activity"
	"kuota.dev/kuota/handlers/adoption"
	"kuota.dev/kuota/handlers/alerts"
	"kuota.dev/kuota/handlers/allocations"
	"kuota.dev/kuota/handlers/bulk"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/dashboard"
	"kuota.dev/kuota/handlers/departments"
	"kuota.dev/kuota/handlers/forms"
	"kuota.dev/kuota/handlers/hardware"
	"kuota.dev/kuota/handlers/imports"
	"kuota.dev/kuota/handlers/instances"
	"kuota.dev/kuota/handlers/notices"
	"kuota.dev/kuota/handlers/policy"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/settings"
	"kuota.dev/kuota/handlers/tasks"
	"kuota.dev/kuota/handlers/teams"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/handlers/usage"
	"kuota.dev/kuota/handlers/versions"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Setup describes how the console was started.
type Setup = settings.Setup

// Handlers contains the backends and settings of the pages. Its fields must not
// change after Register.
type Handlers struct {
	console.Console
	Policy    console.Policy
	Adoption  console.Adoption
	Previews  previews.Backend // nil previews no change
	Submit    teams.Submit
	Actions   tasks.Actions // nil offers no actions
	Logs      tasks.Logs    // nil offers no logs
	Revisions versions.Revisions
	Hardware  hardware.Utilization                                                                    // nil without Prometheus
	PodOwners hardware.PodOwners                                                                      // required with Hardware
	IdleBelow float64                                                                                 // utilization, 0 to 1, that an idle accelerator never reached
	History   console.History                                                                         // nil for none
	Starts    tasks.Starts                                                                            // estimates; nil without history
	Recording func() recorder.State                                                                   // the state of the recorder; nil without history
	SetAside  func(ctx context.Context, since time.Time) (n int, latest *history.SetAside, err error) // records that history refused; nil without history
	Leader    func() leader.State                                                                     // which replica runs the controllers
	// RecordsUsers reports whether the API server records who changes a spec. nil
	// means that it does.
	RecordsUsers func() bool
	// AllocationChanges, TaskChanges and AdviceChanges signal that those pages have to be
	// rendered again.
	AllocationChanges, TaskChanges, AdviceChanges console.Listener

	// ExternalLogs is the address of an external log system; empty for none.
	ExternalLogs urls.LinkTemplate

	Bulk    *governancebulk.Service
	Naming  desired.Naming
	Replays func() []live.Replay // contradicted explanations; nil without simulations
	Setup   Setup                // as the settings show it

	hardware *hardware.Pages // after Register
}

// IdleTasks returns the tasks whose accelerators are idle, after Register; known is false
// without data of Prometheus.
func (h *Handlers) IdleTasks(ctx context.Context) (list []governancealerts.Idle, known bool) {
	if h.Hardware == nil || h.Hardware.Now().Reading == nil {
		return nil, false
	}
	for _, idle := range h.hardware.IdleTasks(ctx) {
		list = append(list, governancealerts.Idle{Task: idle.Task, Team: idle.Team, Accelerators: idle.Accelerators, Since: idle.Since, Simulated: idle.Simulated})
	}
	return list, true
}

// Trainings returns the tasks that report their progress to Prometheus, after Register; known is
// false without data of Prometheus.
func (h *Handlers) Trainings(ctx context.Context) (list []governancealerts.Training, known bool) {
	found, known := h.hardware.Trainings(ctx)
	for _, t := range found {
		list = append(list, governancealerts.Training{Task: t.Task, Team: t.Team, Started: t.Started, Checkpoint: t.Checkpoint, Rate: t.SamplesPerSecond, Usual: t.Usual})
	}
	return list, known
}

// TrainingStarts returns the last start of each training, after Register; nil without data of
// Prometheus.
func (h *Handlers) TrainingStarts(ctx context.Context) []history.TrainingStart {
	found, known := h.hardware.Trainings(ctx)
	if !known {
		return nil
	}
	starts := []history.TrainingStart{}
	for uid, t := range found {
		if !t.Started.IsZero() {
			starts = append(starts, history.TrainingStart{TaskUID: uid, At: t.Started, ContinuedFrom: t.ContinuedFrom})
		}
	}
	return starts
}

// Register adds all routes to the server.
func (h *Handlers) Register(s *web.Server) {
	c, sealed := &h.Console, forms.Addresses{Sealer: s}
	classes := classstats.New(c, h.History)
	hardwarePages := &hardware.Pages{Console: c, Hardware: h.Hardware, PodOwners: h.PodOwners, IdleBelow: h.IdleBelow}
	h.hardware = hardwarePages
	versionPages := &versions.Pages{Console: c, Policy: h.Policy, Revisions: h.Revisions}
	previewPages := &previews.Previews{Console: c, Backend: h.Previews}
	bulkPages := &bulk.Pages{Console: c, Bulk: h.Bulk}
	policyPages := &policy.Pages{Console: c, Previews: previewPages, Addresses: sealed, Policy: h.Policy, Versions: versionPages}
	allocationPages := &allocations.Pages{Console: c, Bulk: bulkPages, Previews: previewPages, Adoption: h.Adoption, Addresses: sealed, PolicyPages: policyPages, Versions: versionPages, Revisions: h.Revisions, Changes: h.AllocationChanges, RecordsUsers: h.RecordsUsers, Naming: h.Naming}

	s.Public("/healthz", h.healthz)
	s.Public("/readyz", h.readyz)
	s.Page("/api/openapi.json", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, openAPI) })
	for _, pages := range []interface{ Register(*web.Server) }{
		c,
		&dashboard.Pages{Console: c, History: h.History, Classes: classes, HardwarePages: hardwarePages},
		&tasks.Pages{Console: c, Actions: h.Actions, History: h.History, Classes: classes, Changes: h.TaskChanges, Advice: h.AdviceChanges, Starts: h.Starts, Logs: h.Logs, Again: h.Submit, ExternalLogs: h.ExternalLogs, Hardware: hardwarePages, Previews: previewPages, Bulk: bulkPages},
		&teams.Pages{Console: c, Submit: h.Submit, History: h.History, Classes: classes, Advice: h.AdviceChanges, Hardware: hardwarePages, Stops: h.Actions},
		&departments.Pages{Console: c, Addresses: sealed, History: h.History, Previews: previewPages, Changes: h.AllocationChanges},
		&instances.Pages{Console: c, Policy: h.Policy},
		&activity.Pages{Console: c, History: h.History},
		&alerts.Pages{Console: c},
		&notices.Pages{Console: c},
		&usage.Pages{Console: c, Policy: h.Policy, History: h.History},
		allocationPages,
		policyPages,
		versionPages,
		&adoption.Pages{Console: c, Addresses: sealed, Adoption: h.Adoption},
		&imports.Pages{Console: c, Addresses: sealed, Policy: h.Policy, AllocationPages: allocationPages, PolicyPages: policyPages},
		&settings.Pages{Console: c, Setup: h.Setup, Recording: h.Recording, SetAside: h.SetAside, Leader: h.Leader, Replays: h.Replays},
		hardwarePages,
		classes,
		bulkPages,
	} {
		pages.Register(s)
	}
}

// openAPI describes the endpoints of the API: make generate writes it.
//
//go:embed openapi.json
var openAPI []byte

// healthz answers GET /healthz: the process is alive.
func (h *Handlers) healthz(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readyz answers GET /readyz: the caches have synced once. A cluster that becomes
// unreachable later does not make the console unready, because its pages report
// that.
func (h *Handlers) readyz(c echo.Context) error {
	if h.Allocations.Ready() != nil {
		return c.String(http.StatusServiceUnavailable, "waiting for the cluster\n")
	}
	return c.String(http.StatusOK, "ok\n")
}
