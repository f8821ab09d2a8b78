package views

// WhyStep is one way to be admitted that was checked.
type WhyStep struct {
	Tone  string             `json:"-"`
	Title string             `json:"title"`
	Text  string             `json:"text"`
	Tasks []AdmittedTaskLink `json:"tasks,omitempty"`
}

// WhyChange is a change after which the task would be admitted.
type WhyChange struct {
	Kind     string             `json:"kind"`
	Title    string             `json:"title"`
	Text     string             `json:"text"`
	Tasks    []AdmittedTaskLink `json:"tasks,omitempty"`
	After    string             `json:"after,omitempty"` // text after the tasks, such as "finishes"
	Verified bool               `json:"verified"`        // by a simulation
	Effects  []WhyEffect        `json:"effects,omitempty"`

	Figures string        `json:"-"` // for tests and scripts: resource=amount of each figure, in base units
	Tied    bool          `json:"-"` // in some orders of ties only
	Action  *ActionButton `json:"-"` // that applies it; nil if the reader may not
}

// WhyEffect is something that a change does besides starting the task.
type WhyEffect struct {
	Kind  string             `json:"kind"` // "preempted", "started", "missed" or "borrowed"
	Text  string             `json:"text"`
	Tasks []AdmittedTaskLink `json:"tasks,omitempty"`
}

// TaskLink is a link to a task; without a URL, only its name.
type TaskLink struct {
	Name string `json:"name"`
	URL  string `json:"path,omitempty"`
}

// AdmittedTaskLink is an admitted task with its usage, such as "4 GPUs"; Amount may
// be empty.
type AdmittedTaskLink struct {
	TaskLink
	Amount string `json:"amount,omitempty"`
}
