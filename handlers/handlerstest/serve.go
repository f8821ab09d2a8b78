package handlerstest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/bulk"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/kueue/simulate/live"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/web"

	"github.com/PuerkitoBio/goquery"
	corev1 "k8s.io/api/core/v1"
)

func (d *Backend) May(context.Context, governance.User) (allocations.Permissions, error) {
	if of := d.Departments.Governed; of != nil && !of.All {
		return allocations.Permissions{Departments: *of}, nil
	}
	return allocations.Permissions{Create: !d.Reader, Update: !d.Reader, Delete: !d.Reader}, nil
}

func (d *Backend) stored(team string) *v1alpha1.ComputeAllocation {
	i := slices.IndexFunc(d.Allocations, func(a v1alpha1.ComputeAllocation) bool { return a.Name == team })
	if i < 0 {
		return nil
	}
	return &d.Allocations[i]
}

func (d *Backend) Find(_ context.Context, _ governance.User, team string) (v1alpha1.ComputeAllocation, error) {
	if a := d.stored(team); a != nil {
		return *a.DeepCopy(), nil
	}
	return v1alpha1.ComputeAllocation{}, &governance.Error{Kind: governance.NotFound, Message: "There is no team " + team + ", or you may not see it."}
}

// sameVersion returns a conflict unless version is the current one.
func (d *Backend) sameVersion(team, version string) error {
	a := d.stored(team)
	switch {
	case d.WriteError != nil:
		return d.WriteError
	case a == nil:
		return &governance.Error{Kind: governance.NotFound, Message: "Team " + team + " has no allocation any more: another user deleted it."}
	case a.ResourceVersion != version:
		return &governance.Error{Kind: governance.Conflict, Message: "Another user changed it in between."}
	}
	return nil
}

func (d *Backend) Review(_ context.Context, _ governance.User, _ allocations.State, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) (allocations.Review, error) {
	d.Reviewed = a.DeepCopy()
	if d.WriteError != nil {
		return allocations.Review{}, d.WriteError
	}
	if a.ResourceVersion != "" {
		if err := d.sameVersion(a.Name, a.ResourceVersion); err != nil {
			return allocations.Review{}, err
		}
	}
	review := d.ReviewResult
	review.NewPools = pools
	return review, nil
}

func (d *Backend) Update(_ context.Context, user governance.User, _ allocations.State, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	if err := d.sameVersion(a.Name, a.ResourceVersion); err != nil {
		return err
	}
	d.User, d.SavedPools = user, pools
	d.Updated = append(d.Updated, *a.DeepCopy())
	d.Change(a.Name, func(now *v1alpha1.ComputeAllocation) { now.Spec = a.Spec })
	return nil
}

// Change changes the spec of an allocation: a new generation and version.
func (d *Backend) Change(team string, how func(*v1alpha1.ComputeAllocation)) {
	now := d.stored(team)
	how(now)
	now.Generation++
	d.Touch(team)
}

// Touch writes the status of an allocation: a new version, the same generation.
func (d *Backend) Touch(team string) {
	now := d.stored(team)
	version, _ := strconv.Atoi(now.ResourceVersion)
	now.ResourceVersion = strconv.Itoa(version + 1)
}

func (d *Backend) Delete(_ context.Context, user governance.User, team string, deletion allocations.Deletion) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	if err := d.sameVersion(team, deletion.ResourceVersion); err != nil {
		return err
	}
	how := " by itself"
	if deletion.Drain {
		how = " by draining"
	}
	if deletion.Release {
		how = " by releasing"
	}
	d.User, d.Deletions = user, append(d.Deletions, team+how)
	return nil
}

func (d *Backend) QueueActivity(context.Context, governance.User, string) (allocations.QueueActivity, error) {
	return allocations.QueueActivity{Running: d.DepartureResult.Running, Waiting: d.DepartureResult.Waiting}, nil
}

func (d *Backend) TaskCounts(_ context.Context, _ governance.User, teams []v1alpha1.ComputeAllocation) (map[string]allocations.TaskCounts, error) {
	counts := map[string]allocations.TaskCounts{}
	for i := range teams {
		counts[teams[i].Name] = allocations.TaskCounts{Running: len(d.DepartureResult.Running), Waiting: d.DepartureResult.Waiting}
	}
	return counts, nil
}

func (d *Backend) PreviewDeletion(context.Context, governance.User, string) (allocations.DeletionPreview, error) {
	return d.DepartureResult, nil
}

