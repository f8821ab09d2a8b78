package figures

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/departments"
	"kuota.dev/kuota/governance/observe/capacity"
	"kuota.dev/kuota/governance/quota"
	"kuota.dev/kuota/governance/tasks"
	"kuota.dev/kuota/handlers/charts"
	"kuota.dev/kuota/handlers/format"
	"kuota.dev/kuota/handlers/urls"
	"kuota.dev/kuota/views"
	"kuota.dev/kuota/views/ui"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Departments returns the tree of departments that the reader sees. s and of are what they
// see of the cluster.
func (q Query) Departments(state departments.State, of map[string]departments.Figures, resource string) views.DepartmentTable {
	t := views.DepartmentTable{ID: "departments", Title: "Departments", Note: q.note(resource), CSVURL: urls.DepartmentsCSV}
	if !state.Governed.Empty() {
		t.NewURL = urls.NewDepartment
	}
	var lines []views.DepartmentLine
	for _, name := range state.Tree.Below("") {
		if d := state.Find(name); d != nil {
			line := q.departmentLine(state, d, of[name], resource)
			line.Level = len(state.Tree.Chain(name)) - 1
			lines = append(lines, line)
		}
	}
	t.Rows = level(lines)
	return t
}

// Below returns what is directly in a department, with its reserve.
func (q Query) Below(state departments.State, d *v1alpha1.Department, of map[string]departments.Figures, s *capacity.Snapshot, resource string) views.DepartmentTable {
	t := views.DepartmentTable{ID: "department-below", Title: "Teams and departments", Note: q.note(resource)}
	var lines []views.DepartmentLine
	for _, name := range state.Tree.Children(d.Name) {
		if child := state.Find(name); child != nil {
			line := q.departmentLine(state, child, of[name], resource)
			line.Sub = "department"
			lines = append(lines, line)
		}
	}
	for _, team := range state.Tree.Teams(d.Name) {
		if i := slices.IndexFunc(s.Teams, func(one capacity.TeamSnapshot) bool { return one.Name == team.Name }); i >= 0 {
			lines = append(lines, q.teamOfDepartment(&s.Teams[i], resource))
		}
	}
	if sum := q.sum(of[d.Name], resource); sum.Reserve > 0 {
		lines = append(lines, views.DepartmentLine{ID: "reserve", Name: "Reserve", Sub: "which all of them borrow first", Quota: quota.Short(resource, sum.Reserve), Allocated: "–", Reserve: "–", Used: "–", Borrowed: "–", Lent: "–"})
	}
	t.Rows = level(lines)
	return t
}

// level draws all bars to one scale.
func level(lines []views.DepartmentLine) []views.DepartmentLine {
	most := 0.0
	for _, line := range lines {
		most = max(most, line.Meter.Max)
	}
	for i := range lines {
		if lines[i].Meter.Max > 0 {
			lines[i].Meter.Max = most
		}
	}
	return lines
}

func (q Query) note(resource string) string { return format.ResourceName(resource) + " " + q.Where() }

// sum adds up a resource of a department over the pools of the query.
func (q Query) sum(f departments.Figures, resource string) (sum departments.Resource) {
	for _, r := range f.Resources {
		if r.Resource == resource && (q.Pool == "" || r.Flavor == q.Pool) {
			sum.Add(r)
		}
	}
	return sum
}

