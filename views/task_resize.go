package views

// SizeFields are the inputs "min", "max", and "step" or "values" of an ElasticJob.
type SizeFields struct {
	Min, Max, Step, Values TextField
	Discrete               bool // Values instead of Step
}
