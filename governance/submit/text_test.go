package submit

import (
	"slices"
	"strings"
	"testing"
)

// TestTexts divides texts: a script stays with the task after it.
func TestTexts(t *testing.T) {
	script := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-script}\ndata: {script: x}\n"
	job := func(name string) string { return "kind: Job\nmetadata: {name: " + name + "}\n" }
	for name, tc := range map[string]struct {
		text string
		want []string // what each has
	}{
		"one":                      {job("a"), []string{"name: a}"}},
		"JSON":                     {`{"kind": "Job"}`, []string{`"Job"`}},
		"two":                      {"---\n" + job("a") + "--- # next\n" + job("b") + "---\n", []string{"name: a}", "name: b}"}},
		"Windows":                  {strings.ReplaceAll(job("a")+"---\n"+job("b"), "\n", "\r\n"), []string{"name: a}", "name: b}"}},
		"a script before its task": {job("a") + "---\n" + script + "---\n" + job("b") + "---\n" + job("c"), []string{"name: a}", "a-script", "name: c}"}},
		"a script alone":           {script, []string{"a-script"}},
		"two scripts":              {script + "---\n" + script + "---\n" + job("a"), []string{"a-script", "name: a}"}},
		"a line in a block":        {"kind: Job\nscript: |\n  ---\n  x\n", []string{"  x"}},
		"comments":                 {"# a\n---\n# b\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Texts(tc.text)
			if !slices.EqualFunc(got, tc.want, strings.Contains) {
				t.Errorf("got %q, want texts with %q", got, tc.want)
			}
			if name == "a script before its task" {
				if script, rest := CutScript(got[1]); script == nil || !strings.Contains(rest, "name: b}") {
					t.Errorf("the script and its task are %v and %q", script, rest)
				}
			}
		})
	}
}

// TestGeneratedName checks that the name depends on the request, and that the same request
// has the same name.
func TestGeneratedName(t *testing.T) {
	one, long := generated("lr-", "form", "ns"), generated(strings.Repeat("a", 80), "form", "ns")
	if one != generated("lr-", "form", "ns") || one == generated("lr-", "other", "ns") || len(one) != len("lr-")+5 || len(long) != 63 {
		t.Errorf("got %q and %q", one, long)
	}
}
