package tasks

// StartEstimate is when a waiting task probably starts, on its page and as JSON.
type StartEstimate struct {
	State string `json:"state"`          // computing, range, unknown or never
	Text  string `json:"text,omitempty"` // without a range: why
	// From and To are RFC 3339; From is empty if the task may start at any time.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	In     string `json:"in,omitempty"` // the same as durations from now, such as "in 20 m to 1 h 40 m"
	Record string `json:"-"`            // how many past estimates held; empty without a range
}
