package handlers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/allocations"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/catalog"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers"
	"kuota.dev/kuota/handlers/console"
	"kuota.dev/kuota/views/htmlcheck"
	"kuota.dev/kuota/web"

	"github.com/PuerkitoBio/goquery"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// domain is the domain in memory.
type domain struct {
	allocations    []v1alpha1.ComputeAllocation
	items          []tasks.Item
	waiting        int                 // in the queues of a team
	list           tasks.List          // what a list has besides its items
	query          tasks.Query         // that was asked last
	more           func(*tasks.Detail) // fills in more of a task
	notices        []tasks.Notice
	noticesFailure error
	queried        []string // of which teams
	failure        error    // what every question answers, if anything
	created        []v1alpha1.ComputeAllocation
	as             governance.User
	changed        chan struct{}
	policies       policyDomain
	settings       settingsDomain
	submits        submitDomain
	teams          []string // whose tasks are seen
	trouble        string
	readOnly       string
	work           workDomain
	capacity       capacityDomain
	loops          []tasks.GuardedLoop
	classesWithin  time.Duration   // that was asked for last
	past           console.History // nil for none
	scope          *access.Scope   // nil for all

	allocationDomain
	revisionDomain
}

func (d *domain) Ready() error { return nil }

func (d *domain) State(context.Context, governance.User) (allocations.State, error) {
	nodes := make([]corev1.Node, 2)
	for i := range nodes {
		nodes[i].Name = fmt.Sprint(i)
		nodes[i].Labels = map[string]string{catalog.InstanceTypeLabel: "ml.g6.12xlarge"}
	}
	types := catalog.New(catalog.Input{Nodes: nodes, InstanceTypeLabel: catalog.InstanceTypeLabel, Pools: d.pools})
	return allocations.State{Policy: d.policy, Allocations: d.allocations, Types: types, Allocated: quota.Allocated(d.allocations, types, ""), All: true}, nil
}

func (d *domain) Create(_ context.Context, user governance.User, a *v1alpha1.ComputeAllocation, pools []v1alpha1.Pool, _ string) error {
	d.as = user
	if d.failure != nil {
		return d.failure
	}
	d.made = pools
	if _, wrong := desired.Build(a, catalog.Catalog{}.With(append(pools, d.pools...)...), desired.DefaultNaming, desired.ByPriority); len(wrong) > 0 {
		return &governance.Error{Kind: governance.Invalid, Message: "Some values need another look.", Fields: wrong}
	}
	d.created = append(d.created, *a)
	return nil
}

func (d *domain) Scope(context.Context, governance.User) (access.Scope, error) {
	if d.scope != nil {
		return *d.scope, d.failure
	}
	return access.Scope{All: true}, d.failure
}

func (d *domain) Redactor(context.Context, access.Scope) (func(string) string, error) {
	return func(text string) string { return strings.ReplaceAll(text, "hidden", "another team") }, nil
}

func (d *domain) ListWithin(_ context.Context, _ access.Scope, q tasks.Query, teams []string) (tasks.List, error) {
	d.query, d.queried = q, teams
	list := d.list
	list.Items, list.Total, list.Page, list.Pages, list.Teams = d.items, len(d.items), 1, 1, d.teams
	return list, d.failure
}

func (d *domain) ClassesWithin(_ context.Context, _ access.Scope, _ []string, within time.Duration) (tasks.List, error) {
	d.classesWithin = within
	list := d.list
	list.Teams = d.teams
	return list, d.failure
}

func (d *domain) LoopsWithin(context.Context, access.Scope) ([]tasks.GuardedLoop, error) {
	return d.loops, d.failure
}

func (d *domain) HeadWithin(context.Context, access.Scope, string, int, time.Duration) ([]tasks.Item, int, error) {
	return d.items, d.waiting, d.failure
}

func (d *domain) Detail(context.Context, governance.User, string, string, string, string) (tasks.Detail, error) {
	if len(d.items) == 0 {
		return tasks.Detail{}, &governance.Error{Kind: governance.NotFound, Message: "There is no such task."}
	}
	detail := tasks.Detail{Item: d.items[0], About: d.items[0]}
	if d.more != nil {
		d.more(&detail)
	}
	return detail, d.failure
}

