package tasks

import "kuota.dev/kuota/views"

// TaskPage is the page of one task. All below the heading is the fragment with the
// id task.
type TaskPage struct {
	views.Chrome
	Loops           []views.LoopLine // preemption loops with this task
	Name, Namespace string
	UID             string
	Team, TeamURL   string // TeamURL is empty for a task without a team
	Dashboard       views.ExternalLink
	Status          views.Status
	Lead            string          // such as "Job · training · requests 4 GPUs"
	Estimate        *StartEstimate  // nil for a task that does not wait
	Why             *Why            // nil for a task that runs or has finished
	Position        *QueuePosition  // nil for a task that does not wait
	QuotaSource     *QuotaSource    // nil for a task that is not admitted
	LastPreemption  *LastPreemption // nil unless it was preempted and does not run
	Timeline        []TimelineLine
	TimelineGap     string     // which steps are not recorded; empty for none
	TimelineNote    string     // how far the timeline goes back
	Others          []PastLink // past tasks with the same name; not live
	Sizes           []SizeLine
	Elastic         *ElasticTask // nil for a task that is not elastic
	Progress        *Progress    // nil for a task that does not report it
	Events          *TaskEvents  // nil: not shown
	Resources       []views.ValueLine
	Pods            *Pods // nil for none
	KueueMessages   []KueueMessage
	YAMLURL         string       // empty without a Workload
	ActivityURL     string       // empty without history
	YAMLTitle       string       // of the link to it
	Actions         *TaskActions // nil for none
	Idle            string       // that its accelerators are idle; empty if they are not
	Notice          string       // confirmation of an action; empty for none
}

// logsURL is the page of the logs of a task, which opens with those of its first pod; empty for none.
func (p TaskPage) logsURL() string {
	if p.Pods != nil {
		for _, row := range p.Pods.Rows {
			if row.LogsURL != "" {
				return row.LogsURL
			}
		}
	}
	return ""
}

// Pods are the pods of a task.
type Pods struct {
	Note     string // such as "8 pods: 2 without a node"
	Rows     []PodRow
	More     int                // number of pods that are not listed
	NoLogs   string             // why their logs are not linked; empty if they are
	External views.ExternalLink // of all pods, also of those that no longer exist
}

// PodRow is one pod.
type PodRow struct {
	ID, Name, Node string
	Status         views.Status
	Trouble        string // why it does not run, or failed before; empty for nothing
	Since          string // RFC 3339; empty if unknown
	Restarts       int32  // of its containers
	LogsURL        string // empty without a log
	Index          string // such as "Index 7"; empty without one
	AgainURL       string // of the form that submits its index again; empty for none
	Requests       string // such as "8 GPUs · 64 vCPUs"
}

// Why explains why a task is not admitted, on its page and as JSON.
type Why struct {
	Title        string            `json:"title"`
	Tone         string            `json:"-"` // tone of the headline
	Headline     string            `json:"headline"`
	Text         string            `json:"text"`
	Steps        []views.WhyStep   `json:"steps,omitempty"`
	Pools        []WhyPool         `json:"pools,omitempty"` // that do not match
	ChangesTitle string            `json:"changesTitle"`
	Changes      []views.WhyChange `json:"changes,omitempty"` // each of them is sufficient
	Checked      Checked           `json:"checked,omitzero"`
	Differs      string            `json:"differs,omitempty"` // Kueue's reason if it differs; empty otherwise
}

// Checked is whether changes were simulated with Kueue's scheduler.
type Checked struct {
	State string                   `json:"state"` // "", "computing", "verified", "failed" or "starts": no change is needed
	Text  string                   `json:"text"`
	Tasks []views.AdmittedTaskLink `json:"tasks,omitempty"` // that are preempted, after Text
	Note  string                   `json:"note,omitempty"`  // what is not simulated
	At    string                   `json:"at,omitempty"`    // time of the simulated cluster, RFC 3339; empty for none
}

// WhyPool is a pool that does not match.
type WhyPool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// QueuePosition is the position of a task in its queue.
type QueuePosition struct {
	Text                   string // such as "3rd of 12"
	Queue                  string
	Cluster                string // position in the ClusterQueue, or why there is none; empty if it has one LocalQueue
	For                    string // waiting time
	Since                  string // time at this position; empty if unknown
	Source                 string // source of the position, as a sentence
	Before, Behind         []views.TaskLink
	MoreBefore, MoreBehind int // numbers of further tasks
}

// TimelineLine is one event in the life of a task.
type TimelineLine struct {
	At      string // RFC 3339
	Before  bool   // the event was at an unknown time before At
	Tone    string
	Title   string
	From    string          // RFC 3339: the first of several events that it combines; empty for one
	Word    string          // before By or Unnamed, such as "by"
	By      *views.TaskLink // another task, such as the one it was preempted for
	Unnamed string          // text instead of By for a task that the user may not see
	Text    string
}

// KueueMessage is a condition that Kueue reports, verbatim.
type KueueMessage struct{ Token, Text, At string }
