package diagnostics

import (
	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/reconcile"
)

// Seen is what was looked at.
type Observation struct {
	Server  string               // the API server's version, such as v1.36.3; empty when it is not known
	Missing cluster.MissingKinds // what is missing of Kuota's and Kueue's kinds

	ReadOnly string // a sentence about why the console writes nothing; empty when it writes

	Install        reconcile.KueueInstall // where Kueue's configuration is
	Kueue          reconcile.KueueState   // as far as Unread is empty
	KueueRead      ReadResult
	KueueReadError string // of Unread, in the API server's words

	Visibility bool                        // whether Kueue's visibility API answers
	Policy     *v1alpha1.ClusterPolicySpec // nil while there is none
	CanWrite   Answer                      // whether the console may change Kueue's configuration

	Enforcement, Members []string // admission policies that are missing
	PoliciesKnown        bool     // whether it is known that no others are
	ChangedBy            PolicyState
	Covered              []string // resources that ClusterQueues cover
	Uncovered            []UncoveredResource
}

// Manages tells whether the console keeps Kueue's configuration as the policy
// says, as far as it may.
func (s Observation) Manages() bool { return s.Install.Manage && s.ReadOnly == "" }

// Unread is why Kueue's configuration is not known.
type ReadResult string

// Why Kueue's configuration is not known.
const (
	ReadSucceeded ReadResult = ""
	ReadNotFound  ReadResult = "NotThere"
	ReadForbidden ReadResult = "Forbidden"
	ReadFailed    ReadResult = "Failed"
)

// Answer is yes, no, or not known.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Admission is whether an admission policy is there.
type PolicyState int

// States of an admission policy.
const (
	PolicyUnknown PolicyState = iota
	PolicyInstalled
	PolicyMissing
	PolicyUnsupported // the API server is too old for it
)

// Uncovered is a resource that tasks or nodes name and no ClusterQueue covers.
type UncoveredResource struct {
	Resource string
	Tasks    int // unfinished ones that ask for it; 0 when only nodes have it
}
