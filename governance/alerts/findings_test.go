package alerts

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/controllers/loopguard"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/record/history/historytest"
	"kuota.dev/kuota/governance/report/usage"
	"kuota.dev/kuota/governance/spec/schema"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/governance/tasks/explain"
	"kuota.dev/kuota/governance/tasks/taskstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// must returns a function that returns its first argument, and fails on an error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// troubled is a cluster in which each rule finds something about team vision, next to the
// team secret with the same troubles.
func troubled() *Input {
	in := &Input{Now: start, Teams: taskstest.Teams("ns-vision", "vision", "ns-secret", "secret"), Capacity: &capacity.Snapshot{}, Refused: 2, LastRefused: &history.SetAside{Writer: "tasks", Reason: "refused"}}
	for i, team := range []string{"vision", "secret"} {
		ns := "ns-" + team
		task := func(name string, state tasks.State) *tasks.Task {
			return &tasks.Task{Namespace: ns, Kind: "Job", Name: name + "-of-" + team, UID: name + team, Queue: "q", State: state}
		}
		waiting := task("waiting", tasks.Pending)
		waiting.WaitingSince, waiting.PriorityClass = start.Add(-Defaults.Wait-time.Duration(i+1)*time.Minute), "high-priority"
		preempted := task("preempted", tasks.Running)
		preempted.Preemptions = Defaults.Preemptions
		in.Tasks = append(in.Tasks, waiting, preempted)
		for n := range 2 * Defaults.Failures {
			ended := task(fmt.Sprint("ended-", n), tasks.Failed)
			if ended.FinishedAt = start.Add(-time.Duration(n) * time.Minute); n%2 == 1 {
				ended.State = tasks.Succeeded
			}
			in.Tasks = append(in.Tasks, ended)
		}
		in.Heads = append(in.Heads,
			Head{waiting, &explain.Verdict{Constraint: explain.Quota, Shortage: &explain.Shortage{FlavorResource: quota.FlavorResource{Flavor: "p5"}, Needed: 8, Used: 8, Nominal: 16, Borrowers: []explain.Borrower{{Team: "secret"}}}}},
			Head{task("fits", tasks.Pending), &explain.Verdict{Constraint: explain.PendingEvaluation}})
		in.Loops = append(in.Loops, Loop{loopguard.Loop{State: loopguard.Looping, Since: start, Victim: loopguard.Party{UID: types.UID("w-" + team), Namespace: ns, Name: "w"}, Preemptor: loopguard.Party{Namespace: "ns-secret", Name: "job-of-secret"}}, preempted})
		in.Idle = append(in.Idle, Idle{Task: task("idle", tasks.Running).Address(), Team: team, Accelerators: 8, Since: start})
		in.Trainings = append(in.Trainings, Training{Task: task("training", tasks.Running).Address(), Team: team, Started: start.Add(-5 * time.Hour), Checkpoint: start.Add(-3 * time.Hour), Rate: 49, Usual: 100})
		in.Capacity.Teams = append(in.Capacity.Teams, capacity.TeamSnapshot{Name: team, Namespace: ns, Resources: []capacity.TeamResource{
			{Flavor: "p5", Resource: "nvidia.com/gpu", TeamUsage: usage.TeamUsage{Nominal: 8}}, {Flavor: "g6", Resource: "nvidia.com/gpu", TeamUsage: usage.TeamUsage{Nominal: 8, LentToCohort: 2}},
		}})
	}
	for _, team := range []string{"vision", "secret"} {
		hours := int64(100)
		in.Allocations = append(in.Allocations, v1alpha1.ComputeAllocation{
			ObjectMeta: metav1.ObjectMeta{Name: team},
			Spec:       v1alpha1.ComputeAllocationSpec{Budget: &v1alpha1.Budget{AcceleratorHours: &hours, Steps: []v1alpha1.BudgetStep{{Percent: 80, Action: v1alpha1.BudgetNotify}, {Percent: 100, Action: v1alpha1.BudgetHold}}}},
			Status:     v1alpha1.ComputeAllocationStatus{Namespace: "ns-" + team, Budget: &v1alpha1.BudgetStatus{Percent: 85, To: metav1.Time{Time: start.Add(time.Hour)}}},
		})
	}
	for n := range 5 {
		in.Capacity.Nodes = append(in.Capacity.Nodes, capacity.NodeSnapshot{Name: fmt.Sprint("node-", n), Pool: "p5", State: capacity.Recovering, Since: start.Add(-time.Hour)})
	}
	in.Policy = &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Status: v1alpha1.ClusterPolicyStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Message: "quota of team secret remains"}}}}
	return in
}

