package live

import "kuota.dev/kuota/governance/simulate"

// Disagrees counts that the simulation of a question contradicts package explain,
// which names a constraint. A nil snapshot is the last one that Snapshot returned.
func (s *Simulator) Disagrees(constraint string, of *simulate.Snapshot, q *simulate.Question) {
	disagreements.WithLabelValues(constraint).Inc()
	_, _ = of, q
}
