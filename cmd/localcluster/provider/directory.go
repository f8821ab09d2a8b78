package provider

import (
	"crypto/subtle"
	"log/slog"
	"slices"
	"sync"
)

// directory answers who somebody is. It reads the file for every answer, so
// that an edit counts from the next request on.
type directory struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	last []User
}

func newDirectory(path string, log *slog.Logger) (*directory, error) {
	users, err := ReadUsers(path)
	if err != nil {
		return nil, err
	}
	return &directory{path: path, log: log, last: users}, nil
}

// users are the file's. While somebody is in the middle of an edit, and it
// cannot be read, they are those of the last time.
func (d *directory) users() []User {
	d.mu.Lock()
	defer d.mu.Unlock()
	users, err := ReadUsers(d.path)
	if err != nil {
		d.log.Warn("users are taken as they were before", "error", err)
		return d.last
	}
	d.last = users
	return users
}

// bySubject finds somebody who may use what they were given earlier.
func (d *directory) bySubject(subject string) (User, bool) {
	users := d.users()
	i := slices.IndexFunc(users, func(u User) bool { return u.subject() == subject })
	if i < 0 || users[i].Disabled {
		return User{}, false
	}
	return users[i], true
}

// authenticate finds the user of a name and password, also a disabled one.
func (d *directory) authenticate(name, password string) (User, bool) {
	for _, u := range d.users() {
		if u.Name == name && subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1 {
			return u, true
		}
	}
	return User{}, false
}
