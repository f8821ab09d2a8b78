package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"kuota.dev/kuota/web/signin"
)

// All errors of Sessions wrap one of these.
var (
	// ErrNotFound: the session does not exist, or no longer.
	ErrNotFound = errors.New("session not found")
	// ErrUnavailable: the store or the provider does not answer.
	ErrUnavailable = errors.New("the session cannot be confirmed now")
)

// Session is one user in one browser. Its fields are stored as JSON by name, and
// replicas of the previous version read them during an upgrade.
type Session struct {
	signin.Identity
	Began     time.Time // when the user signed in
	Seen      time.Time // last used by the user, accurate to a tenth of the idle limit
	Confirmed time.Time // the provider last confirmed the user and the groups
	Trying    time.Time // a replica started to ask the provider; zero: none does
	Failed    time.Time // the provider last did not answer
}

// NewID returns a new session ID, which is secret: 260 random bits.
func NewID() string { return rand.Text() + rand.Text() }

// idLength is the length of every session ID.
var idLength = len(NewID())

// storeName returns the name of a session in the store: a hash, so that readers of
// the store do not learn the ID.
func storeName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

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
