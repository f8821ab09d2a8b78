package views

// TaskPage is the page of one task. All below its head is the fragment with the
// id task.
type TaskPage struct {
	Chrome
	Loops           []LoopLine // preemption loops that it is part of
	Name, Namespace string
	UID             string
	Team, TeamURL   string // TeamURL is empty for a task of no team
	Status          Status
	Lead            string          // such as "Job · training · asks for 4 GPUs"
	Why             *Why            // nil for a task that runs or has ended
	Position        *QueuePosition  // nil while it does not wait
	QuotaSource     *QuotaSource    // nil while it holds no quota
	LastPreemption  *LastPreemption // nil unless it was preempted and does not run
	Timeline        []TimelineLine
	TimelineGap     string     // what of it nobody remembers; empty for nothing
	TimelineNote    string     // how far the timeline goes back, in a few words
	Others          []PastLink // past tasks of the same name; not a part of what is live
	Sizes           []SizeLine
	Events          *TaskEvents // nil shows none
	Resources       []ValueLine
	Pods            *Pods // nil while it has none
	KueueMessages   []KueueMessage
	YAMLURL         string       // empty where there is no Workload
	Actions         *TaskActions // nil for none
	Notice          string       // what was just done, as far as the status shows; empty for nothing
}

// Pods are the pods of a task.
type Pods struct {
	Note string // such as "8 pods: 2 without a node"
	Rows []PodRow
	More int // that are not listed
}

// PodRow is one pod.
type PodRow struct {
	ID, Name, Node string
	Status         Status
	Trouble        string // why it does not run; empty for nothing
	Since          string // RFC 3339; empty for not known
	Requests       string // such as "8 GPUs · 64 vCPUs"
}

// Why says why a task does not start.
type Why struct {
	Title        string
	Tone         string // of the headline, as of a tag
	Headline     string
	Text         string
	Steps        []WhyStep
	Pools        []ValueLine // that are not for it, and why
	Changes      []WhyChange // each would do by itself
	ChangesTitle string
	Differs      string // Kueue's own reason where it says something else; empty where it does not
}

// WhyStep is one way by which it might get what it needs.
type WhyStep struct {
	Tone  string
	Title string
	Text  string
	Tasks []AdmittedTaskLink
}

// WhyChange is something that somebody could change.
type WhyChange struct {
	Title string
	Text  string
	Tasks []AdmittedTaskLink
	After string // behind the tasks, such as "finishes"
}

// TaskLink leads to a task; without an address it is only named.
type TaskLink struct{ Name, URL string }

// HolderLink is a task with what it holds, such as "4 GPUs"; Amount may be
// empty.
type AdmittedTaskLink struct {
	TaskLink
	Amount string
}

// Place is where a task stands in its queue.
type QueuePosition struct {
	Text                   string // such as "3rd of 12"
	Queue                  string
	Cluster                string // the same among all queues of its ClusterQueue, or why not; empty where there is one
	For                    string // how long it waits
	Since                  string // how long it has this place; empty where that is not known
	Source                 string // who says so, as a sentence
	Before, Behind         []TaskLink
	MoreBefore, MoreBehind int // that are not named
}

// TimelineLine is one step in the life of a task.
type TimelineLine struct {
	At      string // RFC 3339
	Before  bool   // it was some time before At
	Tone    string
	Title   string
	From    string    // RFC 3339: the first of several steps that it stands for; empty for one
	Word    string    // before By or Unnamed, such as "by"
	By      *TaskLink // another task, such as the one that it was preempted for
	Unnamed string    // the same, where it cannot be named
	Text    string
}

// Said is what Kueue says, to the letter.
type KueueMessage struct{ Token, Text, At string }