func (q Query) departmentLine(state departments.State, d *v1alpha1.Department, f departments.Figures, resource string) views.DepartmentLine {
	sum := q.sum(f, resource)
	short := func(n int64) string { return format.Thousands(n) }
	line := views.DepartmentLine{ID: "department-" + d.Name, Name: quota.Title(d), URL: urls.Department(d.Name), Status: DepartmentStatus(d), Quota: quota.Short(resource, sum.Quota), Allocated: "–", Reserve: "–", Used: "–", Borrowed: "–", Lent: "–"}
	if !strings.EqualFold(line.Name, d.Name) {
		line.Sub = d.Name
	}
	if !state.Sees(d.Name) {
		line.Running, line.Waiting = views.Count{Text: "–"}, views.Count{Text: "–"}
		return line
	}
	line.Allocated, line.Reserve, line.Used = quota.Short(resource, sum.Allocated), quota.Short(resource, sum.Reserve), quota.Short(resource, sum.Used)
	line.Borrowed, line.Lent, line.Borrowing = quota.Short(resource, sum.Borrowed), quota.Short(resource, sum.Lent), sum.Borrowed > 0
	line.Meter = ui.MeterProps{
		Label: d.Name + ": " + line.Used + " of " + line.Quota, Max: charts.BarMax(resource, sum.Quota, sum.Used), Mark: float64(sum.Quota),
		Parts: []ui.MeterPart{{Use: "own", Value: float64(sum.Used.Minus(sum.Borrowed))}, {Use: "borrowed", Value: float64(sum.Borrowed)}, {Use: "idle", Value: float64(max(0, sum.Quota.Minus(sum.Used)))}},
	}
	line.Running, line.Waiting = views.Count{Text: short(int64(f.Running))}, views.Count{Text: short(int64(f.Waiting))}
	tasksOf := func(states ...tasks.State) string {
		values := url.Values{"department": {d.Name}}
		for _, state := range states {
			values.Add("status", string(state))
		}
		return urls.With(urls.Tasks, values)
	}
	if f.Running > 0 {
		line.Running.URL = tasksOf(tasks.Running, tasks.Starting, tasks.Stopping)
	}
	if f.Waiting > 0 {
		line.Waiting.URL = tasksOf(tasks.Pending, tasks.Preempted)
	}
	return line
}

// teamOfDepartment returns the line of a team among departments.
func (q Query) teamOfDepartment(t *capacity.TeamSnapshot, resource string) views.DepartmentLine {
	f := q.figuresOf(t, resource)
	team := q.teamLine(f, resource)
	line := views.DepartmentLine{
		ID: "team-" + t.Name, Name: t.Name, URL: TeamURL(t), Sub: cmp.Or(t.DisplayName, "team"), Team: true, Status: HeldStatus(t),
		Quota: team.Allocated, Allocated: "–", Reserve: "–", Used: team.Used, Borrowed: team.Borrowed, Lent: team.Lent, Borrowing: team.Borrowing, Running: team.Running, Waiting: team.Waiting,
	}
	line.Meter = ui.MeterProps{
		Label: t.Name + ": " + line.Used + " of " + line.Quota, Max: charts.BarMax(resource, f.Nominal, f.Usage), Mark: float64(f.Nominal),
		Parts: []ui.MeterPart{{Use: "own", Value: float64(f.Own)}, {Use: "borrowed", Value: float64(f.Borrowed)}, {Use: "idle", Value: float64(max(0, f.Nominal.Minus(f.Usage)))}},
	}
	return line
}

// DepartmentStatus returns the status of a department that is not applied or admits no tasks;
// without a label for others.
func DepartmentStatus(d *v1alpha1.Department) views.Status {
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case d.DeletionTimestamp != nil:
		return views.Status{Tone: "wait", Label: "Deleting"}
	case ready == nil || ready.ObservedGeneration != d.Generation:
		return views.Status{Tone: "wait", Label: "Applying"}
	case ready.Status != metav1.ConditionTrue:
		return views.Status{Tone: "bad", Label: "Not applied", Text: format.Capitalize(ready.Message)}
	case d.Spec.Activation == v1alpha1.Hold:
		return views.Status{Tone: "idle", Label: "Held", Text: "Running tasks continue; none starts."}
	case d.Spec.Activation == v1alpha1.Drain:
		return views.Status{Tone: "idle", Label: "Drained", Text: "No task runs; all wait."}
	}
	return views.Status{}
}
