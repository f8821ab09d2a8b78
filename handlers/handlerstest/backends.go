package handlerstest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/alerts"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/diagnostics"
	"kuota.dev/kuota/governance/imports/adopt"
	"kuota.dev/kuota/governance/imports/adoption"
	"kuota.dev/kuota/governance/notices"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/observe/logs"
	"kuota.dev/kuota/governance/observe/progress"
	"kuota.dev/kuota/governance/observe/utilization"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/quota/catalog"
	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/actions"
	"kuota.dev/kuota/governance/tasks/index"
	"kuota.dev/kuota/governance/tasks/queries"
)

// CapacityBackend is the cluster's capacity in memory.
type CapacityBackend struct {
	Snapshot capacity.Snapshot
	Failure  error
}

func (d *CapacityBackend) Within(context.Context, access.Scope) (*capacity.Snapshot, error) {
	return &d.Snapshot, d.Failure
}

func poolCell(resource string, p usage.PoolUsage) capacity.PoolResource {
	return capacity.PoolResource{Resource: resource, PoolUsage: p}
}

func TeamCell(pool, resource string, share usage.TeamUsage) capacity.TeamResource {
	return capacity.TeamResource{Flavor: pool, Resource: resource, TeamUsage: share}
}

// Cluster has two pools of GPUs, one of Neuron devices, and one of neither;
// three teams, and what a user does not see.
func Cluster() capacity.Snapshot {
	return capacity.Snapshot{
		Pools: []capacity.PoolSnapshot{
			{Name: "cpu", Nodes: 1, Ready: 1, Resources: []capacity.PoolResource{poolCell(catalog.CPU, usage.PoolUsage{Physical: 16000, Idle: 16000})}},
			{Name: "g6", Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "L4", Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 8, OwnBound: 3, Outside: 1, Unhealthy: 4, Nominal: 10, Usage: 3, Recovering: 4}),
				poolCell(catalog.CPU, usage.PoolUsage{Physical: 96500, Idle: 96500}),
			}},
			{Name: "p5", Nodes: 2, Ready: 1, Cordoned: 1, AcceleratorModel: "H100", AcceleratorMemory: 80, Resources: []capacity.PoolResource{
				poolCell(catalog.GPU, usage.PoolUsage{Physical: 1600, OwnBound: 6, BorrowedBound: 2, Idle: 1592, Nominal: 15, Usage: 9, Unbound: 1, Borrowed: 3, LentToCohort: 3, LargestFree: 4}),
				poolCell(catalog.Memory, usage.PoolUsage{Physical: 4 * catalog.GiB, Usage: catalog.GiB / 2}),
			}},
			{Name: "trn", Nodes: 1, Ready: 1, AcceleratorMemory: 32, Resources: []capacity.PoolResource{poolCell(catalog.Neuron, usage.PoolUsage{Physical: 16, Idle: 16})}},
		},
		Teams: []capacity.TeamSnapshot{
			{Name: "language", Resources: []capacity.TeamResource{TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, LentToCohort: 2})}},
			{Name: "speech", DisplayName: "=Speech", Namespace: "hyperpod-ns-speech", Resources: []capacity.TeamResource{TeamCell("g6", catalog.GPU, usage.TeamUsage{Usage: 1, Borrowed: 1})}, Waiting: 4},
			{Name: "vision", DisplayName: "Vision", Resources: []capacity.TeamResource{
				TeamCell("g6", catalog.GPU, usage.TeamUsage{Nominal: 9, Usage: 3, Own: 3}), TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 6, Usage: 8, Own: 6, Borrowed: 2}),
				TeamCell("trn", catalog.Neuron, usage.TeamUsage{Nominal: 4}),
			}, Running: 1234},
		},
		Others: &capacity.TeamSnapshot{Resources: []capacity.TeamResource{TeamCell("p5", catalog.GPU, usage.TeamUsage{Nominal: 4, LentToCohort: 1})}, Running: 1},
	}
}

const H100 = "ml.p5.48xlarge"

