package views

// SizeFields are the inputs "min", "max", and "step" or "values" of an ElasticJob, and its times.
type SizeFields struct {
	Min, Max, Step, Values TextField
	Discrete               bool // Values instead of Step
	Times                  []TimeField
	TimesOpen              bool

	Asks          bool // for nodes: growth is Provision
	AsksError     string
	Wait, Timeout TextField // pods that wait at once, and seconds
	NodesOpen     bool

	Scale     TextField // a variable by size in each line
	ScaleOpen bool
}

// TimeField is an input of seconds, named as the field of the ElasticJob's policy.
type TimeField struct {
	TextField
	ID, Label, Hint string
}
