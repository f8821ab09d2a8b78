package console

import (
	"maps"
	"testing"

	"kuota.dev/kuota/governance"
)

// Users of the sign-in provider are kept with their groups, others are not.
func TestPeople(t *testing.T) {
	var p People
	if len(p.Names()) != 0 {
		t.Error("someone was seen before anyone")
	}
	p.see(governance.User{})
	p.see(governance.User{Name: "oidc:ada", Groups: []string{"vision-team", "system:authenticated"}})
	p.see(governance.User{Name: "local", Local: true})
	p.see(governance.User{Name: "system:serviceaccount:ci:robot", ServiceAccount: true, Groups: []string{"robots"}})
	names := p.Names()
	if want := map[string]bool{"oidc:ada": true, "vision-team": true}; !maps.Equal(names, want) {
		t.Errorf("saw %v, want %v", names, want)
	}
	names["changed"] = true
	if p.Names()["changed"] {
		t.Error("the set of a caller is that of the process")
	}
}