// Backend implements all backends in memory. Backends whose methods have the same
// names are fields.
type Backend struct {
	Allocations     []v1alpha1.ComputeAllocation
	Items           []queries.Item
	Waiting         int // in the queues of a team
	Upcoming        queries.Upcoming
	UpcomingQuery   queries.UpcomingQuery // of the last call
	List            queries.List          // the fields of a list besides its items
	Query           index.Query           // of the last call
	MoreDetail      func(*queries.Detail) // fills in more of a task
	NoticeList      []queries.Notice
	NoticesError    error
	QueriedTeams    []string     // of which teams
	ReadError       error        // returned by all reads, if set
	States          atomic.Int32 // how often the state of all allocations was read
	Setup           handlers.Setup
	Replays         []live.Replay
	Created         []v1alpha1.ComputeAllocation
	writes          sync.Mutex
	User            governance.User
	Changed         chan struct{}
	PolicyBackend   PolicyBackend
	Departments     DepartmentsBackend
	AdoptionBackend AdoptionBackend
	SettingsBackend SettingsBackend
	SubmitBackend   SubmitBackend
	LogsBackend     LogsBackend
	ExternalLogs    urls.LinkTemplate
	Dashboard       urls.LinkTemplate
	Teams           []string // whose tasks the reader may see
	Trouble         string
	ReadOnly        string
	UsersUnrecorded bool // the API server does not record who changes a spec
	ActionsBackend  ActionsBackend
	CapacityBackend CapacityBackend
	HardwareBackend HardwareBackend // used if it has anything
	Loops           []queries.GuardedLoop
	Shares          queries.Shares
	QueueShares     []queries.QueueShare
	WithinAsked     time.Duration   // of the last call
	Past            console.History // nil for none
	Alerts          *AlertsBackend  // nil for none
	PersonNotices   *NoticesBackend // nil for none
	UserScope       *access.Scope   // nil for all

	PreviewBackend PreviewBackend

	AllocationBackend
	RevisionsBackend
}

func (d *Backend) Ready() error { return nil }

func (d *Backend) State(context.Context, governance.User) (allocations.State, error) {
	d.States.Add(1)
	return d.state(), nil
}

func (d *Backend) state() allocations.State {
	nodes := make([]corev1.Node, 2)
	for i := range nodes {
		nodes[i].Name = fmt.Sprint(i)
		nodes[i].Labels = map[string]string{catalog.InstanceTypeLabel: "ml.g6.12xlarge"}
	}
	types := catalog.New(catalog.Input{Nodes: nodes, InstanceTypeLabel: catalog.InstanceTypeLabel, Pools: d.Pools})
	return allocations.State{Policy: d.Policy, Allocations: d.Allocations, Types: types, Allocated: quota.Allocated(d.Allocations, types, ""), Departments: quota.NewDepartments(d.Departments.List, cluster.Pointers(d.Allocations), types), All: true}
}

func (d *Backend) Create(_ context.Context, user governance.User, _ allocations.State, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, _ string) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	d.User = user
	if d.ReadError != nil {
		return d.ReadError
	}
	d.SavedPools = pools
	if wrong := quota.NewDepartments(d.Departments.List, cluster.Pointers(d.Allocations), d.state().Types).CheckTeam(a, nil); len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Message: "Some values are not valid.", Fields: wrong}
	}
	if _, wrong := desired.Build(a, catalog.Catalog{}.With(append(pools, d.Pools...)...), desired.DefaultNaming, desired.ByPriority); len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Message: "Some values are not valid.", Fields: wrong}
	}
	d.Created = append(d.Created, *a)
	return nil
}

func (d *Backend) Scope(context.Context, governance.User) (access.Scope, error) {
	if d.UserScope != nil {
		return *d.UserScope, d.ReadError
	}
	return access.Scope{All: true}, d.ReadError
}

func (d *Backend) Redactor(context.Context, access.Scope) (func(string) string, error) {
	return func(text string) string { return strings.ReplaceAll(text, "hidden", "another team") }, nil
}

func (d *Backend) ListWithin(_ context.Context, _ access.Scope, q index.Query, teams []string) (queries.List, error) {
	d.Query, d.QueriedTeams = q, teams
	list := d.List
	if len(q.UIDs) > 0 {
		selected := slices.DeleteFunc(slices.Clone(d.Items), func(t queries.Item) bool { return !q.UIDs[t.UID] })
		list.Items = selected
		return list, d.ReadError
	}
	items := d.Items
	if len(q.States) > 0 {
		items = slices.DeleteFunc(slices.Clone(items), func(t queries.Item) bool { return !slices.Contains(q.States, t.State) })
	}
	list.Items, list.Total, list.Page, list.Pages, list.Teams = items, len(items), 1, 1, d.Teams
	return list, d.ReadError
}

func (d *Backend) ClassesWithin(_ context.Context, _ access.Scope, _ []string, within time.Duration) (queries.List, error) {
	d.WithinAsked = within
	list := d.List
	list.Teams = d.Teams
	return list, d.ReadError
}

func (d *Backend) SharesWithin(context.Context, access.Scope) (queries.Shares, error) {
	return d.Shares, nil
}

func (d *Backend) QueueSharesWithin(context.Context, access.Scope, string) ([]queries.QueueShare, error) {
	return d.QueueShares, d.ReadError
}

