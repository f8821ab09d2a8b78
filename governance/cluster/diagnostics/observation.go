package diagnostics

import (
	"slices"

	"kuota.dev/kuota/governance/api/v1alpha1"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
)

// Observation is the observed state of the cluster, Kueue and the console.
type Observation struct {
	Server string // version of the API server, such as v1.36.3; empty if unknown
	SignIn bool   // users sign in, so that the console impersonates them
	// CanImpersonate is whether the console may act as users: by requests, which
	// Kubernetes limits from 1.36 on, or Everyone.
	CanImpersonate, CanImpersonateEveryone Answer

	Missing cluster.MissingKinds // kinds of Kuota and Kueue that are not served

	ReadOnly string // why the console writes nothing, a sentence; empty if it writes

	Install        reconcile.KueueInstall // where Kueue's configuration is
	Kueue          reconcile.KueueState   // set if KueueRead is ReadSucceeded
	KueueRead      ReadResult
	KueueReadError string // the API server's message

	Visibility bool                        // whether Kueue's visibility API answers
	Policy     *v1alpha1.ClusterPolicySpec // nil if there is none
	PolicyRead bool                        // whether Policy is known
	CanWrite   Answer                      // whether the console may change Kueue's configuration

	Enforcement, Members []string // admission policies that are missing
	Departments          []string // the same, of those that limit the admins of departments
	PoliciesKnown        bool     // whether all others are known to exist
	Namespace            string   // of the console, with the parameters of the admission policies
	HelmRelease          string   // of the console; empty if Helm did not install it
	Probe                enforcement.ProbeResult
	ChangedBy            PolicyState
	TimeLimits           PolicyState // of the policies that set default time limits
	Kinds                []KindState // that members can be allowed to create
	Covered              []string    // resources that ClusterQueues cover
	Uncovered            []UncoveredResource
	CoverageRead         bool // whether Covered and Uncovered are known
	Others               OtherSettings
	OthersRead           bool     // whether Others is known
	EffectiveQuotas      []string // ClusterQueues of Kuota whose quota an orchestrator replaces; see OtherSettings
	EffectiveUnread      bool     // EffectiveQuotas could not be read
}

// Manages reports whether the console is configured to apply the policy to
// Kueue's configuration.
func (s Observation) Manages() bool { return s.Install.Manage && s.ReadOnly == "" }

// Enforces reports whether there is a policy that requires a queue.
func (s Observation) Enforces() bool {
	return s.Policy != nil && s.Policy.Enforcement != v1alpha1.EnforcementNone
}

// SetsTimeLimits reports whether the policy has default time limits that must be set.
func (s Observation) SetsTimeLimits() bool {
	return s.Enforces() && slices.ContainsFunc(s.Policy.PriorityClasses, func(c v1alpha1.PriorityClass) bool {
		byDefault, _ := c.TimeLimits()
		return byDefault > 0
	})
}

// ReadResult is whether Kueue's configuration could be read.
type ReadResult string

// The results of reading Kueue's configuration.
const (
	ReadSucceeded ReadResult = ""
	ReadNotFound  ReadResult = "NotThere"
	ReadForbidden ReadResult = "Forbidden"
	ReadFailed    ReadResult = "Failed"
)

// Answer is yes, no, or unknown.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// PolicyState is whether an admission policy is installed.
type PolicyState int

// States of an admission policy.
const (
	PolicyUnknown PolicyState = iota
	PolicyInstalled
	PolicyMissing
	PolicyUnsupported // the API server does not serve its kind
)

// UncoveredResource is a resource that tasks request or nodes have, and no
// ClusterQueue covers.
type UncoveredResource struct {
	Resource string
	Tasks    int // unfinished tasks that request it; 0 if only nodes have it
}
