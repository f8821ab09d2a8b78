package alerts

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/spec/describe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule identifies a rule.
type Rule string

// The rules.
const (
	TaskWaits      Rule = "task-waits"
	OwnQuotaWaits  Rule = "own-quota-waits"
	PreemptionLoop Rule = "preemption-loop"
	TaskPreempted  Rule = "task-preempted"
	TasksFail      Rule = "tasks-fail"
	TaskIdle       Rule = "task-idle"
	NoCheckpoint   Rule = "no-checkpoint"
	TrainingSlow   Rule = "training-slow"
	QuotaIdle      Rule = "quota-idle"
	Budget         Rule = "budget"
	NotAdmitted    Rule = "not-admitted"
	NodesLost      Rule = "nodes-lost"
	PolicyDiffers  Rule = "policy-differs"
	ConsoleStale   Rule = "console-stale"
	HistoryRefused Rule = "history-refused"
)

// Severity is how urgent an alert is.
type Severity string

// The severities.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Description describes a rule on pages.
type Description struct {
	Rule     Rule
	Title    string
	Severity Severity
	Cluster  bool                               // its alerts are about the cluster, and not about a team
	Meaning  func(Thresholds) string            // a sentence with its thresholds
	find     func(*Input, Thresholds) []Finding // nil for ConsoleStale, which needs no cluster
	// threshold is the one that a policy sets with after; nil for none. With lasts, the rule
	// finds something for that long before its alert fires; otherwise what it finds has lasted
	// for long enough already.
	threshold func(*Thresholds) *time.Duration
	lasts     bool
}

// For returns how long the rule finds something before its alert fires.
func (d Description) For(t Thresholds) time.Duration {
	if !d.lasts {
		return 0
	}
	return *d.threshold(&t)
}

// Counts reports whether the limit of the rule is a number, and not a time.
func (d Description) Counts() bool { return d.Rule == TaskPreempted || d.Rule == TasksFail }

// Limit returns the limit of the rule, which a policy can set: a time such as 4h, or a number;
// empty for a rule that has none.
func (d Description) Limit(t Thresholds) string {
	switch {
	case d.Rule == TaskPreempted:
		return strconv.Itoa(int(t.Preemptions))
	case d.Rule == TasksFail:
		return strconv.Itoa(t.Failures)
	case d.threshold != nil:
		return describe.Duration(&metav1.Duration{Duration: *d.threshold(&t)})
	}
	return ""
}

// Rules lists all rules, in the order of pages.
var Rules = []Description{
	{Rule: TaskWaits, Title: "Tasks wait for long", Severity: Warning, find: (*Input).waiting, threshold: func(t *Thresholds) *time.Duration { return &t.Wait }, Meaning: func(t Thresholds) string {
		return "A task waits for longer than " + t.waits() + "."
	}},
	{Rule: OwnQuotaWaits, Title: "A team waits within its own quota", Severity: Warning, find: (*Input).ownQuota, threshold: func(t *Thresholds) *time.Duration { return &t.OwnQuotaWait }, lasts: true, Meaning: func(t Thresholds) string {
		return "A task fits the unused quota of its own team, which others borrow, and is not admitted for " + duration(t.OwnQuotaWait) + "."
	}},
	{Rule: NotAdmitted, Title: "Kueue does not admit a task that fits", Severity: Critical, find: (*Input).notAdmitted, threshold: func(t *Thresholds) *time.Duration { return &t.NotAdmitted }, lasts: true, Meaning: func(t Thresholds) string {
		return "Nothing keeps a task from its quota, and Kueue does not admit it for " + duration(t.NotAdmitted) + "."
	}},
	{Rule: PreemptionLoop, Title: "Preemption loop", Severity: Warning, find: (*Input).looping, Meaning: func(Thresholds) string {
		return "Kueue preempts a task again and again for another one that it does not admit."
	}},
	{Rule: TaskPreempted, Title: "Tasks are preempted often", Severity: Warning, find: (*Input).preempted, Meaning: func(t Thresholds) string {
		return "A task was preempted " + count(int(t.Preemptions), "time") + " or more and has not finished."
	}},
	{Rule: TasksFail, Title: "Tasks fail", Severity: Warning, find: (*Input).failing, Meaning: func(t Thresholds) string {
		return "Of the tasks of a team that ended in the last hour, " + percent(t.FailureRate) + " or more failed, and at least " + count(t.Failures, "task") + "."
	}},
	{Rule: TaskIdle, Title: "Accelerators are idle", Severity: Warning, find: (*Input).idle, Meaning: func(Thresholds) string {
		return "A running task does not use its accelerators. This needs Prometheus; the flags --idle-after and --idle-below define idle."
	}},
	{Rule: NoCheckpoint, Title: "A training writes no checkpoint", Severity: Warning, find: (*Input).noCheckpoint, threshold: func(t *Thresholds) *time.Duration { return &t.NoCheckpoint }, Meaning: func(t Thresholds) string {
		return "A training that reports its progress to Prometheus has written no checkpoint for " + duration(t.NoCheckpoint) + "."
	}},
	{Rule: TrainingSlow, Title: "A training is slower than before", Severity: Warning, find: (*Input).slow, threshold: func(t *Thresholds) *time.Duration { return &t.TrainingSlow }, lasts: true, Meaning: func(t Thresholds) string {
		return "A training does less than " + percent(slowBelow) + " of its usual samples a second at the same size for " + duration(t.TrainingSlow) + ". Usual is the median of the day before, from an hour on."
	}},
	{Rule: QuotaIdle, Title: "Quota is idle", Severity: Info, find: (*Input).idleQuota, threshold: func(t *Thresholds) *time.Duration { return &t.QuotaIdle }, lasts: true, Meaning: func(t Thresholds) string {
		return "A team has used no accelerator of its quota in a pool for " + duration(t.QuotaIdle) + "."
	}},
	{Rule: Budget, Title: "A budget is used", Severity: Warning, find: (*Input).budgets, Meaning: func(Thresholds) string {
		return "A team or a department has used a part of its budget at which it sets a step."
	}},
	{Rule: NodesLost, Title: "Nodes are not ready", Severity: Critical, Cluster: true, find: (*Input).lostNodes, threshold: func(t *Thresholds) *time.Duration { return &t.NodesLost }, lasts: true, Meaning: func(t Thresholds) string {
		return "A node is not ready for " + duration(t.NodesLost) + ". Cordoned nodes do not count."
	}},
	{Rule: PolicyDiffers, Title: "Kueue differs from the policy", Severity: Critical, Cluster: true, find: (*Input).policyDiffers, threshold: func(t *Thresholds) *time.Duration { return &t.PolicyDiffers }, lasts: true, Meaning: func(t Thresholds) string {
		return "The cluster does not match the cluster policy for " + duration(t.PolicyDiffers) + "."
	}},
	{Rule: ConsoleStale, Title: "The console is stale", Severity: Critical, Cluster: true, threshold: func(t *Thresholds) *time.Duration { return &t.Stale }, Meaning: func(t Thresholds) string {
		return "The API server has not answered the console for " + duration(t.Stale) + "."
	}},
	{Rule: HistoryRefused, Title: "History refuses records", Severity: Warning, Cluster: true, find: (*Input).historyRefused, Meaning: func(Thresholds) string {
		return "The history database refused a record in the last day. It is kept in the table set_aside, and all others are recorded."
	}},
}