func (d *Backend) LoopsWithin(context.Context, access.Scope) ([]queries.GuardedLoop, error) {
	return d.Loops, d.ReadError
}

func (d *Backend) UpcomingWithin(_ context.Context, _ access.Scope, q queries.UpcomingQuery) (queries.Upcoming, error) {
	d.UpcomingQuery = q
	return d.Upcoming, d.ReadError
}

func (d *Backend) HeadWithin(context.Context, access.Scope, string, int, time.Duration) ([]queries.Item, int, error) {
	return d.Items, d.Waiting, d.ReadError
}

func (d *Backend) Detail(context.Context, governance.User, string, string, string, string) (queries.Detail, error) {
	if len(d.Items) == 0 {
		return queries.Detail{}, &governance.Error{Kind: governance.NotFound, Message: "There is no such task."}
	}
	detail := queries.Detail{Item: d.Items[0], About: d.Items[0]}
	if d.MoreDetail != nil {
		d.MoreDetail(&detail)
	}
	return detail, d.ReadError
}

func (d *Backend) Task(ctx context.Context, user governance.User, at tasks.Address, _ time.Duration) (queries.Item, error) {
	detail, err := d.Detail(ctx, user, at.Namespace, at.Kind, at.Name, at.UID)
	return detail.Item, err
}

func (d *Backend) Notices(context.Context, governance.User, string, string, string, string) ([]queries.Notice, error) {
	return d.NoticeList, d.NoticesError
}

func (d *Backend) YAML(context.Context, governance.User, string, string, string, string) (string, error) {
	return "kind: Workload\n", d.ReadError
}

func (d *Backend) Age(time.Time) (time.Duration, bool) { return 300 * time.Millisecond, true }

func (d *Backend) Subscribe(context.Context) <-chan struct{} { return d.Changed }

// Handlers returns the handlers over d.
func (d *Backend) Handlers() *handlers.Handlers {
	d.Departments.of = d
	return &handlers.Handlers{
		Console: console.Console{
			Allocations: d, Departments: &d.Departments, Tasks: d, Capacity: &d.CapacityBackend, Settings: &d.SettingsBackend, Contact: d, CapacityChanges: d,
			Trouble: func() string { return d.Trouble }, ReadOnly: func() string { return d.ReadOnly }, ClusterName: "test", Dashboard: d.Dashboard, Now: time.Now,
		},
		Policy: &d.PolicyBackend, Adoption: &d.AdoptionBackend, Actions: &d.ActionsBackend, Logs: &d.LogsBackend, Submit: &d.SubmitBackend, Revisions: d,
		History: d.Past, AllocationChanges: d, TaskChanges: d, AdviceChanges: d, Bulk: &bulk.Service{Context: context.Background(), Store: &bulk.Memory{}, Log: slog.New(slog.DiscardHandler)}, ExternalLogs: d.ExternalLogs, Naming: desired.DefaultNaming, Setup: d.Setup,
		Replays: func() []live.Replay { return d.Replays }, RecordsUsers: func() bool { return !d.UsersUnrecorded },
	}
}

// Serve serves the handlers over d until the test ends, and returns the address.
func Serve(t *testing.T, d *Backend) string { return ServeUnder(t, d, "") }

// ServeUnder is Serve under a base path, which the address contains.
func ServeUnder(t *testing.T, d *Backend, base string) string {
	t.Helper()
	h := d.Handlers()
	if d.HardwareBackend.IdleTasks != nil || d.HardwareBackend.Trainings != nil || d.HardwareBackend.Rates != nil {
		h.Hardware, h.PodOwners, h.IdleBelow = &d.HardwareBackend, &d.HardwareBackend, 0.05
	}
	if d.Alerts != nil {
		h.Alerts = d.Alerts
	}
	if d.PersonNotices != nil {
		h.Notices = d.PersonNotices
	}
	if d.PreviewBackend.Previewed != nil {
		h.Previews = &d.PreviewBackend
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := web.New(web.Options{
		Listener: listener, Base: base, User: web.User{Name: "ada", Local: true}, Chrome: h.Chrome,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Register(server)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return "http://" + server.Address() + base
}

// Client follows redirects to the address of a form, and no others.
var Client = http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
	if next.URL.Query().Has("form") {
		return nil
	}
	return http.ErrUseLastResponse
}}

// Get requests a page.
func Get(t *testing.T, address string) (*http.Response, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, request)
}

func do(t *testing.T, request *http.Request) (*http.Response, *goquery.Document) {
	t.Helper()
	response, err := Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, page
}

// Post posts a form; headers are pairs of name and value.
func Post(t *testing.T, address string, form url.Values, headers ...string) (*http.Response, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return do(t, request)
}

// Events opens a stream until the test ends. wait blocks until it contains want.
func Events(t *testing.T, address string) (wait func(want string)) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	return func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the stream ended before it sent %q", want)
	}
}

// ReadAll returns the body of a response.
func ReadAll(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
