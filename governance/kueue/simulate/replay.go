package simulate

import (
	"compress/gzip"
	"encoding/json"
	"io"
)

// Replay is a question about a snapshot that was answered unexpectedly, with the
// names of objects replaced: kuota simulate answers it again.
type Replay struct {
	ID         string    `json:"id,omitempty"`
	Constraint string    `json:"constraint,omitempty"` // that package explain named
	Question   *Question `json:"question,omitempty"`
	*Snapshot
}

// Write writes a replay as compressed JSON.
func (r *Replay) Write(to io.Writer) error {
	z := gzip.NewWriter(to)
	if err := json.NewEncoder(z).Encode(r); err != nil {
		return err
	}
	return z.Close()
}