func (d *domain) Notices(context.Context, governance.User, string, string, string, string) ([]tasks.Notice, error) {
	return d.notices, d.noticesFailure
}

func (d *domain) YAML(context.Context, governance.User, string, string, string, string) (string, error) {
	return "kind: Workload\n", d.failure
}
func (d *domain) Age(time.Time) (time.Duration, bool)       { return 300 * time.Millisecond, true }
func (d *domain) Subscribe(context.Context) <-chan struct{} { return d.changed }

// serve answers with the handlers over the domain until the test ends.
func serve(t *testing.T, d *domain) string {
	t.Helper()
	h := &handlers.Handlers{
		Allocations: d, Policy: &d.policies, Tasks: d, Actions: &d.work, Submit: &d.submits, Revisions: d, Settings: &d.settings, Contact: d, AllocationChanges: d, TaskChanges: d, CapacityChanges: d, Capacity: &d.capacity, History: d.past,
		Naming: desired.DefaultNaming, ClusterName: "test", Now: time.Now, Trouble: func() string { return d.trouble }, ReadOnly: func() string { return d.readOnly },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := web.New(web.Options{
		Listener: listener, User: web.User{Name: "ada", Local: true}, Chrome: h.Chrome,
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
	return "http://" + server.Address()
}

// client follows redirects to the address of a form, and no others.
var client = http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
	if next.URL.Query().Has("form") {
		return nil
	}
	return http.ErrUseLastResponse
}}

func get(t *testing.T, address string) (*http.Response, *goquery.Document) {
	t.Helper()
	response, err := client.Get(address)
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

func post(t *testing.T, address string, form url.Values, headers ...string) (*http.Response, *goquery.Document) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
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

func form(pairs ...string) url.Values {
	values := url.Values{
		"action": {"save"}, "request-id": {"r"}, "team": {"vision"}, "weight": {"10"}, "strategy": {"LendAndBorrow"},
		"borrow-percent": {"50"}, "preemption": {"Never"}, "row-0-type": {"ml.g6.12xlarge"}, "row-0-accelerators": {"2"},
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

const newURL = "/policies/allocations/new"

func TestSaveMakesWhatWasTyped(t *testing.T) {
	d := &domain{}
	response, _ := post(t, serve(t, d)+newURL, form("row-0-vcpu", "48", "row-1-type", "", "row-2-type", "ml.c5.2xlarge", "row-2-memory", "0.5"))
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/policies?created=vision" {
		t.Fatalf("answer is %s to %s", response.Status, response.Header.Get("Location"))
	}
	if d.as.Name != "ada" || !d.as.Local {
		t.Errorf("saved as %+v", d.as)
	}
	a := d.created[0]
	if a.Name != "vision" || a.Spec.FairShareWeight != 10 || a.Spec.Preemption.WithinTeam != v1alpha1.PreemptNever || *a.Spec.Sharing.BorrowLimitPercent != 50 {
		t.Errorf("made %+v", a.Spec)
	}
	if len(a.Spec.Quota) != 2 || a.Spec.Quota[0].VCPU.String() != "48" || a.Spec.Quota[0].Memory != nil || a.Spec.Quota[1].Memory.String() != "512Mi" {
		t.Errorf("rows are %+v", a.Spec.Quota)
	}
}

// What only lends or keeps carries no borrow limit, whatever stands there.
func TestLimitIsLeftOutWhereNothingIsBorrowed(t *testing.T) {
	d := &domain{}
	if response, _ := post(t, serve(t, d)+newURL, form("strategy", "Lend")); response.StatusCode != http.StatusSeeOther {
		t.Fatal(response.Status)
	}
	if d.created[0].Spec.Sharing.BorrowLimitPercent != nil {
		t.Errorf("sharing is %+v", d.created[0].Spec.Sharing)
	}
}

// The form's figures are the controller's, to the digit, for whatever is typed.
func TestFormShowsWhatTheControllerComputes(t *testing.T) {
	address := serve(t, &domain{}) + newURL
	for _, typed := range []map[string]string{
		{"accelerators": "2"}, {"accelerators": "3", "vcpu": "48"}, {"vcpu": "0.5"}, {"memory": "100"}, {"instances": "3"}, {"accelerators": "1", "memory": "7.5"},
	} {
		values := form("action", "preview", "row-0-accelerators", "")
		row := v1alpha1.QuotaRow{InstanceType: "ml.g6.12xlarge"}
		for part, text := range typed {
			values.Set("row-0-"+part, text)
		}
		d := &domain{}
		saved := form("row-0-accelerators", "")
		for part, text := range typed {
			saved.Set("row-0-"+part, text)
		}
		if response, _ := post(t, serve(t, d)+newURL, saved); response.StatusCode != http.StatusSeeOther {
			t.Fatalf("%v: %s", typed, response.Status)
		}
		row.Amounts = d.created[0].Spec.Quota[0].Amounts
		instance, _ := catalog.Known("ml.g6.12xlarge")
		filled, errs := quota.Fill(row.Amounts, instance)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		_, page := post(t, address, values, "X-Requested-With", "fetch")
		for part, resource := range map[string]string{"accelerators": catalog.GPU, "vcpu": catalog.CPU, "memory": catalog.Memory} {
			if typed[part] != "" {
				continue
			}
			if got, want := page.Find("#row-0-"+part).AttrOr("placeholder", ""), quota.Number(resource, filled[resource]); got != want {
				t.Errorf("%v: %s shows %q, the controller computes %q", typed, part, got, want)
			}
		}
	}
}

func TestPreviewIsTheFormAlone(t *testing.T) {
	address := serve(t, &domain{}) + newURL
	_, page := post(t, address, form("action", "preview"), "X-Requested-With", "fetch")
	if page.Find("header.top").Length() != 0 || page.Find("#allocation-form").Length() != 1 {
		t.Error("the answer is not the form alone")
	}
	if text := page.Find("#row-0").Text(); !strings.Contains(text, "Can borrow up to 1 GPU · 12 vCPU · 48 GiB") || !strings.Contains(text, "50 % of 1 network device rounds down to 0") {
		t.Errorf("the row says %q", text)
	}
	response, page := post(t, address, form("action", "preview"))
	if response.StatusCode != http.StatusOK || page.Find("header.top").Length() != 1 {
		t.Error("without the script the answer is not a page")
	}
	htmlcheck.Page(t, page)
}

// While somebody types, what is not finished is not wrong.
func TestTypingIsNotScolded(t *testing.T) {
	address := serve(t, &domain{}) + newURL
	for _, typed := range []url.Values{
		form("action", "preview", "team", "", "row-0-type", "", "row-0-accelerators", ""),
		form("action", "preview", "row-0-type", "ml.g6", "row-0-accelerators", ""),
		form("action", "preview", "row-0-accelerators", ""),
		form("action", "preview", "weight", "", "borrow-percent", ""),
	} {
		_, page := post(t, address, typed, "X-Requested-With", "fetch")
		if wrong := page.Find("[aria-invalid=true]"); wrong.Length() != 0 || page.Find("#form-errors").Length() != 0 {
			t.Errorf("%v: %s is marked wrong", typed, wrong.AttrOr("id", "something"))
		}
	}
}

func TestOverCapacityIsWarnedOf(t *testing.T) {
	other := v1alpha1.ComputeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	seven := int64(7)
	other.Spec.Quota = []v1alpha1.QuotaRow{{InstanceType: "ml.g6.12xlarge", Amounts: v1alpha1.Amounts{Accelerators: &seven}}}
	_, page := post(t, serve(t, &domain{allocations: []v1alpha1.ComputeAllocation{other}})+newURL, form("action", "preview"))
	for _, want := range []string{"2 instances: 8 GPUs (L4) · 7 allocated to other teams", "Over capacity: teams would be allocated 9 of 8 GPUs"} {
		if text := page.Find("#row-0").Text(); !strings.Contains(text, want) {
			t.Errorf("the row says %q, want %q", text, want)
		}
	}
	if page.Find("#row-0 .remark-bad").Length() != 0 {
		t.Error("slightly over capacity is an alarm")
	}
	_, page = post(t, serve(t, &domain{})+newURL, form("action", "preview", "row-0-accelerators", "500000"))
	if text := page.Find("#row-0 .remark-bad").Text(); !strings.Contains(text, "teams would be allocated 62,500 times the 8 GPUs of this pool") {
		t.Errorf("far over capacity the row says %q", text)
	}
}

// Posted fields of any kind are answered, never with an error of ours.
func TestOddPosts(t *testing.T) {
	address := serve(t, &domain{}) + newURL
	for _, typed := range []url.Values{
		{}, {"action": {"remove-row:99"}}, {"action": {"remove-row:-1"}}, {"action": {"reset:row-9-vcpu"}}, {"action": {"reset:"}}, {"action": {"\x00"}},
		{"row-99999999999999999999-type": {"x"}}, {"row--1-type": {"x"}}, {"row-0-type-type": {"x"}}, {"row-0-": {"x"}},
		form("team", "\xff\xfe"), form("row-0-vcpu", strings.Repeat("9", 100_000)), form("row-0-memory", "."), form("row-0-type", strings.Repeat("x", 100_000)),
		form("team", "<script>alert(1)</script>"),
	} {
		response, page := post(t, address, typed)
		if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%.80v answers %s", typed, response.Status)
		}
		if page.Find("script").Length() != 2 {
			t.Errorf("%.80v brings a script into the page", typed)
		}
	}
	many := form("action", "preview")
	for i := range 1000 {
		many.Set(fmt.Sprintf("row-%d-type", i), "ml.g5.2xlarge")
	}
	if _, page := post(t, address, many); page.Find(".row").Length() > 50 {
		t.Errorf("%d rows are rendered", page.Find(".row").Length())
	}
}

// The kinds of error each have their status, and a person's sentence; the
// cause stays in the log.
func TestErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.7: token abc")
	for kind, want := range map[governance.Kind]int{
		governance.Unavailable: http.StatusServiceUnavailable, governance.NotFound: http.StatusNotFound,
		governance.Forbidden: http.StatusForbidden, governance.Internal: http.StatusInternalServerError,
	} {
		d := &domain{failure: &governance.Error{Kind: kind, Message: "In a person's words.", Err: secret}}
		address := serve(t, d)
		response, page := get(t, address+"/tasks")
		if response.StatusCode != want || !strings.Contains(page.Text(), "In a person's words.") {
			t.Errorf("kind %d answers %s: %q", kind, response.Status, page.Find("main").Text())
		}
		if strings.Contains(page.Text(), "10.0.0.7") {
			t.Errorf("kind %d leaks its cause", kind)
		}
		htmlcheck.Page(t, page)
		response, page = post(t, address+newURL, form("team", "kept"))
		if response.StatusCode != want {
			t.Errorf("kind %d answers a save with %s", kind, response.Status)
		}
		if kind != governance.Internal && page.Find("#team").AttrOr("value", "") != "kept" {
			t.Errorf("kind %d loses the form", kind)
		}
	}
}

// events opens a stream until the test ends, and waits for words in it.
func events(t *testing.T, address string) (wait func(want string)) {
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

// A page's stream sends its part when something changed, and how old the data
// is in any case.
func TestStream(t *testing.T) {
	d := &domain{changed: make(chan struct{}, 1), trouble: "Kueue is gone."}
	wait := events(t, serve(t, d)+"/tasks/events")
	wait("No active tasks")
	wait(d.trouble)
	wait(`id="cluster-status"`)
	d.items = []tasks.Item{{Task: &tasks.Task{UID: "1", Name: "train", State: tasks.Running}, Team: "vision"}}
	d.changed <- struct{}{}
	wait("train")
}
