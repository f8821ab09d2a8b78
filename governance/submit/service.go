package submit

import (
	"kuota.dev/kuota/governance"
	"kuota.dev/kuota/governance/access"
	"kuota.dev/kuota/governance/audit"
	"kuota.dev/kuota/governance/cluster"
	"kuota.dev/kuota/governance/desired"
	"kuota.dev/kuota/governance/tasks/queries"
)

// Service answers the pages where people submit tasks.
type Service struct {
	Cluster *cluster.Cluster
	Access  *access.Service
	Audit   *audit.Recorder
	Tasks   *queries.Service
	Naming  desired.Naming
}

// Taken tells whether a name is that of a task in the team's namespace.
func (s *Service) Taken(t Team, name string) bool {
	return s.Tasks.Index.Find(t.Namespace, "job", name, "") != nil
}

// Plan fills a request in. What is wrong with it is told with paths that are
// the names of its fields; then there is no plan.
func (t Team) Plan(r Request) (Plan, []governance.FieldError) { return t.plan(r, false) }

// Complete is Plan for a task that is to be made: it also tells what only
// matters then, such as a missing name.
func (t Team) Complete(r Request) (Plan, []governance.FieldError) { return t.plan(r, true) }

func (t Team) plan(r Request, whole bool) (Plan, []governance.FieldError) {
	wrong := r.check(t, whole)
	p := Plan{Request: r, Team: t}
	var ok bool
	if p.QueuePool, ok = t.pool(r.Pool); ok && r.PerPod.Instances == nil {
		gets, more := Fill(r.PerPod, r.Pods, p.QueuePool)
		p.PodResources, wrong = gets, append(wrong, more...)
	}
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	return p, nil
}