// Each rule finds its cause once for each team, and nothing that a member of one team
// sees names the other.
func TestFindings(t *testing.T) {
	found := map[Rule]int{}
	var list []history.Alert
	findings, err := troubled().findings(Defaults, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		found[f.Rule]++
		list = append(list, history.Alert{ID: string(f.Rule) + f.Subject, Rule: string(f.Rule), Subject: f.Subject, Team: f.Team, Namespace: f.Namespace, Summary: f.Summary, Fired: start})
		if f.Summary == "" || strings.Contains(f.Summary, "%!") {
			t.Errorf("%s: bad summary %q", f.Rule, f.Summary)
		}
	}
	for _, d := range Rules {
		want := 2
		if d.Cluster {
			want = 1
		}
		if d.Rule == ConsoleStale { // see TestStale
			want = 0
		}
		if found[d.Rule] != want {
			t.Errorf("%s: got %d findings, want %d", d.Rule, found[d.Rule], want)
		}
	}
	silences := []history.Silence{{Team: "vision", Rule: string(TaskWaits), Until: start.Add(time.Hour)}, {Team: "secret", Until: start.Add(time.Hour)}, {Until: start}}
	seen := (&Service{}).visible(access.ScopeOf("ns-vision"), list, silences, start)
	if len(seen) != len(Rules)-4 {
		t.Errorf("a member sees %d alerts, want %d", len(seen), len(Rules)-4)
	}
	for _, a := range seen {
		if text := fmt.Sprint(a.Alert); strings.Contains(text, "secret") {
			t.Errorf("a member of another team reads %s", text)
		}
		if (a.Silence != nil) != (a.Alert.Rule == string(TaskWaits)) {
			t.Errorf("%s: silence is %v", a.Alert.Rule, a.Silence)
		}
	}
	if all := (&Service{}).visible(access.Scope{All: true}, list, silences, start); len(all) != len(list) {
		t.Errorf("an admin sees %d alerts, want %d", len(all), len(list))
	}
	if quiet, err := (&Input{Now: start, Capacity: &capacity.Snapshot{}}).findings(Defaults, nil); len(quiet) > 0 || err != nil {
		t.Errorf("an empty cluster: got %v and error %v, want no findings", quiet, err)
	}
}