// SmallCluster has two nodes of one pool, with usage of a team that has no name.
func SmallCluster() capacity.Snapshot {
	size := func(n resources.Amount) quota.Resources {
		return quota.Resources{catalog.GPU: n, catalog.CPU: n.Times(int64(24_000)), catalog.Memory: n.Times(int64(256)).Times(int64(catalog.GiB)), catalog.Network: n.Times(int64(4))}
	}
	now := time.Now()
	pr := usage.PoolUsage{Physical: 16, OwnBound: 6, BorrowedBound: 2, Outside: 1, Unhealthy: 4, Idle: 3, Nominal: 18, Usage: 9, Unbound: 1, Borrowed: 2, LargestFree: 3}
	return capacity.Snapshot{
		At: now,
		Nodes: []capacity.NodeSnapshot{
			{Name: "gpu-1", Pool: H100, Type: H100, State: capacity.Ready, Created: now.Add(-49 * time.Hour), Physical: size(8), Allocatable: size(8), Bound: size(5), Outside: quota.Resources{catalog.GPU: 1}, Free: size(2), Pods: 7,
				Teams: map[string]quota.Resources{"vision": size(3), "": size(2)}},
			{Name: "gpu-2", Pool: H100, Type: H100, State: capacity.Recovering, Since: now.Add(-time.Hour), Message: "KubeletNotReady <b>", Created: now.Add(-time.Hour), Physical: size(8)},
		},
		Pools: []capacity.PoolSnapshot{{Name: H100, Types: []string{H100}, Nodes: 2, Ready: 1, Recovering: 1, AcceleratorModel: "H100", AcceleratorMemory: 80,
			Resources: []capacity.PoolResource{{Resource: catalog.GPU, PoolUsage: pr}, {Resource: catalog.CPU, PoolUsage: usage.PoolUsage{Physical: 384_000, Nominal: 192_000}}, {Resource: catalog.Network}}}},
		Teams: []capacity.TeamSnapshot{{Name: "vision", Namespace: "hyperpod-ns-vision", Running: 2, Waiting: 12, Resources: []capacity.TeamResource{
			{Flavor: H100, Resource: catalog.GPU, TeamUsage: usage.TeamUsage{Nominal: 15, Usage: 8, Own: 8, LentToCohort: 2, Unbound: 1}},
			{Flavor: H100, Resource: catalog.CPU, TeamUsage: usage.TeamUsage{Usage: 4_000, Borrowed: 4_000}},
		}}},
	}
}

// NoticesBackend is the notices of one person in memory.
type NoticesBackend struct {
	State   notices.State
	Wanted  *notices.Settings // what was set last; nil for nothing
	Failure error
	Pages   int // that the person opened
}

func (d *NoticesBackend) Get(context.Context, governance.User) (notices.State, error) {
	return d.State, nil
}

func (d *NoticesBackend) Set(_ context.Context, _ governance.User, want notices.Settings) error {
	if d.Failure == nil {
		d.Wanted = &want
	}
	return d.Failure
}

func (d *NoticesBackend) Seen(context.Context, governance.User) { d.Pages++ }

// AlertsBackend is alerts in memory.
type AlertsBackend struct {
	State    alerts.State
	Firing   int
	Admin    bool // whether the user may silence
	Silenced []history.Silence
	Tested   string // the receiver that was tested last
	Ended    string // the id of the silence that ended last
}

func (d *AlertsBackend) Count(access.Scope) int { return d.Firing }

func (d *AlertsBackend) Within(context.Context, access.Scope) (alerts.State, error) {
	return d.State, nil
}

func (d *AlertsBackend) MaySilence(context.Context, governance.User) (bool, error) {
	return d.Admin, nil
}

func (d *AlertsBackend) Silence(_ context.Context, _ governance.User, n history.Silence) error {
	d.Silenced = append(d.Silenced, n)
	return nil
}

func (d *AlertsBackend) EndSilence(_ context.Context, _ governance.User, id string) error {
	d.Ended = id
	return nil
}

func (d *AlertsBackend) Test(_ context.Context, _ governance.User, receiver string) error {
	d.Tested = receiver
	return nil
}

