package teams

import "kuota.dev/kuota/views"

// ServingFields are the inputs of a service beside those of SubmitForm, of which
// Command, Pods and Limit apply too.
type ServingFields struct {
	Kind     string // of the object that is created
	Notebook bool
	Groups   bool // whether replicas can have several pods
	Replicas views.TextField
	Port     views.TextField
	Home     views.TextField // claim of a notebook
	HomeSize views.TextField // of a new claim, in GiB
	HomePath views.TextField
	// DefaultHomePath is what an empty HomePath means.
	DefaultHomePath string
}
