package tasks

// Progress is how far a training is.
type Progress struct {
	Step             string
	SamplesPerSecond string // empty if unknown, as all below
	Loss             string
	Checkpoint       string // RFC 3339
	CheckpointTook   string // such as "2.5 s"
	At               string // RFC 3339: when the training reported it
}
