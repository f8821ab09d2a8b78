package diagnostics

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/cluster/clusterstate"
	"kuota.dev/kuota/governance/controllers/reconcile"
	"kuota.dev/kuota/governance/kueue/enforcement"
	"kuota.dev/kuota/governance/kueue/kueueconfig"
	"kuota.dev/kuota/governance/quota/desired"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service serves the settings page.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Naming  desired.Naming
	Install reconcile.KueueInstall
	// Namespace is the namespace of the console; empty means kuota-system.
	Namespace string
	// HelmRelease is the Helm release of the console; empty if there is none.
	HelmRelease string
	// Kueue reads how Kueue is installed.
	Kueue func(context.Context) (reconcile.KueueState, error)
	// SignIn reports that users sign in: the console then impersonates them.
	SignIn bool
	// Reader reads policy, nodes, queues and tasks; nil means the cluster's cache.
	Reader client.Reader
}

// Report is the observed state with the findings.
type Report struct {
	Observation
	Findings []Finding

	Nodes, Pools int  // of the cluster
	NodesCounted bool // Nodes and Pools are known

	Version      string // of Kueue; empty if unknown
	Integrations []string
	Gates        []kueueconfig.Gate
}

// CanView reports whether the settings page is linked for user: they can see
// all teams and update the policy. It sends no extra review for members; see
// docs/decisions/0008. An error counts as no.
func (s *Service) CanView(ctx context.Context, user governance.User) bool {
	all, err := s.Access.CanSee(ctx, user, "")
	if err != nil || !all {
		return false
	}
	allowed, err := s.Access.MayEditPolicy(ctx, user)
	return err == nil && allowed
}

// Report collects the report for a user who can update the policy. For all
// others the page does not exist.
func (s *Service) Report(ctx context.Context, user governance.User) (Report, error) {
	allowed, err := s.Access.MayEditPolicy(ctx, user)
	if err == nil && !allowed {
		err = &governance.Error{Kind: governance.NotFound, Op: "read settings", Message: "Page not found, or you do not have access."}
	}
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	return s.Collect(ctx), nil
}

// Collect collects the report without a check of permissions, until ctx ends. What
// cannot be read is part of the report.
func (s *Service) Collect(ctx context.Context) Report {
	state := Report{Observation: Observation{Missing: s.Cluster.MissingKinds(), ReadOnly: s.Cluster.ReadOnlyReason(), Install: s.Install, Namespace: s.namespace(), HelmRelease: s.HelmRelease, SignIn: s.SignIn}}
	collect := collector{s, ctx, &state}
	var group sync.WaitGroup
	for _, part := range []func(){collect.server, collect.kueue, collect.visibility, collect.permission, collect.impersonation, collect.admission, collect.kinds, collect.cache} {
		group.Go(part)
	}
	group.Wait() // what cannot be read stays unknown
	if state.KueueRead == ReadSucceeded {
		state.Version, _ = kueueconfig.Version(state.Kueue.Image, oldestMinor)
		state.Integrations = kueueconfig.Integrations(state.Kueue.Text)
		integrate(state.Kinds, state.Integrations)
		state.Gates, _ = kueueconfig.Gates(state.Kueue.Current) // an error is a finding
	}
	state.Findings = Check(state.Observation)
	return state
}

func (s *Service) namespace() string { return cmp.Or(s.Namespace, "kuota-system") }

// cache collects what is cached.
func (l collector) cache() {
	reader := l.service.Reader
	if reader == nil {
		cached, err := l.service.Cluster.Reader()
		if err != nil {
			return
		}
		reader = cached
	}
	if types, err := clusterstate.Catalog(l.ctx, reader, l.service.Naming.InstanceTypeLabel); err == nil {
		l.report.NodesCounted = true
		for _, pool := range types.Pools() {
			l.report.Pools++
			l.report.Nodes += int(pool.Nodes)
		}
	}
	if policy, err := clusterstate.Policy(l.ctx, reader); err == nil {
		l.report.PolicyRead = true
		if policy != nil {
			l.report.Policy = policy.Spec.DeepCopy()
		}
	}
	if covered, uncovered, err := ResourceCoverage(l.ctx, reader); err == nil {
		l.report.Covered, l.report.Uncovered, l.report.CoverageRead = covered, uncovered, true
	}
	if others, err := ReadOtherSettings(l.ctx, reader); err == nil {
		l.report.Others, l.report.OthersRead = others, true
	}
}

// Unchecked returns what could not be read, so that a problem of it would have no
// finding.
func (r Report) Unchecked() (parts []string) {
	if r.Server == "" {
		parts = append(parts, "the version of the API server")
	}
	if !r.PolicyRead {
		parts = append(parts, "the cluster policy")
	}
	if !r.CoverageRead {
		parts = append(parts, "the resources of queues, nodes and tasks")
	}
	if !r.OthersRead {
		parts = append(parts, "settings of queues, tasks and namespaces that Kuota does not write")
	}
	if r.EffectiveUnread {
		parts = append(parts, "the effective quota of queues")
	}
	if r.SignIn && r.CanImpersonate == Unknown {
		parts = append(parts, "the permission to act as users")
	}
	if r.KueueRead == ReadSucceeded && r.Manages() && r.CanWrite == Unknown {
		parts = append(parts, "the permission to change Kueue's configuration")
	}
	if r.PoliciesKnown && len(r.Enforcement) == 0 && r.Enforces() && r.Probe == enforcement.ProbeUnknown {
		parts = append(parts, "whether the API server applies the admission policies")
	}
	if !r.PoliciesKnown || r.ChangedBy == PolicyUnknown || r.TimeLimits == PolicyUnknown {
		parts = append(parts, "Kuota's admission policies")
	}
	if slices.ContainsFunc(r.Kinds, func(k KindState) bool { return k.Allowed == Unknown }) {
		parts = append(parts, "the kinds of jobs that members may create")
	}
	return parts
}