// TestBudgetOfADepartment finds the steps that a department has reached, for those who see all of it.
func TestBudgetOfADepartment(t *testing.T) {
	hours := int64(100)
	in := &Input{Now: start, Departments: []v1alpha1.Department{{
		ObjectMeta: metav1.ObjectMeta{Name: "research"},
		Spec:       v1alpha1.DepartmentSpec{Budget: &v1alpha1.Budget{AcceleratorHours: &hours, Steps: []v1alpha1.BudgetStep{{Percent: 80, Action: v1alpha1.BudgetNotify}, {Percent: 100, Action: v1alpha1.BudgetHold}}}},
		Status:     v1alpha1.DepartmentStatus{Namespace: "kuota-department-research", Budget: &v1alpha1.BudgetStatus{Percent: 85, To: metav1.Time{Time: start.Add(time.Hour)}}},
	}}}
	found := must[[]Finding](t)(in.findings(Defaults, nil))
	if len(found) != 1 || found[0].Rule != Budget || found[0].Team != "" || found[0].Namespace != "" || !strings.HasPrefix(found[0].Summary, "Department research has used 80 % of its budget of 100 accelerator hours") {
		t.Errorf("found %+v", found)
	}
	list := []history.Alert{{Rule: string(Budget), Subject: found[0].Subject, Summary: found[0].Summary, Fired: start}}
	for name, tc := range map[string]struct {
		scope access.Scope
		want  int
	}{
		"a reader of all teams":                {access.Scope{All: true}, 1},
		"a member of the department":           {access.ScopeOf("ns-speech").WithDepartments("research"), 1},
		"a member of it while it has no teams": {access.ScopeOf().WithDepartments("research"), 1},
		"a member of another":                  {access.ScopeOf("ns-speech").WithDepartments("product"), 0},
		"a member of its only team":            {access.ScopeOf("ns-speech"), 0},
		"a stranger":                           {access.ScopeOf(), 0},
	} {
		if seen := (&Service{}).visible(tc.scope, list, nil, start); len(seen) != tc.want {
			t.Errorf("%s sees %d alerts about the department, want %d", name, len(seen), tc.want)
		}
	}
	in.Now = start.Add(2 * time.Hour)
	if found := must[[]Finding](t)(in.findings(Defaults, nil)); len(found) > 0 {
		t.Errorf("of a period that ended: found %+v", found)
	}
}

// The tasks that findings name do not depend on the order of equals.
func TestEqualTasks(t *testing.T) {
	in := troubled()
	for _, task := range in.Tasks {
		other := *task
		other.Name, other.UID = "other-"+task.Name, "other-"+task.UID
		in.Tasks = append(in.Tasks, &other)
	}
	summaries := func() (all []string) {
		for _, f := range must[[]Finding](t)(in.findings(Defaults, nil)) {
			all = append(all, f.Summary)
		}
		slices.Sort(all)
		return all
	}
	before := summaries()
	slices.Reverse(in.Tasks)
	if diff := cmp.Diff(before, summaries()); diff != "" {
		t.Errorf("in another order (-before +after):\n%s", diff)
	}
}

// A rule that panics ends no other, and its alerts neither fire nor resolve.
func TestOddInputOfOneRule(t *testing.T) {
	in := troubled()
	in.Tasks = append([]*tasks.Task{nil}, in.Tasks...)
	complete := map[Rule]bool{TaskWaits: true, QuotaIdle: true}
	found, err := in.findings(Defaults, complete)
	if err == nil || !strings.Contains(err.Error(), string(TaskWaits)) {
		t.Errorf("got error %v, want one that names the rule", err)
	}
	if complete[TaskWaits] || !complete[QuotaIdle] {
		t.Errorf("complete are %v, want only rules that were evaluated", complete)
	}
	for _, d := range Rules {
		ofTasks := slices.Contains([]Rule{TaskWaits, TaskPreempted, TasksFail}, d.Rule)
		if got := slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == d.Rule }); d.Rule != ConsoleStale && got == ofTasks {
			t.Errorf("%s: found %t, want %t", d.Rule, got, !ofTasks)
		}
	}
}

