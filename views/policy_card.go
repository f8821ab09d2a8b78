package views

import (
	"kuota.dev/kuota/views/ui"

	"github.com/a-h/templ"
)

// PolicyCard is the cluster policy on the policies page: the fragment with the id
// cluster-policy.
type PolicyCard struct {
	Exists   bool // false: the card describes the behavior without a policy
	MayEdit  bool
	EditURL  string
	Status   Status          // of the policy as a whole
	Progress *PolicyProgress // nil if no re-ranking runs
	Parts    []PolicyPart    // in display order
	Managed  string          // the tool that manages it, and where to change it; empty for none
	YAML     string          // the policy as YAML; YAMLURL is the same as a file
	YAMLURL  string
	Patch    string // manual changes of Kueue; empty if Kueue matches the policy
	// PatchReason is why Kuota does not make the changes of Patch.
	PatchReason string
	TryAgainURL string // that makes Kuota try again; empty where it cannot
	User        string
	History     History // the last versions
}

// PolicyProgress is the progress of re-ranking tasks.
type PolicyProgress struct {
	Text        string
	Done, Tasks int // Tasks 0: not counted yet
}

// PolicyPart is one part of the policy and whether the cluster matches it.
type PolicyPart struct {
	ID, Label string
	Value     string      // such as "By priority class"
	Text      string      // its effect
	Classes   []ClassLine // of task prioritization, highest first
	Pools     []PoolLine  // in matching order
	Status    Status      // no label: no status
	EditURL   string      // of the form of the part; empty where there is none, or the reader may not
}

// ClassLine is one priority class.
type ClassLine struct {
	Name, Weight, Description string
	Object                    string // value of the label of tasks
	Limits                    string // time limits of its tasks; empty for none
}

// PoolLine is one pool with its number of matching nodes.
type PoolLine struct{ Name, Match, Nodes string }

func (p PolicyCard) tools() templ.Component {
	if !p.Exists {
		return nil
	}
	return ui.Tag(p.Status.Tone, p.Status.Label)
}

// usual is how many parts are not closed: the ranking, and idle and unallocated compute.
func (p PolicyCard) usual() int { return min(3, len(p.Parts)) }

// troubled reports whether a closed part is not active.
func (p PolicyCard) troubled() bool {
	for _, part := range p.Parts[p.usual():] {
		if part.Status.Tone == "bad" {
			return true
		}
	}
	return false
}
