package clustertest

import (
	"strings"
	"testing"
)

// These calls are answered in process, and the others by kubectl.
func TestParse(t *testing.T) {
	for args, want := range map[string]bool{
		"get jobs,pods -n a -l b=c -o name":                         true,
		"get job a -n b --ignore-not-found -o jsonpath={.spec}":     true,
		"patch job a -n b --type=merge -p {}":                       true,
		"delete job a -n b --wait=false":                            true,
		"delete jobs,pods a b -n c --ignore-not-found --wait=false": true,

		"get":                                    false,
		"get jobs":                               false, // a table
		"get job/a -o name":                      false,
		"get job a -l b=c -o name":               false, // an error
		"get jobs -n a --as b -o name":           false,
		"patch job a -p {}":                      false, // a strategic patch
		"patch jobs a b --type=merge -p {}":      false, // an error
		"delete job a -n b":                      false, // waits
		"delete job a b -n c --wait=false":       false, // repeated, the deleted one is not found
		"delete jobs --all -n a --wait=false":    false,
		"delete job a --cascade=orphan":          false,
		"create -f -":                            false,
		"get jobs -l a in (b -o name":            false,
		"get jobs --field-selector a==b==c -o x": false,
	} {
		if _, err := parse(strings.Split(args, " ")); (err == nil) != want {
			t.Errorf("%s: got %v, want in process %t", args, err, want)
		}
	}
}
