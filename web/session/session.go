package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"kuota.dev/kuota/web/signin"
)

// Why there is no session. Each error that Sessions return wraps one of these.
var (
	// ErrNone is the answer to an id that stands for nobody, or no more.
	ErrNotFound = errors.New("there is no such session")
	// ErrAway is the answer while nobody can say whether a session still holds.
	ErrUnavailable = errors.New("the session cannot be confirmed now")
)

// Session is one person in one browser.
type Session struct {
	signin.Identity
	Began     time.Time // signed in
	Seen      time.Time // last used by the person, to within a tenth of the idle limit
	Confirmed time.Time // the provider last said that it holds, and named the groups
	Trying    time.Time // a replica is asking the provider since then
	Failed    time.Time // the provider last gave no answer
}

// NewID makes the secret that a browser keeps: 260 random bits.
func NewID() string { return rand.Text() + rand.Text() }

// idLength is the length of every id.
var idLength = len(NewID())

// nameOf is what a session is called in the store, which thereby does not
// give the id away.
func storeName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
