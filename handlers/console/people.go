package console

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"kuota.dev/kuota/governance"
)

// mostPeople bounds the names that a console keeps; with as many, it keeps no new ones.
const mostPeople = 10_000

// People are the names of users who opened pages of this process, and of their groups, as the
// sign-in provider claims them. They are suggestions: another replica has its own.
type People struct {
	mu    sync.Mutex
	names map[string]bool
}

// see keeps the names of a user.
func (p *People) see(user governance.User) {
	if user.Local || user.ServiceAccount {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[string]bool{}
	}
	for _, name := range append(slices.Clone(user.Groups), user.Name) {
		if name != "" && !strings.HasPrefix(name, "system:") && len(p.names) < mostPeople {
			p.names[name] = true
		}
	}
}

// Names returns a new set of all names.
func (p *People) Names() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		return map[string]bool{}
	}
	return maps.Clone(p.names)
}
