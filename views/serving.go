package views

// ServingFields are the inputs of a service beside those of SubmitForm, of which
// Command, Pods and Limit apply too.
type ServingFields struct {
	Kind     string // of the object that is created
	Notebook bool
	Groups   bool // whether replicas can have several pods
	Replicas TextField
	Port     TextField
	Home     TextField // claim of a notebook
	HomeSize TextField // of a new claim, in GiB
	HomePath TextField
	// DefaultHomePath is what an empty HomePath means.
	DefaultHomePath string
}
