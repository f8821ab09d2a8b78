package views

// StartEstimate is when a waiting task probably starts.
type StartEstimate struct {
	State string // computing, range, unknown or never
	Text  string // without a range: why
	// From and To are RFC 3339; From is empty if the task may start at any time.
	From, To string
	In       string // the same as durations from now, such as "in 20 m to 1 h 40 m"
	Record   string // how many past estimates held; empty without a range
}
