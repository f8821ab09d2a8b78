package tasks

import (
	"context"
	"io"
	"net/http"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers/bulk"
	"kuota.dev/kuota/handlers/classstats"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/hardware"
	"kuota.dev/kuota/handlers/previews"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/labstack/echo/v4"
)

// Pages answers the routes of tasks.
type Pages struct {
	*console.Console
	Actions  Actions         // nil offers no actions
	History  console.History // nil for none
	Classes  *classstats.Stats
	Changes  console.Listener // of tasks
	Advice   console.Listener // of what simulations add to their pages
	Starts   Starts           // nil without history
	Logs     Logs             // nil offers no logs
	Again    Again
	Hardware *hardware.Pages // has the idle tasks; nil for none
	Previews *previews.Previews
	Bulk     *bulk.Pages
	// ExternalLogs is the address of an external log system; empty for none.
	ExternalLogs urls.LinkTemplate
}

// Logs reads the logs of containers, as the user.
type Logs interface {
	// May reports whether the user is allowed to read logs in a namespace.
	May(ctx context.Context, user governance.User, namespace string) (bool, error)
	Pods(ctx context.Context, user governance.User, at tasks.Address) ([]*index.Pod, error)
	// Read returns the last lines, Follow sends them and what follows, and Open returns
	// all of a log.
	Read(ctx context.Context, user governance.User, q logs.Query) (logs.Update, error)
	Follow(ctx context.Context, user governance.User, q logs.Query, send func(logs.Update) error) error
	Open(ctx context.Context, user governance.User, q logs.Query) (io.ReadCloser, error)
	// Progress returns the lines of progress in the log of a task, the oldest first.
	Progress(ctx context.Context, user governance.User, at tasks.Address) ([]progress.Progress, error)
}

// Actions reviews and runs the actions on tasks.
type Actions interface {
	Offers(ctx context.Context, user governance.User, d queries.Detail) ([]actions.Offer, error)
	Review(ctx context.Context, user governance.User, at tasks.Address, action actions.Action) (actions.Review, error)
	// MayStop reports whether the user can stop a task that they see.
	MayStop(ctx context.Context, user governance.User, at tasks.Address) (bool, error)
	Stop(ctx context.Context, user governance.User, at tasks.Address) error
	Resume(ctx context.Context, user governance.User, at tasks.Address) error
	Scale(ctx context.Context, user governance.User, at tasks.Address, replicas, saw int32) error
	SetClass(ctx context.Context, user governance.User, at tasks.Address, class string) error
	MoveToFront(ctx context.Context, user governance.User, at tasks.Address, class string) error
	Resize(ctx context.Context, user governance.User, at tasks.Address, z actions.Sizes, generation int64) error
	Delete(ctx context.Context, user governance.User, at tasks.Address) error
	// Run runs an action; class is that of actions.Class. Obstacles returns why it cannot be run
	// on each of several tasks.
	Run(ctx context.Context, user governance.User, at tasks.Address, action actions.Action, class string) error
	Obstacles(ctx context.Context, user governance.User, action actions.Action, list []*tasks.Task) ([]string, error)
	PriorityClasses(ctx context.Context) ([]explain.PriorityClass, error)
}

// Again reports whether the user may submit a task of a kind again, or one that was deleted.
type Again interface {
	MayAgain(ctx context.Context, user governance.User, namespace, kind string) (bool, error)
	// NamesAgain returns a name for each task that Repeat submits again.
	NamesAgain(ctx context.Context, user governance.User, list []tasks.Address) ([]string, error)
	Repeat(ctx context.Context, user governance.User, team string, at tasks.Address, name string, index *int32) error
	MayAgainPast(ctx context.Context, user governance.User, namespace, kind, uid string) (bool, error)
}

// Register adds the routes of this package to the server.
func (h *Pages) Register(s *web.Server) {
	s.Page(urls.Tasks, h.Within(h.tasks))
	s.Events(urls.Tasks+"/events", h.tasksEvents(s))
	s.Page(tasksCSVURL, h.Within(h.tasksCSV))
	s.Page(urls.TasksJSON, h.Within(h.tasksJSON))
	toTasks := func(c echo.Context) error { return c.Redirect(http.StatusSeeOther, urls.Tasks) }
	s.Form(urls.ManyTasks, h.Handler(toTasks), h.Handler(h.Writing(func(c echo.Context) error { return h.Within(h.many)(c) })))
	s.Page(urls.PastTasks, h.Within(h.past))
	s.Page(urls.PastTasksCSV, h.Within(h.pastCSV))
	s.Page(urls.Tasks+"/:namespace/:kind/:name", h.Handler(h.task))
	s.Events(urls.Tasks+"/:namespace/:kind/:name/events", h.Handler(h.taskEvents(s)))
	s.Page(urls.Tasks+"/:namespace/:kind/:name/yaml", h.Handler(h.taskYAML))
	s.Page(urls.Tasks+"/:namespace/:kind/:name/why.json", h.Handler(h.whyJSON))
	s.Page(urls.Tasks+"/:namespace/:kind/:name/scaling.csv", h.Handler(h.scalingCSV))
	h.registerAPI(s)
	s.Page(urls.Queue, h.Within(h.upcoming))
	s.Events(urls.Queue+"/events", h.upcomingEvents(s))
	s.Page(urls.Queue+".csv", h.Within(h.upcomingCSV))
	s.Page(urls.QueueJSON, h.Within(h.upcomingJSON))
	h.registerActions(s)
	h.registerLogs(s)
}
