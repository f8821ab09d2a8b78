package submit

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/cluster/access"
	"kuota.dev/kuota/governance/quota/desired"
	"kuota.dev/kuota/governance/record/audit"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Service checks and submits tasks. It is safe for concurrent use.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Tasks   *queries.Service
	Naming  desired.Naming
	// Manifests keeps the manifests of submitted tasks; nil for none.
	Manifests Manifests
}

// Taken reports whether a task of that kind in the team's namespace has the name.
func (s *Service) Taken(t Team, kind Kind, name string) bool {
	return s.Tasks.Index.Find(t.Namespace, string(kind), name, "") != nil
}

// Plan completes r with defaults. If r is invalid it returns no Plan but all errors;
// their paths are the names of the form's fields.
func (t Team) Plan(r Request) (Plan, []governance.FieldError) { return t.plan(r, false) }

// Complete is Plan for a task that is about to be created: a missing name or image is
// an error too.
func (t Team) Complete(r Request) (Plan, []governance.FieldError) { return t.plan(r, true) }

func (t Team) plan(r Request, complete bool) (Plan, []governance.FieldError) {
	if r.Elastic != nil {
		elastic := FillElastic(*r.Elastic, r.Pods)
		r.Elastic = &elastic
	}
	r.Kind = r.kind()
	if class, ok := t.Class(r.Class); ok && r.TimeLimit == 0 && r.Kind != Deployment { // Kueue cannot limit those
		r.TimeLimit = class.DefaultTimeLimit
	}
	wrong := r.validate(t, complete)
	p := Plan{Request: r, Team: t}
	p.Team.Queue, _ = t.share(r.Share)
	var ok bool
	if p.QueuePool, ok = t.pool(r.Pool); ok && r.PerPod.Instances == nil {
		p.AnyOf = t.anyOf(r)
		resources, more := FillAny(r.PerPod, r.Pods, append(p.AnyOf, p.QueuePool)...)
		p.PodResources, wrong = resources, append(wrong, more...)
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	return p, nil
}
