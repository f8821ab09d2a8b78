package session

import (
	"context"
	"time"
)

// Store keeps sealed sessions where every replica sees them. A version says
// which state was read; it is never empty for something that exists.
type Store interface {
	// Get returns what is kept under name. An empty version says that nothing
	// is.
	Get(ctx context.Context, name string) (sealed, version string, err error)
	// Create keeps something new; false says that the name is taken.
	Create(ctx context.Context, name, sealed string, expires time.Time) (bool, error)
	// Update replaces what was read at version; false says that somebody else
	// changed or deleted it since.
	Update(ctx context.Context, name, sealed string, expires time.Time, version string) (bool, error)
	// Delete removes it, if it is there.
	Delete(ctx context.Context, name string) error
}
