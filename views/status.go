package views

// Status is a state in one word, with an explanation.
type Status struct {
	Tone  string // "ok", "wait", "bad", "pre" or "idle"; Label has the same meaning
	Label string // such as "Active"
	Text  string // explanation as a sentence; empty for none
}