// An alert that fired fires on after a restart, as the same one, on both databases.
func TestRestart(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testRestart(t, filepath.Join(t.TempDir(), "history.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { testRestart(t, historytest.Start(t).Database(t)+historytest.Patient) })
}

func testRestart(t *testing.T, url string) {
	now := start
	complete := map[Rule]bool{}
	for _, d := range Rules {
		complete[d.Rule] = true
	}
	fired := func(restart bool, findings []Finding) (ids []string) {
		store, err := history.Open(t.Context(), url, history.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if _, err := store.BeginTerm(t.Context()); err != nil {
			t.Fatal(err)
		}
		open, _, err := store.Alerts(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(open, now)
		for range 400 {
			now = now.Add(30 * time.Minute)
			changed, dropped := m.step(now, Defaults, complete, findings)
			if err := store.SaveAlerts(t.Context(), changed, dropped); err != nil {
				t.Fatal(err)
			}
			if restart { // within the pending time of quota that is idle
				break
			}
		}
		if open, _, err = store.Alerts(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		for _, a := range open {
			if !a.Fired.IsZero() {
				ids = append(ids, a.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	findings := must[[]Finding](t)(troubled().findings(Defaults, nil))
	fired(true, findings)
	first := fired(false, findings)
	if second := fired(false, findings); !slices.Equal(first, second) || len(first) < len(Rules) {
		t.Errorf("after a restart %d alerts fire, want the same %d", len(second), len(first))
	}
	if rest := fired(false, nil); len(rest) > 0 {
		t.Errorf("%d alerts fire without a cause, want none", len(rest))
	}
}

// BenchmarkEvaluate evaluates all rules over 50,000 tasks of 1,000 teams, a third of which
// waits for too long.
func BenchmarkEvaluate(b *testing.B) {
	var teams []string
	for i := range 1000 {
		teams = append(teams, fmt.Sprint("ns-", i), fmt.Sprint("team-", i))
	}
	in := &Input{Now: start, Teams: taskstest.Teams(teams...), Capacity: &capacity.Snapshot{}, Refused: 2, LastRefused: &history.SetAside{Writer: "tasks", Reason: "refused"}}
	for i := range 50_000 {
		ns := fmt.Sprint("ns-", i%1000)
		task := &tasks.Task{Namespace: ns, Kind: "Job", Name: fmt.Sprint("train-", i), UID: fmt.Sprint(i), State: []tasks.State{tasks.Pending, tasks.Running, tasks.Failed}[i%3], PriorityClass: []string{"a", "b"}[i%2], Preemptions: int32(i % 7)}
		task.WaitingSince, task.FinishedAt = start.Add(-5*time.Hour-time.Duration(i)*time.Second), start.Add(-time.Duration(i)*time.Second/10)
		in.Tasks = append(in.Tasks, task)
	}
	complete := map[Rule]bool{TaskWaits: true, TaskPreempted: true, TasksFail: true}
	m := newMachine(nil, start)
	for b.Loop() {
		in.Now = in.Now.Add(interval)
		m.step(in.Now, Defaults, complete, must[[]Finding](b)(in.findings(Defaults, complete)))
	}
	b.ReportMetric(float64(len(m.open)), "alerts")
}

// A policy changes when rules fire, by priority class too, and turns rules off. Each rule
// has a value of the resource.
func TestThresholds(t *testing.T) {
	for _, d := range Rules {
		policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterPolicyName}}
		policy.Spec.Alerts = &v1alpha1.Alerts{Rules: []v1alpha1.AlertRule{{Rule: string(d.Rule), Off: true}}}
		if errs := schema.ClusterPolicy.Validate(policy, nil); len(errs) > 0 {
			t.Errorf("%s: %v", d.Rule, errs)
		}
	}
	after := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	few := int32(2)
	with := func(rules ...v1alpha1.AlertRule) Thresholds { return Defaults.with(&v1alpha1.Alerts{Rules: rules}) }
	for name, tc := range map[string]struct {
		thresholds Thresholds
		waits      map[string]string // priority class → time a task may wait
		off        []Rule
	}{
		"defaults":        {Defaults, map[string]string{"": "4h0m0s", "high-priority": "4h0m0s"}, nil},
		"all classes":     {with(v1alpha1.AlertRule{Rule: "task-waits", After: after(time.Hour)}), map[string]string{"": "1h0m0s", "high-priority": "1h0m0s"}, nil},
		"one class":       {with(v1alpha1.AlertRule{Rule: "task-waits", PriorityClass: "high", After: after(time.Minute)}), map[string]string{"": "4h0m0s", "high-priority": "1m0s", "high": "1m0s"}, nil},
		"all but one":     {with(v1alpha1.AlertRule{Rule: "task-waits", PriorityClass: "high", Off: true}), map[string]string{"": "4h0m0s", "high-priority": ""}, nil},
		"only one":        {with(v1alpha1.AlertRule{Rule: "task-waits", Off: true}, v1alpha1.AlertRule{Rule: "task-waits", PriorityClass: "high", After: after(time.Minute)}), map[string]string{"": "", "high-priority": "1m0s"}, nil},
		"off":             {with(v1alpha1.AlertRule{Rule: "task-waits", Off: true}, v1alpha1.AlertRule{Rule: "quota-idle", Off: true}), map[string]string{"": "", "high-priority": ""}, []Rule{TaskWaits, QuotaIdle}},
		"an invalid rule": {with(v1alpha1.AlertRule{Rule: "task-waits", Count: &few}), map[string]string{"": "4h0m0s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for class, want := range tc.waits {
				got := ""
				if limit, ok := tc.thresholds.wait(class); ok {
					got = limit.String()
				}
				if got != want {
					t.Errorf("class %q: got %q, want %q", class, got, want)
				}
			}
			for _, d := range Rules {
				if got, want := tc.thresholds.IsOff(d.Rule), slices.Contains(tc.off, d.Rule); got != want {
					t.Errorf("%s is off: got %v, want %v", d.Rule, got, want)
				}
			}
			for _, f := range must[[]Finding](t)(troubled().findings(tc.thresholds, nil)) {
				if slices.Contains(tc.off, f.Rule) {
					t.Errorf("found %s, which is off", f.Rule)
				}
			}
		})
	}
	if got := with(v1alpha1.AlertRule{Rule: "task-preempted", Count: &few}, v1alpha1.AlertRule{Rule: "tasks-fail", Count: &few}, v1alpha1.AlertRule{Rule: "nodes-lost", After: after(time.Hour)}); got.Preemptions != 2 || got.Failures != 2 || got.NodesLost != time.Hour {
		t.Errorf("got %+v", got)
	}
}

// A training counts by its last checkpoint or its start, whichever is later, and is compared with
// its usual rate only if both rates are known.
func TestTrainings(t *testing.T) {
	const limit = 2 * time.Hour
	nan := math.NaN()
	for name, tc := range map[string]struct {
		training Training
		want     string // summary; empty for none
	}{
		"a checkpoint in time":   {Training{Started: start.Add(-9 * time.Hour), Checkpoint: start.Add(1 - limit)}, ""},
		"no checkpoint for long": {Training{Started: start.Add(-9 * time.Hour), Checkpoint: start.Add(-limit)}, "1 training of team vision has written no checkpoint for longer than 2 hours, longest Job train, since 2026-11-25 10:00 UTC."},
		"started again":          {Training{Started: start.Add(1 - limit), Checkpoint: start.Add(-9 * time.Hour)}, ""},
		"started again long ago": {Training{Started: start.Add(-3 * time.Hour), Checkpoint: start.Add(-9 * time.Hour)}, "1 training of team vision has written no checkpoint for longer than 2 hours, longest Job train, since it started at 2026-11-25 09:00 UTC."},
		"no checkpoint known":    {Training{Started: start.Add(-3 * time.Hour)}, ""},
		"nothing known":          {Training{}, ""},
		"as usual":               {Training{Rate: 50, Usual: 100}, ""},
		"slow":                   {Training{Rate: 49.9, Usual: 100}, "Job train of team vision does less than 50% of its usual samples a second with as many workers."},
		"stands still":           {Training{Rate: 0, Usual: 100}, "Job train of team vision does less than 50% of its usual samples a second with as many workers."},
		"no rate":                {Training{Rate: nan, Usual: 100}, ""},
		"no usual rate":          {Training{Rate: 1, Usual: nan}, ""},
		"always stands still":    {Training{Rate: 0, Usual: 0}, ""},
	} {
		tc.training.Task, tc.training.Team = tasks.Address{Namespace: "ns-vision", Kind: "Job", Name: "train", UID: "u"}, "vision"
		in := &Input{Now: start, Teams: taskstest.Teams("ns-vision", "vision"), Trainings: []Training{tc.training}}
		limits := Defaults
		limits.NoCheckpoint = limit
		var got []string
		for _, f := range append(in.noCheckpoint(limits), in.slow(limits)...) {
			got = append(got, f.Summary)
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%s: got %q, want %q", name, text, tc.want)
		}
	}
}
