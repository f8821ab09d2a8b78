package alerts

import (
	"time"
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
	QuotaIdle      Rule = "quota-idle"
	NotAdmitted    Rule = "not-admitted"
	NodesLost      Rule = "nodes-lost"
	PolicyDiffers  Rule = "policy-differs"
	ConsoleStale   Rule = "console-stale"
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
	Cluster  bool // its alerts are about the cluster, and not about a team
	// For is how long the rule finds something before its alert fires; 0 if what it finds
	// has lasted for long enough already.
	For     func(Thresholds) time.Duration
	Meaning func(Thresholds) string // a sentence with its thresholds
}

// Rules lists all rules, in the order of pages.
var Rules = []Description{
	{TaskWaits, "Tasks wait for long", Warning, false, immediately, func(t Thresholds) string {
		return "A task waits for longer than " + duration(t.Wait) + "."
	}},
	{OwnQuotaWaits, "A team waits within its own quota", Warning, false, func(t Thresholds) time.Duration { return t.OwnQuotaWait }, func(t Thresholds) string {
		return "A task fits the unused quota of its own team, which others borrow, and is not admitted for " + duration(t.OwnQuotaWait) + "."
	}},
	{NotAdmitted, "Kueue does not admit a task that fits", Critical, false, func(t Thresholds) time.Duration { return t.NotAdmitted }, func(t Thresholds) string {
		return "Nothing keeps a task from its quota, and Kueue does not admit it for " + duration(t.NotAdmitted) + "."
	}},
	{PreemptionLoop, "Preemption loop", Warning, false, immediately, func(Thresholds) string {
		return "Kueue preempts a task again and again for another one that it does not admit."
	}},
	{TaskPreempted, "Tasks are preempted often", Warning, false, immediately, func(t Thresholds) string {
		return "A task was preempted " + count(int(t.Preemptions), "time") + " or more and has not finished."
	}},
	{TasksFail, "Tasks fail", Warning, false, immediately, func(t Thresholds) string {
		return "Of the tasks of a team that ended in the last hour, " + percent(t.FailureRate) + " or more failed, and at least " + count(t.Failures, "task") + "."
	}},
	{TaskIdle, "Accelerators are idle", Warning, false, immediately, func(Thresholds) string {
		return "A running task does not use its accelerators. This needs Prometheus; the flags --idle-after and --idle-below define idle."
	}},
	{QuotaIdle, "Quota is idle", Info, false, func(t Thresholds) time.Duration { return t.QuotaIdle }, func(t Thresholds) string {
		return "A team has used no accelerator of its quota in a pool for " + duration(t.QuotaIdle) + "."
	}},
	{NodesLost, "Nodes are not ready", Critical, true, func(t Thresholds) time.Duration { return t.NodesLost }, func(t Thresholds) string {
		return "A node is not ready for " + duration(t.NodesLost) + ". Cordoned nodes do not count."
	}},
	{PolicyDiffers, "Kueue differs from the policy", Critical, true, func(t Thresholds) time.Duration { return t.PolicyDiffers }, func(t Thresholds) string {
		return "The cluster does not match the cluster policy for " + duration(t.PolicyDiffers) + "."
	}},
	{ConsoleStale, "The console is stale", Critical, true, immediately, func(t Thresholds) string {
		return "The API server has not answered the console for " + duration(t.Stale) + "."
	}},
}

func immediately(Thresholds) time.Duration { return 0 }

// Describe returns the description of a rule.
func Describe(rule Rule) (Description, bool) {
	for _, d := range Rules {
		if d.Rule == rule {
			return d, true
		}
	}
	return Description{}, false
}

// Thresholds are the limits of all rules.
type Thresholds struct {
	Wait          time.Duration
	WaitOf        map[string]time.Duration // by priority class, as its object is named
	OwnQuotaWait  time.Duration
	NotAdmitted   time.Duration
	Preemptions   int32
	Failures      int
	FailureRate   int // percent
	QuotaIdle     time.Duration
	NodesLost     time.Duration
	PolicyDiffers time.Duration
	Stale         time.Duration
}

// Defaults are the thresholds without a policy that sets others.
var Defaults = Thresholds{
	Wait: 4 * time.Hour, OwnQuotaWait: 2 * time.Minute, NotAdmitted: 5 * time.Minute, Preemptions: 5, Failures: 5, FailureRate: 50,
	QuotaIdle: 3 * 24 * time.Hour, NodesLost: 5 * time.Minute, PolicyDiffers: 5 * time.Minute, Stale: 30 * time.Second,
}

// wait returns how long a task of a priority class may wait.
func (t Thresholds) wait(class string) time.Duration {
	if limit, ok := t.WaitOf[class]; ok {
		return limit
	}
	return t.Wait
}