// Describe returns the description of a rule.
func Describe(rule Rule) (Description, bool) {
	return governance.Find(Rules, func(d Description) bool { return d.Rule == rule })
}

// Thresholds are the limits of all rules.
type Thresholds struct {
	Wait          time.Duration
	WaitOf        map[string]time.Duration // by priority class of the policy
	OffOf         map[string]bool          // priority classes whose tasks may wait forever
	Off           map[Rule]bool            // rules without alerts
	OwnQuotaWait  time.Duration
	NotAdmitted   time.Duration
	Preemptions   int32
	Failures      int
	FailureRate   int // percent
	NoCheckpoint  time.Duration
	TrainingSlow  time.Duration
	QuotaIdle     time.Duration
	NodesLost     time.Duration
	PolicyDiffers time.Duration
	Stale         time.Duration
}

// Defaults are the thresholds without a policy that sets others.
var Defaults = Thresholds{
	Wait: 4 * time.Hour, OwnQuotaWait: 2 * time.Minute, NotAdmitted: 5 * time.Minute, Preemptions: 5, Failures: 5, FailureRate: 50,
	NoCheckpoint: 2 * time.Hour, TrainingSlow: 15 * time.Minute, QuotaIdle: 3 * 24 * time.Hour, NodesLost: 5 * time.Minute, PolicyDiffers: 5 * time.Minute, Stale: 30 * time.Second,
}

// with returns the thresholds that a policy sets, and t for all others.
func (t Thresholds) with(a *v1alpha1.Alerts) Thresholds {
	if a == nil {
		return t
	}
	t.WaitOf, t.OffOf, t.Off = map[string]time.Duration{}, map[string]bool{}, map[Rule]bool{}
	for _, r := range a.Rules {
		class, rule := className(r.PriorityClass), Rule(r.Rule)
		d, _ := Describe(rule)
		switch {
		case r.Off && class != "":
			t.OffOf[class] = true
		case r.Off:
			t.Off[rule] = true
		case r.After != nil && class != "":
			t.WaitOf[class] = r.After.Duration
		case r.After != nil && d.threshold != nil:
			*d.threshold(&t) = r.After.Duration
		case r.Count != nil && rule == TaskPreempted:
			t.Preemptions = *r.Count
		case r.Count != nil && rule == TasksFail:
			t.Failures = int(*r.Count)
		}
	}
	return t
}

// wait returns how long a task of a priority class may wait; ok is false if forever.
func (t Thresholds) wait(class string) (limit time.Duration, ok bool) {
	class = className(class)
	if limit, ok = t.WaitOf[class]; ok {
		return limit, true
	}
	return t.Wait, !t.OffOf[class] && !t.Off[TaskWaits]
}

// waits returns the limits of waiting tasks in words.
func (t Thresholds) waits() string {
	var words []string
	if !t.Off[TaskWaits] {
		words = append(words, duration(t.Wait))
	}
	for _, class := range slices.Sorted(maps.Keys(t.WaitOf)) {
		words = append(words, duration(t.WaitOf[class])+" in priority class "+class)
	}
	text := strings.Join(words, ", or ")
	for _, class := range slices.Sorted(maps.Keys(t.OffOf)) {
		text += ", except in priority class " + class
	}
	return text
}

// IsOff reports whether a rule has no alerts.
func (t Thresholds) IsOff(rule Rule) bool {
	return t.Off[rule] && (rule != TaskWaits || len(t.WaitOf) == 0)
}
