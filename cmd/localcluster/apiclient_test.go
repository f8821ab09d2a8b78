package main

import (
	"path/filepath"
	"testing"
)

// The role of each kind of an operator is one of deploy/rbac, and gets the label.
func TestAllowKinds(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy", "rbac")
	labeled := func(frameworks []string) (n int) {
		objs, err := readManifests(dir)
		if err != nil {
			t.Fatal(err)
		}
		allowKinds(objs, frameworks)
		for _, u := range objs {
			if u.GetLabels()["kuota.dev/aggregate-to-team-member"] == "true" {
				n++
			}
		}
		return n
	}
	without := labeled(nil)
	for _, o := range operators {
		if got := labeled(o.frameworks); got != without+len(o.frameworks) {
			t.Errorf("%s: got %d labeled roles, want %d more than %d", o.name, got, len(o.frameworks), without)
		}
	}
}