// HardwareBackend is a Prometheus that knows the GPUs of idle tasks, and trainings.
type HardwareBackend struct {
	IdleTasks []tasks.Address        // with one GPU each
	Trainings []utilization.Training // in pods whose names are UIDs of their tasks
	Rates     utilization.Series     // of samples, over each range
}

func (d *HardwareBackend) Now() utilization.State {
	r := &utilization.Reading{At: time.Now(), Trainings: d.Trainings}
	for _, t := range d.IdleTasks {
		idle := utilization.Ratio{Used: 0.01, Of: 1}
		r.Devices = append(r.Devices, utilization.Device{
			Kind: utilization.GPU, Node: "gpu-1", UUID: t.UID, Busy: idle, Peak: idle, Pods: []utilization.PodName{{Namespace: t.Namespace, Name: t.UID}},
		})
	}
	return utilization.State{Reading: r}
}

func (d *HardwareBackend) History(context.Context, utilization.Range, utilization.Inventory, string) (utilization.History, error) {
	return utilization.History{}, nil
}

func (d *HardwareBackend) Samples(_ context.Context, _, _ string, span utilization.Range) (times []time.Time, _ utilization.Series, _ error) {
	for i := range d.Rates {
		times = append(times, span.From.Add(time.Duration(i)*span.Step))
	}
	return times, d.Rates, nil
}

func (d *HardwareBackend) IdleAfter() time.Duration { return 30 * time.Minute }

func (d *HardwareBackend) PodOwners(context.Context, access.Scope) (func(index.PodName) (queries.Owner, bool), error) {
	return func(name index.PodName) (queries.Owner, bool) {
		for _, t := range d.IdleTasks {
			if t.UID == name.Name {
				return queries.Owner{Team: strings.TrimPrefix(t.Namespace, "hyperpod-ns-"), Task: t, Accelerators: 1, AdmittedAt: time.Now().Add(-2 * time.Hour)}, true
			}
		}
		for _, t := range d.Trainings {
			if t.Pod == utilization.PodName(name) {
				return queries.Owner{Task: tasks.Address{Namespace: name.Namespace, UID: name.Name}}, true
			}
		}
		return queries.Owner{}, false
	}, nil
}

// SettingsBackend has the settings report in memory.
type SettingsBackend struct {
	Result  diagnostics.Report
	Failure error
	Hidden  bool
}

func (d *SettingsBackend) CanView(context.Context, governance.User) bool { return !d.Hidden }

func (d *SettingsBackend) Report(context.Context, governance.User) (diagnostics.Report, error) {
	return d.Result, d.Failure
}

// AdoptionBackend implements console.Adoption in memory.
type AdoptionBackend struct {
	Existing adoption.Plan
	Reader   bool             // whether the reader may not adopt
	Failing  map[string]error // by ClusterQueue
	Adopted  []string         // by the last call
	Reason   string           // of the last call
}

func (d *AdoptionBackend) Unmanaged(context.Context) (int, error) { return len(d.Existing.Queues), nil }

func (d *AdoptionBackend) Plan(context.Context, governance.User) (adoption.Plan, error) {
	if d.Reader {
		return adoption.Plan{}, &governance.Error{Kind: governance.NotFound, Message: "There is no such page."}
	}
	return d.Existing, nil
}

func (d *AdoptionBackend) Check(ctx context.Context, user governance.User, names []string) ([]adopt.Result, error) {
	plan, err := d.Plan(ctx, user)
	if err != nil {
		return nil, err
	}
	selected, err := adopt.Select(plan, names)
	var results []adopt.Result
	for _, q := range selected {
		results = append(results, adopt.Result{Queue: q.Name, Verdict: q.Verdict, Err: d.Failing[q.Name]})
	}
	return results, err
}

func (d *AdoptionBackend) Adopt(ctx context.Context, user governance.User, names []string, reason string) ([]adopt.Result, error) {
	results, err := d.Check(ctx, user, names)
	if err != nil {
		return nil, err
	}
	d.Adopted, d.Reason = names, reason
	for i, r := range results {
		if q, _ := d.Existing.Queue(r.Queue); r.Err == nil {
			results[i].Team = q.Allocation.Name
		}
	}
	return results, nil
}

