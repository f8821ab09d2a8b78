package urls

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance/quota/resources"
	"kuota.dev/kuota/governance/record/history"
	"kuota.dev/kuota/governance/tasks"
)

// With returns a path with values, some of them changed. An empty value removes its
// name.
func With(path string, values url.Values, pairs ...string) string {
	values = maps.Clone(values)
	if values == nil {
		values = url.Values{}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(values, pairs[i])
		} else {
			values[pairs[i]] = []string{pairs[i+1]}
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

const (
	Policies         = "/policies"
	PoliciesMany     = "/policies/many"
	PoliciesCSV      = "/policies.csv"
	PoliciesJSON     = "/policies.json"
	AllocationPrefix = "/policies/allocations/"
	NewAllocation    = AllocationPrefix + "new"
)

// The tree of departments, which is part of the list of teams, as files.
const (
	Departments      = "/departments"
	DepartmentsCSV   = "/departments.csv"
	DepartmentsJSON  = "/departments.json"
	DepartmentPrefix = Departments + "/"
	NewDepartment    = DepartmentPrefix + "new"
)

// Department returns the page of a department, EditDepartment its form, and DeleteDepartment
// the page that deletes it.
func Department(name string) string { return DepartmentPrefix + url.PathEscape(name) }

func EditDepartment(name string) string { return Department(name) + "/edit" }

func DeleteDepartment(name string) string { return Department(name) + "/delete" }

// Allocation returns the page of one team's allocation.
func Allocation(team string) string { return AllocationPrefix + url.PathEscape(team) }

// Queue is the page of the waiting tasks that are next to start, and QueueJSON its rows.
const (
	Queue     = "/queue"
	QueueJSON = "/queue.json"
)

const ClassesCSV = "/classes.csv"

const (
	Dashboard       = "/"
	DashboardEvents = "/events/dashboard"
)

// PolicyVersions is the page of all versions of the policy.
const PolicyVersions = "/policies/cluster/revisions"

func AllocationVersions(team string) string { return Allocation(team) + "/revisions" }

const Import = "/policies/import"

// Adoption is the page that adopts existing ClusterQueues.
const Adoption = "/policies/adopt"

const (
	Instances    = "/instances"
	InstancesCSV = "/instances.csv"
)

const (
	PastTasks    = Tasks + "/past"
	PastTasksCSV = Tasks + "/past.csv"
)

// PastTask returns the page of the task with this UID, not of others with its name.
func PastTask(t history.Task) string {
	return With(TaskOf(t.Namespace, t.Kind, t.Name), nil, "uid", t.UID)
}

const (
	Activity     = "/activity"
	ActivityCSV  = "/activity.csv"
	ActivityJSON = "/activity.json"
)

const (
	Alerts       = "/alerts"
	AlertsCSV    = "/alerts.csv"
	AlertsJSON   = "/alerts.json"
	AlertsEvents = "/alerts/events"

	Notices = "/notices"
)

// The report of who used which compute, as a page and as files.
const (
	Usage     = "/usage"
	UsageCSV  = "/usage.csv"
	UsageJSON = "/usage.json"
)

// The forms of the cluster policy.
const (
	EditPolicy     = "/policies/cluster/edit"
	EditPools      = Instances + "/pools"
	EditPrices     = Usage + "/prices"
	EditAlerts     = Alerts + "/rules"
	TryPolicyAgain = "/policies/cluster/try-again"
)

const CapacityCSV = "/capacity.csv"

const Settings = "/settings"

// Export answers with several CSV files in one.
const Export = "/export.zip"

// ExportOf returns the address of these CSV files in one.
func ExportOf(tables ...string) string { return Export + "?" + url.Values{"table": tables}.Encode() }

// Replay returns the address of the snapshot of a contradicted explanation.
func Replay(id string) string { return Settings + "/replays/" + url.PathEscape(id) }

// Task returns the page of a task: by kind and name of its owner, so that it stays
// the same across requeues and workload slices.
func Task(t *tasks.Task) string { return TaskOf(t.Namespace, t.Kind, t.Name) }

const (
	Tasks     = "/tasks"
	TasksJSON = "/tasks.json"
	ManyTasks = Tasks + "/many"
)

// Bulk is above the pages of changes of many objects.
const Bulk = "/bulk"

const TeamPrefix = "/teams/"

// Team returns the page of a team.
func Team(team string) string { return TeamPrefix + url.PathEscape(team) }

// TeamSubmit returns the page that submits a task to a team.
func TeamSubmit(team string) string { return Team(team) + "/submit" }

// TeamManifest returns the page that submits a task from a manifest.
func TeamManifest(team string) string { return Team(team) + "/manifest" }

// TeamAgain returns the page that submits a task of a team again.
func TeamAgain(team, kind, name, uid string) string {
	return Team(team) + "/again?" + url.Values{"kind": {kind}, "name": {name}, "uid": {uid}}.Encode()
}

// TeamTemplates returns the page with the templates of a team, and TeamTemplate the form with
// the values of one.
func TeamTemplates(team string) string { return Team(team) + "/templates" }

func TeamTemplate(team, name string) string {
	return Team(team) + "/again?" + url.Values{"template": {name}}.Encode()
}

// ActivityOf returns the page with who did what with the object with a UID.
func ActivityOf(uid string) string { return Activity + "?uid=" + url.QueryEscape(uid) }

// TaskOf is Task for a task that may not be listed yet.
func TaskOf(namespace, kind, name string) string {
	return strings.Join([]string{Tasks, url.PathEscape(namespace), url.PathEscape(strings.ToLower(kind)), url.PathEscape(name)}, "/")
}

const (
	Teams       = "/teams"
	TeamsEvents = "/events/teams" // a team can be named "events"
	TeamsCSV    = "/teams.csv"
	TeamsJSON   = "/teams.json"
)

const PolicyYAML = "/policies/cluster/yaml"

// Raise returns the form of a team's allocation with figures typed in: kind is that
// of a change of package explain, pool the name of the pool, and figures are amounts
// by resource, in the units of quota.Resources.
func Raise(team, share, kind, pool string, figures map[string]resources.Amount) string {
	values := url.Values{"raise": {kind}, "pool": {pool}}
	if share != "" {
		values.Set("share", share)
	}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		values.Add("figure", name+"="+strconv.FormatInt(int64(figures[name]), 10))
	}
	return Allocation(team) + "/edit?" + values.Encode()
}

// ReadRaise returns what Raise encoded; figures that are none are left out.
func ReadRaise(values url.Values) (kind, pool string, figures map[string]resources.Amount) {
	figures = map[string]resources.Amount{}
	for _, text := range values["figure"] {
		name, amount, _ := strings.Cut(text, "=")
		if n, err := strconv.ParseInt(amount, 10, 64); err == nil && n >= 0 {
			figures[name] = resources.Amount(n)
		}
	}
	return values.Get("raise"), values.Get("pool"), figures
}

// LinkTemplate is the address of an external log system or dashboard, with placeholders. The
// zero value is none.
type LinkTemplate string

// LinkSource is what a link to an external system is about. What it is not about is empty.
type LinkSource struct {
	Namespace, Kind, Task string
	Team, Node            string
	Pod, Container        string    // empty for all of the task
	From, To              time.Time // when the task was submitted, and when it ended; To is now for one that has not
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// placeholders are the placeholders of a LinkTemplate.
var placeholders = map[string]func(LinkSource) string{
	"{namespace}": func(s LinkSource) string { return s.Namespace },
	"{kind}":      func(s LinkSource) string { return strings.ToLower(s.Kind) }, // as in addresses of tasks
	"{task}":      func(s LinkSource) string { return s.Task },
	// The names of a task's pods begin with that of the task, so that a template with a
	// prefix match finds one pod or all.
	"{pod}": func(s LinkSource) string {
		if s.Pod == "" {
			return s.Task
		}
		return s.Pod
	},
	"{container}": func(s LinkSource) string { return s.Container },
	"{team}":      func(s LinkSource) string { return s.Team },
	"{node}":      func(s LinkSource) string { return s.Node },
	"{from}":      func(s LinkSource) string { return strconv.FormatInt(s.From.UnixMilli(), 10) },
	"{to}":        func(s LinkSource) string { return strconv.FormatInt(s.To.UnixMilli(), 10) },
}

// ParseLinkTemplate checks a template. Placeholders must come after the host, so that
// no name of an object leads elsewhere.
func ParseLinkTemplate(text string) (LinkTemplate, error) {
	if text == "" {
		return "", nil
	}
	for _, name := range placeholder.FindAllString(text, -1) {
		if placeholders[name] == nil {
			return "", fmt.Errorf("has the unknown placeholder %s: use {namespace}, {team}, {kind}, {task}, {pod}, {container}, {node}, {from} and {to}, and write other braces as %%7B and %%7D", name)
		}
	}
	if strings.ContainsAny(placeholder.ReplaceAllString(text, ""), "{}") {
		return "", errors.New("has a single brace: write braces that belong to no placeholder as %7B and %7D")
	}
	address, err := url.Parse(placeholder.ReplaceAllString(text, "x"))
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" || address.User != nil {
		return "", errors.New("write it as https://host/path?query")
	}
	if prefix := address.Scheme + "://" + address.Host; !strings.HasPrefix(text, prefix+"/") && !strings.HasPrefix(text, prefix+"?") {
		return "", errors.New("has a placeholder in its host, or none of / and ? after it")
	}
	return LinkTemplate(text), nil
}

// URL returns the address for a source; empty without a template.
func (t LinkTemplate) URL(s LinkSource) string {
	return placeholder.ReplaceAllStringFunc(string(t), func(name string) string {
		return url.QueryEscape(placeholders[name](s))
	})
}

// Host returns the host of the system, for the label of a link.
func (t LinkTemplate) Host() string {
	address, err := url.Parse(placeholder.ReplaceAllString(string(t), "x"))
	if err != nil {
		return ""
	}
	return address.Hostname()
}
