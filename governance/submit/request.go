package submit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/api/v1alpha1"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxPods is how many pods one request may ask for.
const maxPods = 10_000

// maxText is how long an image or a command may be, in bytes.
const maxText = 4096

// Request is what somebody wants to run: equal pods in one pool.
type Request struct {
	Name  string
	Class string // name of a WorkloadPriorityClass; empty for none
	Pool  string
	Pods  int32
	// Each is what a pod gets; what is left out is filled in. Whole instances
	// cannot be asked for: a node keeps some of its own for itself.
	PerPod  v1alpha1.Amounts
	Image   string
	Command string // a line for sh; empty for the image's own
	// Least is how many pods it may start with where there is no room for all; 0
	// for all. Kueue calls it partial admission.
	MinPods int32
	Elastic bool // grows and shrinks while it runs
}

// check says what is wrong with a request, with paths that are the names of its
// fields in lower case. What only matters for making it is told where whole is
// asked for.
func (r Request) check(t Team, whole bool) (wrong []governance.FieldError) {
	tell := func(path, format string, args ...any) {
		wrong = append(wrong, governance.FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case r.Name == "" && whole:
		tell("name", "give the task a name")
	case r.Name != "" && len(validation.IsDNS1123Label(r.Name)) > 0:
		if len(r.Name) > validation.DNS1123LabelMaxLength {
			tell("name", "has %d characters; a task's name has at most %d", len([]rune(r.Name)), validation.DNS1123LabelMaxLength)
		} else {
			tell("name", "use lower-case letters, digits and hyphens; start and end with a letter or digit")
		}
	}
	if _, ok := t.pool(r.Pool); !ok {
		tell("pool", "%s", noPool(r.Pool, t))
	}
	if _, ok := t.class(r.Class); !ok {
		tell("class", "%s", noClass(r.Class, t))
	}
	if r.Pods < 1 || r.Pods > maxPods {
		tell("pods", "must be a whole number from 1 to 10,000")
	}
	if r.PerPod.Instances != nil {
		tell("instances", "give accelerators, vCPU or memory of a pod")
	}
	switch {
	case r.MinPods < 0 || r.MinPods > max(r.Pods, 0):
		tell("least", "must be a whole number from 1 to the number of pods")
	case r.MinPods > 0 && r.Elastic:
		tell("least", "a task is either elastic or starts with fewer pods: Kueue does not do both")
	}
	switch {
	case r.Image == "" && whole:
		tell("image", "name the image that its pods run")
	case len(r.Image) > maxText || strings.ContainsFunc(r.Image, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		tell("image", "must be one name without spaces, such as repository/name:tag")
	}
	if len(r.Command) > maxText || strings.ContainsFunc(r.Command, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }) {
		tell("command", "must be text of at most %d bytes", maxText)
	}
	return wrong
}

func noPool(name string, t Team) string {
	if len(t.Pools) == 0 {
		return fmt.Sprintf("team %s has quota in no pool yet", t.Name)
	}
	var names []string
	for _, p := range t.Pools {
		names = append(names, p.Name)
	}
	if name == "" {
		return "choose a pool of the team: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("the team's queue has no pool %s; its pools are %s", name, strings.Join(names, ", "))
}

func noClass(name string, t Team) string {
	if len(t.Classes) == 0 {
		return fmt.Sprintf("there is no priority class %s, and the cluster has none", name)
	}
	var names []string
	for _, c := range t.Classes {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("there is no priority class %s; there are %s", name, strings.Join(names, ", "))
}

func (t Team) pool(name string) (QueuePool, bool) {
	i := slices.IndexFunc(t.Pools, func(p QueuePool) bool { return p.Name == name })
	if i < 0 {
		return QueuePool{}, false
	}
	return t.Pools[i], true
}

// class is the priority class of a name; of none, the lowest.
func (t Team) class(name string) (PriorityClass, bool) {
	if name == "" {
		return PriorityClass{}, true
	}
	i := slices.IndexFunc(t.Classes, func(c PriorityClass) bool { return c.Name == name })
	if i < 0 {
		return PriorityClass{}, false
	}
	return t.Classes[i], true
}