// LogsBackend has the log of each container in memory.
type LogsBackend struct {
	PodList  []*index.Pod
	PodsErr  error
	Denied   bool
	Query    logs.Query // of the last call
	Lines    logs.Update
	ReadErr  error
	Updates  []logs.Update // that Follow sends
	Content  string        // of the whole log
	OpenErr  error
	Released chan struct{} // closed when Follow has ended; nil for nobody waits
	Lately   []progress.Progress
}

// May implements tasks.Logs.
func (d *LogsBackend) May(context.Context, governance.User, string) (bool, error) {
	return !d.Denied, nil
}

// Pods implements tasks.Logs.
func (d *LogsBackend) Pods(context.Context, governance.User, tasks.Address) ([]*index.Pod, error) {
	return d.PodList, d.PodsErr
}

// Read implements tasks.Logs.
func (d *LogsBackend) Read(_ context.Context, _ governance.User, q logs.Query) (logs.Update, error) {
	d.Query = q
	return d.Lines, d.ReadErr
}

// Follow implements tasks.Logs.
func (d *LogsBackend) Follow(ctx context.Context, _ governance.User, _ logs.Query, send func(logs.Update) error) error {
	if d.Released != nil {
		defer close(d.Released)
	}
	for _, u := range d.Updates {
		if err := send(u); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// Progress implements tasks.Logs.
func (d *LogsBackend) Progress(context.Context, governance.User, tasks.Address) ([]progress.Progress, error) {
	return d.Lately, nil
}

// Open implements tasks.Logs.
func (d *LogsBackend) Open(_ context.Context, _ governance.User, q logs.Query) (io.ReadCloser, error) {
	d.Query = q
	return io.NopCloser(strings.NewReader(d.Content)), d.OpenErr
}

// PreviewBackend previews all changes in the same way.
type PreviewBackend struct {
	Previewed func(context.Context) (queries.Preview, error) // nil if pages preview nothing
	Together  []int                                          // of how many allocations each preview of several, or of a deletion, was
}

func (d *PreviewBackend) Allocation(ctx context.Context, _ governance.User, _ *v1alpha1.ComputeAllocation, _ []v1alpha1.Pool) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Allocations(ctx context.Context, _ governance.User, all []*v1alpha1.ComputeAllocation) (queries.Preview, error) {
	d.Together = append(d.Together, len(all))
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Typed(ctx context.Context, _ governance.User, _ *v1alpha1.ComputeAllocation, _ []v1alpha1.Pool) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Department(ctx context.Context, _ governance.User, _ *v1alpha1.Department) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) TypedDepartment(ctx context.Context, _ governance.User, _ *v1alpha1.Department) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) DepartmentDeletion(ctx context.Context, _ governance.User, _ string) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Activation(ctx context.Context, _ governance.User, _ *v1alpha1.ComputeAllocation, _ v1alpha1.Activation) (queries.Preview, error) {
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Deletion(ctx context.Context, _ governance.User, teams ...string) (queries.Preview, error) {
	d.Together = append(d.Together, len(teams))
	return d.Previewed(ctx)
}

func (d *PreviewBackend) Policy(ctx context.Context, _ governance.User, _ *v1alpha1.ClusterPolicy) (queries.Preview, error) {
	return d.Previewed(ctx)
}

// EventsUntil reads the events of a stream until one is the last.
func EventsUntil(t *testing.T, address string, last func(html string) bool) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	html, lines := "", bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			html += data + "\n"
		} else if lines.Text() == "" && html != "" {
			if last(html) {
				return
			}
			html = ""
		}
	}
	t.Fatalf("the stream at %s ended: %s", address, response.Status)
}

func (d *PreviewBackend) Action(ctx context.Context, _ governance.User, _ actions.Action, _ []*tasks.Task, _ string) (queries.Preview, error) {
	return d.Previewed(ctx)
}
