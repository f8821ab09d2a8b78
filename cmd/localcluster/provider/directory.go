package provider

import (
	"crypto/subtle"
	"log/slog"
	"slices"
	"sync"
)

// directory finds users. It reads the file at each call, so that an edit takes
// effect at the next request.
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

// users returns the users of the file. If the file is invalid, as in the middle
// of an edit, users returns the last valid ones.
func (d *directory) users() []User {
	d.mu.Lock()
	defer d.mu.Unlock()
	users, err := ReadUsers(d.path)
	if err != nil {
		d.log.Warn("users file is invalid; the previous users stay in use", "error", err)
		return d.last
	}
	d.last = users
	return users
}

// bySubject returns an enabled user.
func (d *directory) bySubject(subject string) (User, bool) {
	users := d.users()
	i := slices.IndexFunc(users, func(u User) bool { return u.subject() == subject })
	if i < 0 || users[i].Disabled {
		return User{}, false
	}
	return users[i], true
}

// authenticate returns the user with a name and password, even if disabled.
func (d *directory) authenticate(name, password string) (User, bool) {
	for _, u := range d.users() {
		if u.Name == name && subtle.ConstantTimeCompare([]byte(u.Password), []byte(password)) == 1 {
			return u, true
		}
	}
	return User{}, false
}
