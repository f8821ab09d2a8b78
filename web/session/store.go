package session

import (
	"context"
	"time"
)

// Store stores encrypted sessions for all replicas. Each write changes the version
// of a session, which is never empty. Writes take effect at once; Get may lag
// behind, as a cache does. Implementations are safe for concurrent use.
type Store interface {
	// Get returns the session and its version; version "" if there is none.
	Get(ctx context.Context, name string) (sealed, version string, err error)
	// Create stores a new session until expires. It returns false if the name is
	// taken.
	Create(ctx context.Context, name, sealed string, expires time.Time) (bool, error)
	// Update replaces the session that was read at version. It returns false if
	// the session was changed or deleted since.
	Update(ctx context.Context, name, sealed string, expires time.Time, version string) (bool, error)
	// Delete deletes the session, if it exists.
	Delete(ctx context.Context, name string) error
}
